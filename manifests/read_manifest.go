package manifests

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/tool"
)

// Limits on the texts and lists of a manifest.
const (
	maxLabel       = 80   // characters
	maxSummary     = 240  // characters
	maxCategory    = 64   // characters
	maxDescription = 4096 // bytes
	maxMessage     = 1024 // bytes
	maxList        = 256  // elements
)

// manifest reads a whole document. Its result is valid only if there are no problems.
func (r *reader) manifest(root *node) *Manifest {
	r.places, r.names = root.places(), namesIn(root)
	if r.isOther(root, policySubject) {
		return nil
	}
	m := &Manifest{
		File:      r.file,
		Module:    modules.Module{Stdin: modules.Stdin{Mode: modules.StdinArguments}, Stdout: modules.StdoutAuto},
		Behavior:  Behavior{Snapshot: SnapshotAuto},
		Execution: ExecutionSandbox,
		Type:      tool.FunctionCall,
		places:    r.places,
	}
	executions := []Execution{ExecutionSandbox, ExecutionClient}
	if r.subject.function {
		executions = []Execution{ExecutionHost}
		m.Execution = ExecutionHost
	}
	read := r.object(root, "",
		required("schema", "schema: "+SchemaV1, new(string), choice(r, SchemaV1)),
		required("name", "name: and a name for models, such as fetch_page", &m.Name, r.name),
		optional("label", &m.Label, r.line(maxLabel)),
		optional("summary", &m.Summary, r.line(maxSummary)),
		required("description", "description: and a sentence that tells a model what the tool does", &m.Description,
			r.prose(maxDescription)),
		optional("version", &m.Version, r.version),
		optional("category", &m.Category, r.line(maxCategory)),
		field{"module", "", func(n *node, path string) { r.module(n, path, &m.Module) }},
		field{"parameters", "", func(*node, string) {}}, // read below, since they need the context
		field{"result", "", func(n *node, path string) { m.Result = r.schema(n, n, path) }},
		optional("permissions", &m.Permissions, r.permissions),
		optional("limits", &m.Limits, r.limits),
		optional("context", &m.Context, r.context),
		optional("behavior", &m.Behavior, r.behavior),
		optional("execution", &m.Execution, choice(r, executions...)),
		optional("type", &m.Type, choice(r, tool.FunctionCall, tool.CustomCall, tool.LocalShellCall)),
		optional("format", &m.Format, r.format),
		optional("requires", &m.Requires, distinctOf(r, maxList, r.requirement)),
		optional("aliases", &m.Aliases, distinctOf(r, maxList, r.name)),
		optional("retired", &m.Retired, distinctOf(r, maxList, r.name)),
		optional("parameter_aliases", &m.ParameterAliases, r.parameterAliases),
		optional("deprecated", &m.Deprecated, r.deprecated),
		optional("tests", &m.Tests, r.tests),
	)
	if !read {
		return m
	}
	r.parameters(root, m)
	r.checkTogether(root, m)
	return m
}

// namesIn returns all names in a document, whatever is wrong with it. It returns nil if it does not say one name.
func namesIn(root *node) []string {
	var names, aliases []string
	claim := func(to *[]string, n *node) {
		if toolName.MatchString(n.text) && !slices.Contains(names, n.text) && !slices.Contains(aliases, n.text) {
			*to = append(*to, n.text)
		}
	}
	for _, m := range slices.Concat(root.members, root.repeated) {
		switch m.key {
		case "name":
			claim(&names, m.value)
		case "aliases", "retired":
			claim(&aliases, m.value)
			for _, element := range m.value.elements {
				claim(&aliases, element)
			}
		}
	}
	if len(names) != 1 {
		return nil
	}
	return append(names, aliases...)
}

func (r *reader) setting(n *node, path string) string {
	return r.word(settingName, settingFix)(n, path)
}

// requirement reads a setting or a directory of the guest, or several alternatives separated by |.
func (r *reader) requirement(n *node, path string) string {
	text := r.text(n, path)
	one := "(" + strings.Trim(settingName.String(), "^$") + "|" + strings.Trim(requiredDirectory.String(), "^$") + ")"
	n.note("pattern", textOf("^ *"+one+` *(\| *`+one+` *)*$`))
	if n.kind != textNode {
		return ""
	}
	var settings []string
	for setting := range strings.SplitSeq(text, "|") {
		setting = strings.Trim(setting, " ")
		switch {
		case strings.HasPrefix(setting, "/") && !requiredDirectory.MatchString(setting):
			r.invalid(n, path, fmt.Sprintf("%q is not allowed here", clip(text)),
				"write the path of a directory that the tool requests, such as /data")
			return ""
		case !strings.HasPrefix(setting, "/") && !settingName.MatchString(setting):
			r.invalid(n, path, fmt.Sprintf("%q is not allowed here", clip(text)),
				settingFix+"; write A|B if one of two settings is enough")
			return ""
		case slices.Contains(settings, setting):
			r.add(n.at, path, mistake.DuplicateKey, fmt.Sprintf("%q appears twice among the alternatives", setting),
				"keep one of the two")
			return ""
		}
		settings = append(settings, setting)
	}
	return strings.Join(settings, "|")
}

