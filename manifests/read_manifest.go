package manifests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// Bounds on the texts of a manifest.
const (
	maxLabel       = 80   // characters
	maxCategory    = 64   // characters
	maxDescription = 4096 // bytes
	maxMessage     = 1024 // bytes
	maxList        = 256  // elements
)

// manifest reads a whole document. What it returns is of use only if there are no
// problems.
func (r *reader) manifest(root *node) *Manifest {
	r.places = root.places()
	m := &Manifest{
		File:      r.file,
		Module:    Module{Stdin: Stdin{Mode: StdinArguments}, Stdout: StdoutAuto},
		Behavior:  Behavior{Snapshot: SnapshotAuto},
		Execution: Sandbox,
		Type:      FunctionTool,
		lines:     map[string]int{},
	}
	for path, at := range r.places {
		m.lines[path] = at.line
	}
	read := r.object(root, "",
		field{"schema", "schema: " + SchemaV1, func(n *node, path string) { r.choice(n, path, SchemaV1) }},
		field{"name", "name: and a name for models, such as fetch_page", func(n *node, path string) { m.Name = r.name(n, path) }},
		field{"label", "", func(n *node, path string) { m.Label = r.line(n, path, maxLabel) }},
		field{"description", "description: and a sentence that tells a model what the tool does", func(n *node, path string) { m.Description = r.prose(n, path, maxDescription) }},
		field{"version", "", func(n *node, path string) { m.Version = r.version(n, path) }},
		field{"category", "", func(n *node, path string) { m.Category = r.line(n, path, maxCategory) }},
		field{"module", "", func(n *node, path string) { r.module(n, path, &m.Module) }},
		field{"parameters", "", func(*node, string) {}}, // read below: they need the context
		field{"result", "", func(n *node, path string) { m.Result = r.schema(n, n, path) }},
		field{"permissions", "", func(n *node, path string) { r.permissions(n, path, &m.Permissions) }},
		field{"limits", "", func(n *node, path string) { r.limits(n, path, &m.Limits) }},
		field{"context", "", func(n *node, path string) { m.Context = r.context(n, path) }},
		field{"behavior", "", func(n *node, path string) { r.behavior(n, path, &m.Behavior) }},
		field{"execution", "", func(n *node, path string) {
			m.Execution = Execution(r.choice(n, path, string(Sandbox), string(Client)))
		}},
		field{"type", "", func(n *node, path string) {
			m.Type = Type(r.choice(n, path, string(FunctionTool), string(CustomTool), string(LocalShellTool)))
		}},
		field{"format", "", func(n *node, path string) { m.Format = r.format(n, path) }},
		field{"requires", "", func(n *node, path string) { m.Requires = r.uniqueTexts(n, path, maxList, r.requirement) }},
		field{"aliases", "", func(n *node, path string) { m.Aliases = r.uniqueTexts(n, path, maxList, r.name) }},
		field{"deprecated", "", func(n *node, path string) { m.Deprecated = r.deprecated(n, path) }},
		field{"tests", "", func(n *node, path string) { m.Tests = r.tests(n, path) }},
	)
	if !read {
		return m
	}
	r.parameters(root, m)
	r.checkTogether(root, m)
	return m
}

func (r *reader) setting(n *node, path string) string {
	return r.word(n, path, settingName, settingFix)
}

// requirement reads a setting, or several with | between them, one of which is enough.
func (r *reader) requirement(n *node, path string) string {
	text := r.text(n, path)
	if n.kind != textNode {
		return ""
	}
	var settings []string
	for setting := range strings.SplitSeq(text, "|") {
		setting = strings.Trim(setting, " ")
		switch {
		case !settingName.MatchString(setting):
			r.add(n.at, path, InvalidValue, fmt.Sprintf("%q is not allowed here", clip(text)), settingFix+"; write A|B if one of two settings is enough")
			return ""
		case slices.Contains(settings, setting):
			r.add(n.at, path, DuplicateKey, fmt.Sprintf("%q stands twice among the alternatives", setting), "keep one of the two")
			return ""
		}
		settings = append(settings, setting)
	}
	return strings.Join(settings, "|")
}

