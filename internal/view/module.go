package view

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Module is the output of "caisson inspect" for a module without a manifest.
type Module struct {
	File       string   `json:"file"`
	Kind       string   `json:"kind"`      // command, plugin, reactor or library
	Functions  []string `json:"functions"` // that can be the entry of a plug-in
	Unoffered  string   `json:"unoffered"` // imports that are not offered; empty if there are none
	Libraries  []string `json:"libraries"` // names of libraries that may have all of these
	Manifest   string   `json:"manifest"`  // to start from, in YAML; empty if no tool can be made of the module
	recognised runtime.Recognised
}

// NewModule describes the module in a file.
func NewModule(file string, found runtime.Recognised) Module {
	m := Module{File: file, Kind: string(found.Kind), Functions: jsontext.List(found.Functions),
		Unoffered: found.Unoffered, Libraries: jsontext.List(found.Libraries), recognised: found}
	if found.Kind != runtime.ModuleLibrary {
		m.Manifest = startingManifest(file, found)
	}
	return m
}

var moduleKinds = map[runtime.ModuleKind]string{
	runtime.ModuleCommand: "a WASI command",
	runtime.ModulePlugin:  "an Extism plug-in",
	runtime.ModuleReactor: "neither a WASI command nor an Extism plug-in, " +
		"but a reactor with functions that can be called as those of a plug-in",
	runtime.ModuleLibrary: "a library: it exports no function that a tool could call",
}

// shownFunctions is the maximum number of functions of a module that are printed for people.
const shownFunctions = 40

// Text describes the module for people.
func (m Module) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", m.File, moduleKinds[m.recognised.Kind])
	if len(m.Functions) > 0 && m.recognised.Kind != runtime.ModuleCommand {
		more := ""
		if len(m.Functions) > shownFunctions {
			more = fmt.Sprintf(" and %d more", len(m.Functions)-shownFunctions)
		}
		names := texts(m.Functions[:min(len(m.Functions), shownFunctions)], quotedYAML)
		fmt.Fprintf(&b, "functions    %s%s\n", strings.Join(names, " "), more)
	}
	if what, fix := m.Lacks(); what != "" && m.recognised.Kind != runtime.ModuleLibrary {
		fmt.Fprintf(&b, "it %s; %s\n", what, fix)
	}
	switch {
	case len(m.Libraries) > 0:
		fmt.Fprintf(&b, "it imports %s: module.libraries in the manifest names the file that has them\n",
			terminal.EscapeLine(m.Unoffered))
	case len(m.recognised.HostFunctions) > 0:
		fmt.Fprintf(&b,
			"it runs in a program that embeds Caisson and offers what it imports: %s (runtime.Options.HostFunctions)\n",
			terminal.EscapeLine(m.Unoffered))
	case m.Unoffered != "":
		fmt.Fprintf(&b, "it cannot run here: it imports %s, which this version of Caisson does not offer\n",
			terminal.EscapeLine(m.Unoffered))
	}
	if m.Manifest != "" {
		fmt.Fprintf(&b, "\nA manifest to start from, which --manifest prints alone:\n\n%s", m.Manifest)
	}
	return b.String()
}

// Lacks says why no tool can be made of the module, and what to do about it: the module is a library, or none of its
// functions can be the entry of a tool. It returns "" if there is a manifest to start from.
func (m Module) Lacks() (what, fix string) {
	switch {
	case m.Manifest != "":
		return "", ""
	case m.recognised.Kind == runtime.ModuleLibrary:
		return "is " + moduleKinds[runtime.ModuleLibrary], "build it as a WASI command or as an Extism plug-in"
	case len(m.Functions) == 0:
		return "exports no function that a tool could call",
			"export one that has no parameters, and returns nothing or a whole number"
	}
	return "has no function that a tool could call: " +
			"their names have characters that a manifest's module.entry cannot have",
		"give a function a name of letters, digits, _, ., $ and -, such as call"
}

