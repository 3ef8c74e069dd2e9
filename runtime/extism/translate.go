package extism

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// written is the JSON form of a manifest of Caisson.
type written struct {
	Schema      string            `json:"schema"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Module      map[string]any    `json:"module"`
	Parameters  json.RawMessage   `json:"parameters"`
	Permissions *permissions      `json:"permissions,omitempty"`
	Limits      map[string]string `json:"limits,omitempty"`
}

type permissions struct {
	Files     []map[string]string `json:"files,omitempty"`
	Network   []map[string]any    `json:"network,omitempty"`
	Functions []string            `json:"functions,omitempty"`
}

// inputParameter is the schema of the one parameter of each tool.
const inputParameter = `{"type": "object", "properties": {"input": {"type": "string", ` +
	`"description": "The plug-in's input."}}, "additionalProperties": false}`

func (t *translation) translate() (*Translated, error) {
	functions, err := t.functions()
	if err != nil {
		return nil, err
	}
	t.recordModules()
	asks, err := t.permissions()
	if err != nil {
		return nil, err
	}
	for _, m := range t.modules {
		m.source = nil // the manifests keep the translation, for the places of its members
	}
	limits, err := t.limits()
	if err != nil {
		return nil, err
	}
	done := &Translated{}
	var problems []manifests.Problem
	taken := map[string]string{} // functions, by the names of their tools
	for _, function := range functions {
		name := t.name(function)
		text, err := json.Marshal(written{
			Schema: manifests.SchemaV1, Name: name, Description: "Calls " + function + " of the Extism plug-in " +
				t.main.said.Path + ".",
			Module: t.describe(function), Parameters: json.RawMessage(inputParameter), Permissions: asks, Limits: limits,
		})
		if err != nil {
			return nil, err
		}
		m, err := manifests.ParseTranslated(t.file, text, t.origin)
		switch invalid, ok := errors.AsType[*manifests.Error](err); {
		case ok &&
			slices.ContainsFunc(invalid.Problems,
				func(p manifests.Problem) bool { return p.Path == "name" || p.Path == "module.entry" }):
			t.noteUnnamed(function, name, "a name that tools or entries cannot have") // the other functions may be tools
		case ok:
			problems = append(problems, outOfRange(invalid.Problems)...)
		case err != nil:
			return nil, err
		case taken[name] != "":
			t.noteUnnamed(function, name, fmt.Sprintf("the name of that of %q", taken[name]))
		default:
			taken[name] = function
			done.Manifests = append(done.Manifests, m)
		}
	}
	if len(problems) == 0 && len(done.Manifests) == 0 {
		return nil,
			t.refuse(t.main.at+".path", mistake.InvalidValue,
				"none of its functions can be a tool: the name of each is not allowed",
				"shorten the name of this file, or write a manifest of Caisson for each function")
	}
	if len(problems) > 0 {
		return nil,
			&manifests.Error{Problems: slices.CompactFunc(problems, func(a, b manifests.Problem) bool { return a == b })}
	}
	done.Notes, done.Members = t.notes, t.done
	return done, nil
}

func (t *translation) recordTranslation(member, text string) {
	t.done = append(t.done, Member{t.place(member), text})
}

// noteUnnamed notes that no tool is made of a function, because of the tool's name.
func (t *translation) noteUnnamed(function, name, reason string) {
	t.note(t.main.at+".path", fmt.Sprintf("no tool is made of the function %q: %q would have %s", function, name, reason),
		"write a manifest of Caisson for it if models need it, with a name of its own")
}

// name returns the name of the tool of a function: that of the file, and that of the function, with _
// for what names of tools cannot have.
func (t *translation) name(function string) string {
	file := strings.TrimSuffix(filepath.Base(t.file), filepath.Ext(t.file))
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, file+"_"+function)
}

// permissions returns what the tools request: each host by every method, scheme and port, as Extism
// allows it, each path, and the functions of the embedding program that the modules import.
func (t *translation) permissions() (*permissions, error) {
	var p permissions
	var libraries []string
	for _, m := range t.libraries() {
		libraries = append(libraries, m.name)
	}
	for _, m := range t.modules {
		functions, err := runtime.ImportedFunctions(m.source, libraries...)
		if err != nil {
			return nil, t.refuse(m.at+".path", mistake.InvalidValue, err.Error(), "name a WebAssembly module")
		}
		p.Functions = append(p.Functions, functions...)
	}
	slices.Sort(p.Functions)
	p.Functions = slices.Compact(p.Functions)
	if len(p.Functions) > 0 {
		t.recordTranslation(t.main.at+".path", "permissions.functions: "+strings.Join(p.Functions, ", "))
	}
	for _, host := range t.said.AllowedHosts {
		if name := strings.TrimPrefix(host, "*."); host != "*" && strings.ContainsAny(name, `*?[]{}!\`) {
			t.note("allowed_hosts", fmt.Sprintf("the pattern %q has no equivalent, so no host is allowed by it", host),
				"write the names of the hosts, or *.example.com for all names below one")
			continue
		}
		p.Network = append(p.Network, map[string]any{"host": host, "ports": "*", "schemes": []string{"https", "http"},
			"methods": []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}})
		t.recordTranslation("allowed_hosts", fmt.Sprintf("permissions.network: %s by every method and port", host))
	}
	for _, host := range slices.Sorted(maps.Keys(t.said.AllowedPaths)) {
		guest, access, mode := t.said.AllowedPaths[host], "read-write", "rw"
		directory, readOnly := strings.CutPrefix(host, "ro:")
		if readOnly {
			access, mode = "read", "ro"
		}
		p.Files = append(p.Files, map[string]string{"path": guest, "access": access})
		t.recordTranslation("allowed_paths", fmt.Sprintf("permissions.files: %s (%s)", guest, access))
		t.note("allowed_paths", fmt.Sprintf("the operator says which directory %s is; here it is %s (%s)", guest, directory,
			mode), "grant it in the policy, with files")
	}
	if len(p.Network)+len(p.Files)+len(p.Functions) == 0 {
		return nil, nil
	}
	return &p, nil
}

// pageBytes is the size of a page of WebAssembly.
const pageBytes = 64 << 10

// limits returns the limits of the tools. A number beyond what Caisson allows is lowered, with a note.
func (t *translation) limits() (map[string]string, error) {
	limits := map[string]string{}
	if timeout := t.said.Timeout; timeout > 0 {
		const most = uint64(manifests.MaxTimeout / time.Millisecond)
		if timeout > most {
			t.note("timeout_ms", fmt.Sprintf("%d is more than the %d of a day, which it is lowered to", timeout, most),
				fmt.Sprintf("write %d", most))
		}
		limits["timeout"] = fmt.Sprintf("%dms", min(timeout, most))
		t.recordTranslation("timeout_ms", "limits.timeout: "+limits["timeout"])
	}
	m := t.said.Memory // never nil; a number that is not given is 0 for pages, and else -1
	if pages := int64(m.MaxPages); pages > 0 {
		const most = int64(manifests.MaxMemory / pageBytes)
		if pages > most && pages <= 1<<16 { // all that 32 bits address
			t.note("memory.max_pages", fmt.Sprintf("%d is lowered to %d", pages, most), fmt.Sprintf("write %d", most))
			pages = most
		}
		limits["memory"] = fmt.Sprintf("%dKiB", pages*pageBytes>>10)
		t.recordTranslation("memory.max_pages", "limits.memory: "+limits["memory"])
	}
	switch most := m.MaxHttpResponseBytes; {
	case most > 0:
		limits["http_bytes"] = fmt.Sprintf("%dB", most)
		t.recordTranslation("memory.max_http_response_bytes", "limits.http_bytes: "+limits["http_bytes"])
		t.note("memory.max_http_response_bytes",
			"it limits the bodies of all requests and responses of a call together (limits.http_bytes), not each response",
			"write a higher number if calls send several requests")
	case most == 0 && len(t.said.AllowedHosts) > 0:
		return nil,
			t.refuse("memory.max_http_response_bytes", mistake.NotEnforced,
				"0 would refuse each response that has a body, which this version of Caisson does not do",
				"remove allowed_hosts, or write the bytes of the bodies of all requests and responses")
	}
	if most := m.MaxVarBytes; most > int64(modules.MaxVariables) {
		t.note("memory.max_var_bytes", fmt.Sprintf("%d is lowered to %d", most, modules.MaxVariables),
			fmt.Sprintf("write %d", modules.MaxVariables))
	}
	return limits, nil
}