func (r *reader) deprecated(n *node, path string) *Deprecated {
	d := &Deprecated{}
	r.object(n, path,
		optional("since", &d.Since, r.version),
		optional("use", &d.Use, r.name),
		optional("message", &d.Message, r.prose(maxMessage)),
		optional("alias", &d.Alias, r.name),
	)
	return d
}

// checkTogether checks rules that involve several parts of a manifest.
func (r *reader) checkTogether(root *node, m *Manifest) {
	r.checkExecution(root, m)
	r.checkType(root, m)
	r.checkBehavior(root, m)
	r.checkNames(root, m)
	r.checkTests(root, m)
	r.checkSample(m)
	r.checkRequirements(m)
}

// checkRequirements checks that required directories are requested: the operator could not grant them otherwise.
func (r *reader) checkRequirements(m *Manifest) {
	for i, required := range m.Requires {
		for alternative := range strings.SplitSeq(required, "|") {
			isRequest := func(f FilePermission) bool { return f.Path.String() == alternative }
			if strings.HasPrefix(alternative, "/") && !slices.ContainsFunc(m.Permissions.Files, isRequest) {
				r.conflict(fmt.Sprintf("requires[%d]", i), "the manifest does not request the directory "+alternative,
					fmt.Sprintf("add permissions: {files: [{path: %s}]}", alternative))
			}
		}
	}
}

// checkExecution checks that exactly one party runs the tool: the sandbox, the caller or the host's program.
func (r *reader) checkExecution(root *node, m *Manifest) {
	switch m.Execution {
	case ExecutionHost:
		unused := []string{"module", "behavior.snapshot", "behavior.profile", "tests"}
		for _, k := range kinds() {
			if k.asks != nil && k.asks.key != "tools" { // other tools' calls are the executor's to allow
				unused = append(unused, "permissions."+k.asks.key)
			}
		}
		for _, unused := range unused {
			if _, given := r.places[unused]; given {
				r.conflict(unused, "a Go function has no sandbox to which "+unused+" could apply", "remove "+unused)
			}
		}
		return
	case ExecutionSandbox, "":
		if root.get("module") == nil {
			r.add(root.at, "module", mistake.Missing, "the key module is required",
				"add module: {path: …}, or execution: client if the caller runs the tool")
		}
		return
	}
	for _, unused := range [...]struct{ key, message string }{
		{"module", "the caller runs this tool, so nothing would enforce module"},
		{"permissions", "the caller runs this tool, so nothing would enforce permissions"},
		{"limits", "the caller runs this tool, so nothing would enforce limits"},
		{"context", "the caller runs this tool and does not receive context values"},
		{"behavior.snapshot", "the caller runs this tool, so there is nothing to take a snapshot of"},
		{"behavior.profile", "the caller runs this tool, so no profile bounds its calls"},
		{"tests", "the caller runs this tool, so its tests cannot be run"},
	} {
		if _, given := r.places[unused.key]; given {
			r.conflict(unused.key, unused.message, "remove "+unused.key+", or execution: client")
		}
	}
}

func (r *reader) checkBehavior(root *node, m *Manifest) {
	b := m.Behavior
	if b.ReadOnly && b.Destructive {
		r.conflict("behavior.destructive", "a tool that is read_only destroys nothing", "remove one of the two")
	}
	if root.get("behavior").get("cache") != nil && b.Cache != CacheOff && !b.ReadOnly {
		r.conflict("behavior.cache", "only results of a tool that is read_only can be reused",
			"set behavior.read_only: true, or write cache: off")
	}
	for i, mount := range m.Permissions.Files {
		path := keypath.Index("permissions.files", i)
		if b.ReadOnly && mount.Access == AccessReadWrite {
			r.conflict(path+".access", "a tool that is read_only asks to write below "+mount.Path.String(),
				"ask for access: read, or remove behavior.read_only")
		}
	}
}

