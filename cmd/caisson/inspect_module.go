package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
)

// isModule reports whether a path names a module rather than a manifest.
func isModule(path string) bool { return strings.EqualFold(filepath.Ext(path), ".wasm") }

// recognised is what inspect prints of a module as JSON.
type recognised struct {
	File       string   `json:"file"`
	Kind       string   `json:"kind"`      // command, plugin, reactor or library
	Functions  []string `json:"functions"` // that can be the entry of a plug-in
	Unoffered  string   `json:"unoffered"` // imports that are not offered; empty if there are none
	Manifest   string   `json:"manifest"`  // to start from, in YAML; empty if no tool can be made of the module
	recognised runtime.Recognised
}

// inspectModule shows what a module without a manifest is, and a manifest to start from.
func (o *options) inspectModule(path string, onlyManifest bool) error {
	found, err := runtime.RecogniseFile(path)
	if err != nil {
		return failed(exitUsage, fmt.Sprintf("%s: %v", path, err), "name a WebAssembly module that can be read")
	}
	shown := recognised{File: path, Kind: string(found.Kind), Functions: list(found.Functions), Unoffered: found.Unoffered, recognised: found}
	if found.Kind != runtime.ModuleLibrary {
		shown.Manifest = startingManifest(path, found)
	}
	switch {
	case o.json:
		return o.printJSON(shown)
	case onlyManifest && shown.Manifest == "":
		return failed(exitUsage, path+" is a library: it exports no function that a tool could call", "build it as a WASI command or as an Extism plug-in")
	case onlyManifest:
		return o.print(shown.Manifest)
	}
	return o.print(shown.text())
}

// kinds are what people call the kinds of modules.
var moduleKinds = map[runtime.ModuleKind]string{
	runtime.ModuleCommand: "a WASI command",
	runtime.ModulePlugin:  "an Extism plug-in",
	runtime.ModuleReactor: "neither a WASI command nor an Extism plug-in, but a reactor with functions that can be called as those of a plug-in",
	runtime.ModuleLibrary: "a library: it exports no function that a tool could call",
}

// shownFunctions is how many functions of a module are printed for people.
const shownFunctions = 40

func (r recognised) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", r.File, moduleKinds[r.recognised.Kind])
	if len(r.Functions) > 0 && r.recognised.Kind != runtime.ModuleCommand {
		more := ""
		if len(r.Functions) > shownFunctions {
			more = fmt.Sprintf(" and %d more", len(r.Functions)-shownFunctions)
		}
		fmt.Fprintf(&b, "functions    %s%s\n", sanitiseLine(strings.Join(r.Functions[:min(len(r.Functions), shownFunctions)], " ")), more)
	}
	if r.Unoffered != "" {
		fmt.Fprintf(&b, "it cannot run here: it imports %s, which are not offered\n", sanitiseLine(r.Unoffered))
	}
	if r.Manifest != "" {
		fmt.Fprintf(&b, "\nA manifest to start from, which --manifest prints alone:\n\n%s", r.Manifest)
	}
	return b.String()
}

// startingManifest returns a manifest with which the module can be called at once, and comments about
// what else the module could use.
func startingManifest(path string, found runtime.Recognised) string {
	file := filepath.Base(path)
	name := toolName(strings.TrimSuffix(file, filepath.Ext(file)))
	module, parameter, what := fmt.Sprintf("module: {path: %s}", quotedYAML(file)), "", "Write here what the tool does: models choose it by this."
	if found.Kind != runtime.ModuleCommand {
		entry := "call"
		if len(found.Functions) > 0 && !slices.Contains(found.Functions, entry) {
			entry = found.Functions[0]
		}
		if len(found.Functions) > 1 {
			name = toolName(name + "_" + entry)
		}
		module = fmt.Sprintf("module: {path: %s, abi: extism, entry: %s, stdin: %s}", quotedYAML(file), quotedYAML(entry), `"{input}"`)
		parameter = "parameters: {properties: {input: {type: string}}}\n"
	}
	lines := []string{"schema: " + manifests.SchemaV1, "name: " + quotedYAML(name), "description: " + quotedYAML(what), module}
	text := strings.Join(lines, "\n") + "\n" + parameter
	if more := slices.DeleteFunc(slices.Clone(found.Functions), func(f string) bool { return f == "call" || f == found.Functions[0] }); len(more) > 0 && found.Kind != runtime.ModuleCommand {
		text += "# other functions, each for a manifest of its own: " + sanitiseLine(strings.Join(more[:min(len(more), 20)], ", ")) + "\n"
	}
	if found.Config {
		text += "# it reads a configuration: add config: {name: text} to module\n"
	}
	if found.Files {
		text += "# it can use directories: permissions: {files: [{path: /data, access: read}]}\n"
	}
	if found.Network {
		text += "# it can send requests: permissions: {network: [{host: api.example.com}]}\n"
	}
	return text
}

// toolName returns a name that a tool can have.
func toolName(text string) string {
	text = strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, text)
	return text[:min(len(text), 64)]
}

// quotedYAML quotes a text where YAML needs it.
func quotedYAML(text string) string {
	for _, c := range text {
		if c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			quoted, _ := json.Marshal(text)
			return string(quoted)
		}
	}
	return text
}

// pluginNamed returns the name of the one tool in a manifest of Extism.
func pluginNamed(file string) (string, error) {
	translated, err := extism.Load(file)
	if err != nil {
		return "", &failure{exitUsage, messagesOf(err)}
	}
	var names []string
	for _, m := range translated.Manifests {
		names = append(names, m.Name)
	}
	if len(names) > 1 {
		return "", failed(exitUsage, file+" makes several tools: "+strings.Join(names, ", "), "name one of them, and write --tools "+quoted(file))
	}
	return names[0], nil
}