func (r *reader) deprecated(n *node, path string) *Deprecated {
	d := &Deprecated{}
	r.object(n, path,
		field{"since", "", func(n *node, path string) { d.Since = r.version(n, path) }},
		field{"use", "", func(n *node, path string) { d.Use = r.name(n, path) }},
		field{"message", "", func(n *node, path string) { d.Message = r.prose(n, path, maxMessage) }},
	)
	return d
}

// checkTogether checks what no part of a manifest can get wrong alone.
func (r *reader) checkTogether(root *node, m *Manifest) {
	r.checkExecution(root, m)
	r.checkType(root, m)
	r.checkBehavior(root, m)
	r.checkNames(root, m)
	r.checkTests(root, m)
}

// checkExecution makes sure that a tool is run by somebody, and by one only.
func (r *reader) checkExecution(root *node, m *Manifest) {
	if m.Execution != Client {
		if root.get("module") == nil {
			r.add(root.at, "module", Missing, "the key module is required", "add module: {path: …}, or execution: client if the caller runs the tool")
		}
		return
	}
	for _, key := range [...]string{"module", "permissions", "limits"} {
		if root.get(key) != nil {
			r.add(r.places[key], key, Conflict, "the caller runs this tool, so that nothing would enforce "+key, "remove "+key+", or execution: client")
		}
	}
	for _, unused := range [...]struct{ key, message string }{
		{"context", "the caller runs this tool, and is not told context values"},
		{"behavior.snapshot", "the caller runs this tool, so that there is nothing to take a snapshot of"},
		{"tests", "the caller runs this tool, so that nobody could run its tests"},
	} {
		if at, given := r.places[unused.key]; given {
			r.add(at, unused.key, Conflict, unused.message, "remove "+unused.key+", or execution: client")
		}
	}
}

func (r *reader) checkBehavior(root *node, m *Manifest) {
	b := m.Behavior
	if b.ReadOnly && b.Destructive {
		r.add(r.places["behavior.destructive"], "behavior.destructive", Conflict, "a tool that is read_only destroys nothing", "remove one of the two")
	}
	if root.get("behavior").get("cache") != nil && !b.ReadOnly {
		r.add(r.places["behavior.cache"], "behavior.cache", Conflict, "only results of a tool that is read_only can be reused", "set behavior.read_only: true, or remove cache")
	}
	for i, mount := range m.Permissions.Files {
		path := "permissions.files[" + strconv.Itoa(i) + "]"
		if b.ReadOnly && mount.Access == ReadWrite {
			r.add(r.place(path+".access"), path+".access", Conflict, "a tool that is read_only asks to write below "+mount.Path, "ask for access: read, or remove behavior.read_only")
		}
	}
}

// checkNames keeps a tool's names apart from each other.
func (r *reader) checkNames(root *node, m *Manifest) {
	var seen []string
	if m.Name != "" {
		seen = append(seen, m.Name)
	}
	if aliases := root.get("aliases"); aliases != nil {
		for i, n := range aliases.elements {
			if n.kind != textNode || !toolName.MatchString(n.text) {
				continue
			}
			at := slices.IndexFunc(seen, func(name string) bool { return tool.LookAlike(name, n.text) })
			if at >= 0 && !(seen[at] == n.text && seen[at] != m.Name) {
				path := "aliases[" + strconv.Itoa(i) + "]"
				r.add(n.at, path, Conflict, strconv.Quote(n.text)+" looks like the name "+strconv.Quote(seen[at]), "remove the alias")
				continue
			}
			seen = append(seen, n.text)
		}
	}
	if m.Deprecated != nil && m.Deprecated.Use != "" && m.Deprecated.Use == m.Name {
		r.add(r.place("deprecated.use"), "deprecated.use", Conflict, "the tool is its own successor", "name another tool")
	}
}