func (r *reader) checkNames(root *node, m *Manifest) {
	seen := map[string][]string{} // by key
	if m.Name != "" {
		seen["name"] = []string{m.Name}
	}
	for _, key := range []string{"aliases", "retired"} {
		for i, n := range root.below(key).elements {
			// The last of these is reported already.
			if n.kind != textNode || !toolName.MatchString(n.text) || slices.Contains(seen[key], n.text) {
				continue
			}
			all := slices.Concat(seen["name"], seen["aliases"], seen["retired"])
			if at := slices.IndexFunc(all, func(name string) bool { return spelling.LookAlike(name, n.text) }); at >= 0 {
				r.conflict(keypath.Index(key, i), strconv.Quote(n.text)+" looks like the name "+strconv.Quote(all[at]), "remove it")
				continue
			}
			seen[key] = append(seen[key], n.text)
		}
	}
	d := m.Deprecated
	switch {
	case d == nil:
	case d.Alias != "" && !slices.Contains(m.Aliases, d.Alias):
		r.conflict("deprecated.alias", fmt.Sprintf("%q is not an alias of the tool", d.Alias),
			"write one of its aliases, or remove alias to deprecate the tool")
	case d.Use != "" && (d.Use == d.Alias || d.Use == m.Name && d.Alias == ""):
		r.conflict("deprecated.use", "the tool is its own successor", "name another tool")
	}
}

// Bounds of the limits of a call. More memory than 2 GiB is not safe: see maxMemory in runtime/internal/engine.
const (
	MinMemory  Bytes = 64 << 10 // one page of WebAssembly's
	MaxMemory  Bytes = 2 << 30
	MaxTimeout       = 24 * time.Hour
)

const (
	leastTimeout = time.Millisecond
	mostOutput   = 64 << 20
	mostStderr   = 16 << 20
	mostHTTP     = 10_000
	mostTransfer = 1 << 40
	mostFiles    = 4096
	mostDisk     = 1 << 50
	leastCache   = time.Second
	mostCache    = 30 * 24 * time.Hour
)

func (r *reader) limits(n *node, path string) (l Limits) {
	r.object(n, path,
		optional("memory", &l.Memory, r.bytes(MinMemory, MaxMemory)),
		optional("timeout", &l.Timeout, r.duration(leastTimeout, MaxTimeout)),
		optional("fuel", &l.Fuel, integer[int64](r, 1, math.MaxInt64)),
		optional("output", &l.Output, r.bytes(1, mostOutput)),
		optional("stderr", &l.Stderr, r.bytes(1, mostStderr)),
		optional("http_calls", &l.HTTPCalls, integer(r, 1, mostHTTP)),
		optional("http_bytes", &l.HTTPBytes, r.bytes(1, mostTransfer)),
		optional("open_files", &l.OpenFiles, integer(r, 1, mostFiles)),
		optional("disk_bytes", &l.DiskBytes, r.bytes(1, mostDisk)),
	)
	return l
}

func (r *reader) behavior(n *node, path string) Behavior {
	b := Behavior{Snapshot: SnapshotAuto}
	r.object(n, path,
		optional("read_only", &b.ReadOnly, r.boolean),
		optional("idempotent", &b.Idempotent, r.boolean),
		optional("destructive", &b.Destructive, r.boolean),
		optional("cache", &b.Cache, r.cache),
		optional("final", &b.Final, r.boolean),
		optional("hidden", &b.Hidden, r.boolean),
		optional("snapshot", &b.Snapshot, choice(r, SnapshotAuto, SnapshotOff, SnapshotStart)),
		optional("profile", &b.Profile, r.profileParameter),
	)
	return b
}

// profileParameter reads the parameter that names a profile.
func (r *reader) profileParameter(n *node, path string) string {
	const fix = `write a parameter in quotes, such as "{strictness}"`
	if !r.kind(n, path, textNode, fix) {
		return ""
	}
	template, err := modules.ParseArgTemplate(n.text)
	if param, ok := template.Param(); err == nil && ok {
		return param
	}
	r.invalid(n, path, fmt.Sprintf("%q is no parameter", clip(n.text)), fix)
	return ""
}

func (r *reader) cache(n *node, path string) time.Duration {
	if n.kind == textNode && n.text == cacheOff {
		return CacheOff
	}
	if n.kind == textNode && strings.EqualFold(n.text, cacheOff) {
		r.invalid(n, path, fmt.Sprintf("%q is not a duration", clip(n.text)), "write off in lower case")
		return 0
	}
	return r.duration(leastCache, mostCache, cacheOff)(n.or(cacheOff), path)
}

const cacheOff = "off"