// startingManifest returns a manifest to start from, with comments, or "" if no function can be the entry.
func startingManifest(path string, found runtime.Recognised) string {
	file := filepath.Base(path)
	name := toolName(strings.TrimSuffix(file, filepath.Ext(file)))
	module, parameter := fmt.Sprintf("module: {path: %s}", quotedYAML(file)), ""
	var more []string
	if found.Kind != runtime.ModuleCommand {
		usable := entriesOf(found.Functions)
		if len(usable) == 0 {
			return ""
		}
		entry := usable[0]
		more = usable[1:]
		if len(found.Functions) > 1 {
			name = toolName(name + "_" + entry)
		}
		module = fmt.Sprintf("module: {path: %s, abi: extism, entry: %s, stdin: %s, stdout: text}", quotedYAML(file),
			quotedYAML(entry), `"{input}"`)
		parameter = "parameters: {properties: {input: {type: string}}}\n"
	}
	description := quotedYAML("Write here what the tool does: models choose it by this.")
	text := strings.Join([]string{
		"schema: " + manifests.SchemaV1, "name: " + quotedYAML(name), "description: " + description, module,
	}, "\n") + "\n" + parameter
	if len(more) > 0 {
		text += "# other functions, each for a manifest of its own: " + strings.Join(more, ", ") + "\n"
	}
	if len(found.Libraries) > 0 {
		libraries := texts(found.Libraries,
			func(name string) string { return quotedYAML(name) + ": " + quotedYAML(name+".wasm") })
		text += "# it imports functions of other modules: add libraries: {" + strings.Join(libraries, ", ") +
			"} to module, with their files\n"
	}
	var requests []string
	for _, kind := range found.Needed {
		if text, ok := examples[kind]; ok {
			requests = append(requests, text)
		}
	}
	if len(requests) > 0 {
		text += "# it imports functions that need these permissions: write what it really uses\n"
	}
	if len(found.HostFunctions) > 0 {
		functions := "functions: [" + strings.Join(texts(found.HostFunctions, quotedYAML), ", ") + "]"
		if len(found.Libraries) > 0 {
			text += "# or, if a program that embeds Caisson has them, under permissions: " + functions + "\n"
		} else {
			text += "# only a program that embeds Caisson and offers these functions can run it\n"
			requests = append(requests, functions)
		}
	}
	if len(requests) > 0 {
		text += "permissions: {" + strings.Join(requests, ", ") + "}\n"
	}
	if found.Config {
		text += "# it reads a configuration: add config: {name: text} to module\n"
	}
	if found.Files {
		text += "# it can use directories: permissions: {files: [{path: /data, access: read}]}\n"
	}
	if found.Network && !slices.Contains(found.Needed, "network") {
		text += "# it can send requests: permissions: {network: [{host: api.example.com}]}\n"
	}
	return text
}

// examples are requests for permissions, of which only a person knows what the module needs.
var examples = map[string]string{
	"network": "network: [{host: api.example.com}]",
	"secrets": "secrets: [{name: API_KEY, host: api.example.com, header: Authorization}]",
	"tools":   "tools: [other_tool]",
}

// toolName returns a name that a tool can have.
func toolName(text string) string {
	text = strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, text)
	return cmp.Or(text[:min(len(text), 64)], "tool")
}

// How many functions a manifest to start from names, and among how many they are looked for.
const (
	namedFunctions  = 20
	lookedFunctions = 1000
)

// entriesOf returns functions that can be the entry of a manifest: call first, and not all if they are many.
func entriesOf(functions []string) []string {
	const standard = "call"
	usable := []string{}
	if slices.Contains(functions, standard) {
		usable = append(usable, standard)
	}
	for _, f := range functions[:min(len(functions), lookedFunctions)] {
		if len(usable) > namedFunctions {
			break
		}
		manifest := "{schema: " + manifests.SchemaV1 +
			", name: a, description: a, module: {path: a.wasm, abi: extism, entry: " + quotedYAML(f) + "}}"
		if _, err := manifests.Parse("tool.yaml", []byte(manifest)); err == nil && f != standard && f != "" {
			usable = append(usable, f)
		}
	}
	return usable
}

// plainYAML is text that YAML takes for text without quotes, unless it is a word that means something else.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	wordsYAML = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)

// quotedYAML quotes a text where YAML needs it. Characters that would deceive a reader are escaped.
func quotedYAML(text string) string {
	if plainYAML.MatchString(text) && !slices.Contains(wordsYAML, strings.ToLower(text)) {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || tool.Deceives(c):
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
