package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/schema"
)

const (
	maxPath         = 1024
	maxArgElements  = 256
	maxArgBytes     = 4096
	maxExitCode     = 255
	maxSuccessCodes = 16
)

var (
	sha256Text = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	entryName  = regexp.MustCompile(`^[A-Za-z0-9_.$-]{0,256}$`) // empty is as if it were absent
	// ociReference is host[:port]/repository[:tag][@digest], as in the OCI distribution
	// specification 1.1, "Pulling manifests".
	ociReference = regexp.MustCompile(
		`^oci://[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+` +
			`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

func (r *reader) module(n *node, path string, m *modules.Module) {
	if n.get("script") != nil {
		r.script(n, path, m)
		return
	}
	if n.schema != nil {
		defer r.script(n, path, m)
	}
	r.object(n, path,
		required("path", "path: and the module's file, such as tool.wasm", &m.Path, r.modulePath),
		field{"script", "", nil}, // read above
		field{"packages", "", r.scriptOnly},
		field{"sample", "", r.scriptOnly},
		optional("sha256", &m.SHA256, r.digest),
		optional("abi", &m.ABI, choice(r, modules.ABIWASI, modules.ABIExtism)),
		optional("entry", &m.Entry, r.word(entryName, "write the name of an exported function")),
		optional("config", &m.Config, r.texts),
		optional("variables", &m.Variables,
			func(n *node, path string) int64 { return int64(r.bytes(1, modules.MaxVariables)(n, path)) }),
		optional("libraries", &m.Libraries, r.libraries),
		optional("args", &m.Args, listOf(r, maxArgElements, r.arg)),
		optional("stdin", &m.Stdin, r.stdin),
		optional("stdout", &m.Stdout,
			choice(r, modules.StdoutAuto, modules.StdoutResult, modules.StdoutJSON, modules.StdoutText)),
		optional("stderr", &m.Stderr, choice(r, modules.StderrPrivate)),
		optional("success_codes", &m.SuccessCodes, r.exitCodes),
	)
	for _, only := range [...]struct {
		given        bool
		key          string
		abi          modules.ABI
		contradicted string
	}{
		{m.Entry != "", "entry", modules.ABIExtism, "only an extism plug-in has an entry"},
		{len(m.Args) > 0, "args", modules.ABIWASI, "an extism plug-in has no command line"},
		{m.Config != nil, "config", modules.ABIExtism, "only an extism plug-in has a configuration"},
		{m.Variables != 0, "variables", modules.ABIExtism, "only an extism plug-in has variables"},
		{m.Libraries != nil, "libraries", modules.ABIExtism, "only an extism plug-in has libraries"},
		{len(m.SuccessCodes) > 0, "success_codes", modules.ABIWASI, "an extism plug-in has no exit code"},
	} {
		if only.given && (m.ABI == modules.ABIExtism) != (only.abi == modules.ABIExtism) {
			r.conflict(path+"."+only.key, only.contradicted, fmt.Sprintf("remove %s, or set abi: %s", only.key, only.abi))
		}
	}
}

// exitCodes reads distinct exit codes and returns them sorted, without 0, so that lists of one meaning are equal.
func (r *reader) exitCodes(n *node, path string) []int {
	var codes []int
	code := integer(r, 0, maxExitCode)
	n.note("uniqueItems", boolOf(true))
	r.list(n, path, maxSuccessCodes, func(n *node, path string) {
		known := len(r.problems)
		value := code(n, path)
		switch {
		case len(r.problems) > known:
		case slices.Contains(codes, value):
			r.repeated(n, path, n.text)
		default:
			codes = append(codes, value)
		}
	})
	codes = slices.DeleteFunc(codes, func(code int) bool { return code == 0 })
	slices.Sort(codes)
	return codes
}

func (r *reader) modulePath(n *node, path string) string {
	text := r.text(n, path)
	n.noteBytes(1, maxPath)
	if n.kind != textNode {
		return ""
	}
	if strings.HasPrefix(text, "oci:") {
		if !ociReference.MatchString(text) {
			r.invalid(n, path, fmt.Sprintf("%q is not an OCI reference", clip(text)),
				"write oci://host/repository:tag or oci://host/repository@sha256:digest")
			return ""
		}
		return text
	}
	const fix = "write a path inside the manifest's folder with forward slashes, such as tool.wasm"
	_, hidden := hiddenRune(text)
	switch {
	case text == "" || text == "." || !fs.ValidPath(text) || len(text) > maxPath:
		r.invalid(n, path, fmt.Sprintf("%q is not a plain relative path", clip(text)), fix)
	case hidden || strings.ContainsAny(text, "\\:\n\t"):
		r.invalid(n, path, fmt.Sprintf("%q contains characters that are not allowed in paths", clip(text)), fix)
	default:
		return text
	}
	return ""
}

func (r *reader) libraries(n *node, path string) map[string]string {
	files := map[string]string{}
	r.mapping(n, path, modules.MaxLibraries, func(m member, path string) {
		if r.key(m, path, modules.LibraryName,
			"write the name of the module in the imports: at most 64 letters, digits, _, - and .") {
			files[m.key] = r.filePath(m.value, path, "a library is a file", "lib.wasm")
		}
	})
	return files
}

// filePath reads the path of a library, script or package, which cannot be in an OCI registry.
func (r *reader) filePath(n *node, path, what, example string) string {
	file := r.modulePath(n, path)
	if strings.HasPrefix(file, "oci:") {
		r.invalid(n, path, what, "write a path inside the manifest's folder, such as "+example)
		return ""
	}
	return file
}

func (r *reader) digest(n *node, path string) string {
	return strings.ToLower(r.word(sha256Text, "write the 64 hexadecimal digits that sha256sum prints, in quotes")(n, path))
}

func (r *reader) arg(n *node, path string) modules.ArgTemplate {
	fix := "put the element into quotes"
	if n.kind == objectNode {
		fix = `put the element into quotes, such as "{url}": without them it is an object`
	}
	if !r.kind(n, path, textNode, fix) {
		n.noteBytes(0, maxArgBytes)
		return modules.ArgTemplate{}
	}
	template, err := modules.ParseArgTemplate(n.text)
	switch {
	case len(n.text) > maxArgBytes:
		r.outOfRange(n, path, fmt.Sprintf("%d bytes are over the limit of %d", len(n.text), maxArgBytes),
			"make the element shorter")
	case err != nil:
		r.invalid(n, path, err.Error(), "write {param} for a parameter, and {{ or }} for a brace")
	}
	return template
}

func (r *reader) stdin(n *node, path string) modules.Stdin {
	const fix = `write arguments, none, or a parameter in quotes, such as "{content}"`
	if !r.kind(n, path, textNode, fix) {
		return modules.Stdin{Mode: modules.StdinArguments}
	}
	switch n.text {
	case string(modules.StdinArguments), string(modules.StdinNone):
		return modules.Stdin{Mode: modules.StdinMode(n.text)}
	}
	template, err := modules.ParseArgTemplate(n.text)
	if param, ok := template.Param(); err == nil && ok {
		return modules.Stdin{Mode: modules.StdinParam, Param: param}
	}
	r.invalid(n, path, fmt.Sprintf("%q is not a form of standard input", clip(n.text)), fix)
	return modules.Stdin{Mode: modules.StdinArguments}
}

// shellActions are examples of the action in a local_shell_call of OpenAI's API. The parameters of
// a local shell must accept each of them.
var shellActions = []string{
	`{"command":["ls"],"env":{}}`,
	`{"command":["sh","-c","exit 1",""],"env":{"LANG":"C","A":""}}`,
	`{"command":["ls"],"env":{},"working_directory":"/srv/project"}`,
	`{"command":["ls"],"env":{},"timeout_ms":120000}`,
	`{"command":["ls"],"env":{},"user":"nobody"}`,
	`{"command":["ls"],"env":{},"working_directory":".","timeout_ms":1,"user":"root"}`,
}

// shellParameters are the members of such an action.
var shellParameters = []string{"command", "env", "working_directory", "timeout_ms", "user"}

const shellFix = "declare command, a required list of strings, env, an object of strings, working_directory and " +
	"user, both strings, " +
	"timeout_ms, an integer, and nothing else"

// checkShell checks that a local shell is run by the client, with the action that a model writes as its arguments.
func (r *reader) checkShell(parameters *node, m *Manifest) {
	const path = "parameters"
	if m.Execution == ExecutionSandbox {
		r.conflict("type", "the commands of a local shell are run by the caller, not in a sandbox",
			"add execution: client and remove module, or write type: function")
	}
	r.plainObject(parameters, path, shellFix)
	properties := parameters.get("properties")
	if properties.get("command") == nil || !hasText(parameters.below("required"), "command") {
		r.conflict(path, "a call of a local shell always has a command", shellFix)
		return
	}
	for _, p := range properties.members {
		if !slices.Contains(shellParameters, p.key) {
			r.add(p.at, keypath.Key(path+".properties", p.key), mistake.Conflict,
				fmt.Sprintf("no call of a local shell has the argument %q", clip(p.key)), shellFix)
		}
	}
	if m.Parameters == nil {
		return // already reported
	}
	var unending context.Context // loading a manifest has no deadline
	for _, action := range shellActions {
		if err := m.Parameters.Validate(unending, json.RawMessage(action)); err != nil {
			r.conflict(path, fmt.Sprintf("the call %s, which a model may make, would be refused: %s", action,
				firstViolation(err)), shellFix)
			return
		}
	}
}

// firstViolation returns the first reason why a value does not match a schema.
func firstViolation(err error) string {
	violations, ok := errors.AsType[*schema.ViolationError](err)
	if !ok || len(violations.Violations) == 0 {
		return "it does not fit"
	}
	return clip((&schema.ViolationError{Violations: violations.Violations[:1]}).Error())
}

const maxPackages = 32

// languages are the languages of scripts, by the ends of file names.
var languages = map[string]modules.Language{".py": modules.Python, ".js": modules.JavaScript,
	".mjs": modules.JavaScript}

// script reads a module that is a script.
func (r *reader) script(n *node, at string, m *modules.Module) {
	notFor := func(key, why string) field {
		return field{key, "", func(_ *node, at string) { r.conflict(at, why, "remove "+key) }}
	}
	const ownProtocol = "a script gets its arguments as an object, and returns its result"
	r.object(n, at,
		required("script", "script: and the file, such as tool.py", &m.Path, r.scriptPath),
		optional("packages", &m.Packages, distinctOf(r, maxPackages, r.packagePath)),
		field{"sample", "", func(n *node, at string) {
			if r.kind(n, at, objectNode, "write the arguments of a call as an object") {
				m.Sample = n.json()
			}
		}},
		optional("sha256", &m.SHA256, r.digest),
		optional("stderr", &m.Stderr, choice(r, modules.StderrPrivate)),
		notFor("path", "a tool has either a module or a script"),
		notFor("abi", "a script runs in an interpreter that Caisson knows"),
		notFor("entry", "a script has a function run (Python) or a default export (JavaScript)"),
		notFor("config", "a script has no configuration"),
		notFor("variables", "a script keeps what it needs in variables of its own"),
		notFor("libraries", "a script has packages instead"),
		notFor("args", "a script has no command line"),
		notFor("stdin", ownProtocol),
		notFor("stdout", ownProtocol),
		notFor("success_codes", "a script has no exit code"),
	)
	m.Language = languages[path.Ext(m.Path)]
	m.Stdout = modules.StdoutResult
}

// scriptOnly reports a key that only scripts have.
func (r *reader) scriptOnly(_ *node, at string) {
	r.conflict(at, "only a script has it", "remove it, or write script: and a file such as tool.py instead of path")
}

func (r *reader) scriptPath(n *node, at string) string {
	file := r.filePath(n, at, "a script is a file", "tool.py")
	if file != "" && languages[path.Ext(file)] == modules.LanguageNone {
		r.invalid(n, at, fmt.Sprintf("%q is in no language that has an interpreter here", clip(file)),
			"write a file that ends in .py, .js or .mjs; for a WebAssembly module, write path instead of script")
		return ""
	}
	return file
}

func (r *reader) packagePath(n *node, at string) string {
	return r.filePath(n, at, "a package is a folder or a wheel", "vendor/markdown")
}

// checkSample checks that a script's sample is a call that the script could get.
func (r *reader) checkSample(m *Manifest) {
	if m.Module.Sample == nil || m.Parameters == nil {
		return
	}
	var unending context.Context // loading a manifest has no deadline
	if err := m.Parameters.Validate(unending, m.Module.Sample); err != nil {
		r.conflict("module.sample", "the sample does not fit the parameters: "+firstViolation(err),
			"write the arguments of a call that may be made")
	}
}