// maxGrammar is the maximum size of a grammar in bytes. It is sent with each request to a model.
const maxGrammar = 64 << 10

// Types of a custom tool's format, as in OpenAI's API.
const (
	textFormat    = "text"
	grammarFormat = "grammar"
)

func (r *reader) format(n *node, path string) json.RawMessage {
	var kind, syntax, definition string
	read := r.object(n, path,
		required("type", "type: and text or grammar", &kind, choice(r, textFormat, grammarFormat)),
		optional("syntax", &syntax, choice(r, "lark", "regex")),
		optional("definition", &definition, r.grammar),
	)
	if !read || kind == "" {
		return nil
	}
	for _, key := range [...]string{"syntax", "definition"} {
		given, inner := n.get(key) != nil, keypath.Key(path, key)
		switch {
		case given && kind == textFormat:
			r.conflict(inner, "any text is allowed, so there is no "+key, "remove it, or write type: grammar")
		case !given && kind != textFormat:
			r.add(n.at, inner, mistake.Missing, "the key "+key+" is required with type: grammar",
				"add syntax: lark or regex, and definition: with the grammar")
		}
	}
	format := objectOf(keyed("type", textOf(kind)))
	if kind != textFormat {
		format.members = append(format.members, keyed("syntax", textOf(syntax)), keyed("definition", textOf(definition)))
	}
	return format.json()
}

// grammar reads a grammar. White space in it is significant.
func (r *reader) grammar(n *node, path string) string {
	text := r.value(maxGrammar)(n, path)
	if n.kind == textNode && n.text == "" {
		r.invalid(n, path, "the text is empty", "write the grammar, or type: text")
	}
	return text
}

// checkType checks that the parameters fit the calls of the tool's type.
func (r *reader) checkType(root *node, m *Manifest) {
	if format := root.get("format"); format != nil && m.Type != tool.CustomCall && m.Type != "" {
		r.conflict("format", "only the text of a custom tool has a format", "remove format, or write type: custom")
	}
	parameters := root.get("parameters")
	if parameters == nil || parameters.kind != objectNode {
		parameters = &node{kind: objectNode, at: root.at}
	}
	switch m.Type {
	case tool.CustomCall:
		r.checkText(parameters, m)
	case tool.LocalShellCall:
		r.checkShell(parameters, m)
	}
}

const textFix = `write parameters: {type: object, properties: {NAME: {type: string}}, required: [NAME], ` +
	`additionalProperties: false}, with your NAME`

// checkText checks that the only parameter is one text, into which a whole call can be put.
func (r *reader) checkText(parameters *node, m *Manifest) {
	const path = "parameters"
	r.plainObject(parameters, path, textFix)
	shown := parameters.below("properties").without(
		func(key string) bool { return slices.Contains(m.Context, key) }).members
	if len(shown) != 1 {
		r.conflict(path, fmt.Sprintf("a call of a custom tool is one text, but there are %d parameters", len(shown)), textFix)
		return
	}
	at := keypath.Key(path+".properties", shown[0].key)
	if kind := shown[0].value.get("type"); kind == nil || kind.kind != textNode || kind.text != "string" {
		r.add(shown[0].at, at, mistake.Conflict, "the text of a custom tool is a string",
			"write type: string for the parameter")
	}
	required := parameters.below("required")
	if !hasText(required, shown[0].key) {
		r.add(shown[0].at, at, mistake.Conflict, "the text of a custom tool is in every call",
			"write required: ["+shown[0].key+"]")
	}
	for i, n := range required.elements {
		if n.text != shown[0].key && !slices.Contains(m.Context, n.text) {
			r.add(n.at, keypath.Index(path+".required", i), mistake.Conflict, "a call of a custom tool has no other arguments",
				"remove it")
		}
	}
}

// plainObject reports keywords that do more than declare parameters, and could reject calls that a model may make.
func (r *reader) plainObject(schema *node, path, fix string) {
	known := []string{"type", "properties", "required", "additionalProperties", "description", "title", "$comment"}
	for _, m := range schema.members {
		inner := keypath.Key(path, m.key)
		switch {
		case !slices.Contains(known, m.key):
			r.add(m.at, inner, mistake.Conflict, m.key+" could reject valid calls of this type", fix)
		case m.key == "additionalProperties" && (m.value.kind != boolNode || m.value.text != "false"):
			r.add(m.at, inner, mistake.Conflict, "a call of this type has no other arguments", "write false, or remove it")
		}
	}
}

func hasText(list *node, text string) bool {
	return slices.ContainsFunc(list.elements, func(n *node) bool { return n.kind == textNode && n.text == text })
}
