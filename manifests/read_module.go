package manifests

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

const (
	maxPath        = 1024
	maxArgElements = 256
	maxArgBytes    = 4096
)

var (
	sha256Text = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	entryName  = regexp.MustCompile(`^[A-Za-z0-9_.$-]{1,256}$`)
	// ociReference is host[:port]/repository[:tag][@digest], as in the OCI
	// distribution specification 1.1, "Pulling manifests".
	ociReference = regexp.MustCompile(`^oci://[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

func (r *reader) module(n *node, path string, m *Module) {
	r.object(n, path,
		field{"path", "path: and the module's file, such as tool.wasm", func(n *node, path string) { m.Path = r.modulePath(n, path) }},
		field{"sha256", "", func(n *node, path string) { m.SHA256 = r.digest(n, path) }},
		field{"abi", "", func(n *node, path string) { m.ABI = ABI(r.choice(n, path, string(ABIWASI), string(ABIExtism))) }},
		field{"entry", "", func(n *node, path string) { m.Entry = r.entry(n, path) }},
		field{"args", "", func(n *node, path string) { m.Args = r.args(n, path) }},
		field{"stdin", "", func(n *node, path string) { m.Stdin = r.stdin(n, path) }},
		field{"stdout", "", func(n *node, path string) {
			m.Stdout = Stdout(r.choice(n, path, string(StdoutAuto), string(StdoutResult), string(StdoutJSON), string(StdoutText)))
		}},
	)
	if m.Entry != "" && m.ABI == ABIWASI {
		r.add(r.place(path+".entry"), path+".entry", Conflict, "a wasi program has no entry", "remove entry, or set abi: extism")
	}
	if m.ABI == ABIExtism && len(m.Args) > 0 {
		r.add(r.place(path+".args"), path+".args", Conflict, "an extism plug-in has no command line", "remove args, or set abi: wasi")
	}
	if m.ABI == ABIExtism && m.Stdin.Mode != StdinArguments {
		r.add(r.place(path+".stdin"), path+".stdin", Conflict, "an extism plug-in has no standard input", "remove stdin, or set abi: wasi")
	}
}

func (r *reader) modulePath(n *node, path string) string {
	text := r.text(n, path)
	if n.kind != textNode {
		return ""
	}
	if strings.HasPrefix(text, "oci:") {
		if !ociReference.MatchString(text) {
			r.add(n.at, path, InvalidValue, fmt.Sprintf("%q is not an OCI reference", clip(text)), "write oci://host/repository:tag or oci://host/repository@sha256:digest")
			return ""
		}
		return text
	}
	const fix = "write a path inside the manifest's folder with forward slashes, such as tool.wasm"
	_, hidden := hiddenRune(text)
	switch {
	case text == "" || text == "." || !fs.ValidPath(text) || len(text) > maxPath:
		r.add(n.at, path, InvalidValue, fmt.Sprintf("%q is not a plain relative path", clip(text)), fix)
	case hidden || strings.ContainsAny(text, "\\:\n\t"):
		r.add(n.at, path, InvalidValue, fmt.Sprintf("%q holds characters that paths do without", clip(text)), fix)
	default:
		return text
	}
	return ""
}

func (r *reader) digest(n *node, path string) string {
	return strings.ToLower(r.word(n, path, sha256Text, "write the 64 hexadecimal digits that sha256sum prints, in quotes"))
}

func (r *reader) entry(n *node, path string) string {
	if n.kind == textNode && n.text == "" {
		return "" // as good as not given
	}
	return r.word(n, path, entryName, "write the name of an exported function")
}

func (r *reader) args(n *node, path string) []ArgTemplate {
	var templates []ArgTemplate
	r.list(n, path, maxArgElements, func(n *node, path string) {
		fix := "put the element into quotes"
		if n.kind == objectNode {
			fix = `put the element into quotes, such as "{url}": without them it is an object`
		}
		if !r.kind(n, path, textNode, fix) {
			templates = append(templates, ArgTemplate{}) // keeps the others' indexes
			return
		}
		template, err := ParseArgTemplate(n.text)
		templates = append(templates, template)
		switch {
		case len(n.text) > maxArgBytes:
			r.add(n.at, path, OutOfRange, fmt.Sprintf("%d bytes are over the limit of %d", len(n.text), maxArgBytes), "make the element shorter")
		case err != nil:
			r.add(n.at, path, InvalidValue, strings.TrimPrefix(err.Error(), ErrTemplate.Error()+": "), "write {param} for a parameter, and {{ or }} for a brace")
		}
	})
	return templates
}

func (r *reader) stdin(n *node, path string) Stdin {
	const fix = `write arguments, none, or a parameter in quotes, such as "{content}"`
	if !r.kind(n, path, textNode, fix) {
		return Stdin{Mode: StdinArguments}
	}
	switch n.text {
	case string(StdinArguments), string(StdinNone):
		return Stdin{Mode: StdinMode(n.text)}
	}
	template, err := ParseArgTemplate(n.text)
	if part, alone := template.alone(); err == nil && alone && !part.dash {
		return Stdin{Mode: StdinParam, Param: part.param}
	}
	r.add(n.at, path, InvalidValue, fmt.Sprintf("%q says nothing about standard input", clip(n.text)), fix)
	return Stdin{Mode: StdinArguments}
}
