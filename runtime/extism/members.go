package extism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/manifests"
)

// This file reads what the types of extism/go-sdk do not show: the places of members, members that these types do not
// have, and those that they read under another name or in place of another one.

// The members that are translated, noted or refused.
var (
	known       = []string{"wasm", "memory", "config", "allowed_hosts", "allowed_paths", "timeout_ms"}
	knownModule = []string{"path", "hash", "name", "data", "url", "headers", "method"}
	knownMemory = []string{"max_pages", "max_http_response_bytes", "max_var_bytes"}
)

// example is a manifest that is right.
const example = `write JSON such as {"wasm": [{"path": "plugin.wasm"}]}`

// readMembers records where all members are, and refuses or notes those that are not translated.
func (t *translation) readMembers() error {
	var never context.Context // is it done: the text is short
	document, err := jsontext.Read(never, t.source, jsontext.Limits{})
	if err != nil {
		return t.unread(err)
	}
	root := document.Root()
	t.members(root, "", known)
	t.members(root.Get("memory"), "memory.", knownMemory)
	t.readModules(root.Get("wasm"))
	for name, value := range root.Get("config").Members() {
		at := "config." + name.String()
		t.places[at], _ = name.Span()
		switch value.Kind() {
		case jsontext.String:
		case jsontext.Null:
			t.note(at, "null, which the plug-in reads as an empty text", "write a text, or remove it")
		default:
			t.add(at, mistake.WrongType, "want a text", "write it in quotes")
		}
	}
	if len(t.problems) > 0 {
		return &manifests.Error{Problems: t.problems}
	}
	return nil
}

// readModules records the places of the modules and their members, and checks that each module is an object with the
// path of a file.
func (t *translation) readModules(list jsontext.Value) {
	if list.Kind() == jsontext.String || list.Kind() == jsontext.Object {
		module := moduleOf(list)
		if list.Kind() == jsontext.Object {
			module = "{…}"
		}
		t.add("wasm", mistake.WrongType, "want a list, got "+kinds[list.Kind()], `write "wasm": [`+module+"]")
	}
	for i, module := range list.Elements() {
		at := fmt.Sprintf("wasm[%d]", i)
		t.places[at], _ = module.Span()
		if module.Kind() != jsontext.Object {
			t.add(at, mistake.WrongType, "want an object, got "+kinds[module.Kind()], "write "+moduleOf(module))
			continue
		}
		t.members(module, at+".", knownModule)
		t.checkSource(module, at)
	}
}

// kinds are people's names for the kinds of values.
var kinds = map[jsontext.Kind]string{
	jsontext.String: "a text", jsontext.Array: "a list", jsontext.Object: "an object", jsontext.Number: "a number",
	jsontext.Bool: "true or false", jsontext.Null: "null",
}

// moduleOf returns the JSON of a module for which the manifest gives only a path, or an example.
func moduleOf(given jsontext.Value) string {
	path := `"plugin.wasm"`
	if given.Kind() == jsontext.String {
		path = given.Text()
	}
	return `{"path": ` + path + "}"
}

// unread returns the error for a text that is not JSON, or has a member twice.
func (t *translation) unread(err error) error {
	problem := t.problem("", mistake.Syntax, "this is no manifest of Extism: "+err.Error(), example)
	wrong, ok := errors.AsType[*jsontext.Error](err)
	if !ok {
		return &manifests.Error{Problems: []manifests.Problem{problem}}
	}
	if wrong.Err == jsontext.ErrRepeated {
		problem.Path, problem.Kind = jsontext.Key(wrong.Path, nil), mistake.DuplicateKey
		problem.Message, problem.Fix = wrong.Error(), "keep one of them"
	}
	problem.Line, problem.Column = t.position(wrong.Offset)
	return &manifests.Error{Problems: []manifests.Problem{problem}}
}

// members records the members of an object. It notes those that Extism ignores. Those that Extism
// reads although their names are written in another case are refused: the same member could be there twice.
func (t *translation) members(object jsontext.Value, prefix string, known []string) {
	for key := range object.Members() {
		name := key.String()
		t.places[prefix+name], _ = key.Span()
		if slices.Contains(known, name) {
			continue
		}
		if same := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); same >= 0 {
			t.add(prefix+name, mistake.UnknownKey, fmt.Sprintf("unknown key %q", name),
				fmt.Sprintf("write it as %q", known[same]))
			continue
		}
		fix := "remove it, or write a manifest of Caisson"
		if meant := nearest(name, known); meant != "" {
			fix = "did you mean " + meant + "?"
		} else if meant := nearest(name, knownMemory); prefix == "" && meant != "" {
			fix = "did you mean memory." + meant + "?"
		}
		t.note(prefix+name, fmt.Sprintf("%q has no equivalent, and is not used", name), fix)
	}
}

// nearest returns the member that a name probably means, or "". Extism's libraries write some names in another way,
// such as allowedHosts, or without the unit, such as timeout.
func nearest(name string, known []string) string {
	var snake strings.Builder
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			if i > 0 {
				snake.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		snake.WriteRune(c)
	}
	written := strings.ReplaceAll(snake.String(), "-", "_")
	if meant := spelling.Nearest(written, known); meant != "" {
		return meant
	}
	if slices.Contains(known, written+"_ms") {
		return written + "_ms"
	}
	return ""
}

// checkSource checks that a module is in a file, and nowhere else.
func (t *translation) checkSource(module jsontext.Value, at string) {
	given := func(name string) bool {
		return module.Get(name).Kind() != 0 && module.Get(name).Kind() != jsontext.Null
	}
	switch {
	case given("url"):
		t.add(at+".url", mistake.NotEnforced, "this version of Caisson does not download modules",
			"download it once, write its path instead, and pin its SHA-256 as hash")
	case given("data"):
		t.add(at+".data", mistake.NotEnforced,
			"this version of Caisson does not load modules that are written into a manifest",
			"write the module to a file, and its path here")
	case !given("path") || module.Get("path").String() == "" && module.Get("path").Kind() == jsontext.String:
		t.add(at, mistake.Missing, "the module has no path", "write the path of a file, such as plugin.wasm")
	}
}

// typeError returns the error for a member that is not of its type.
func (t *translation) typeError(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return t.refuse("", mistake.Syntax, "this is no manifest of Extism: "+err.Error(), example)
	}
	wanted := map[reflect.Kind]string{
		reflect.String: "a text", reflect.Slice: "a list", reflect.Map: "an object", reflect.Struct: "an object",
		reflect.Pointer: "an object",
		reflect.Uint64:  "a whole number from 0", reflect.Uint32: "a whole number from 0 to 4294967295",
		reflect.Int64: "a whole number",
	}[wrong.Type.Kind()]
	kind, number, _ := strings.Cut(wrong.Value, " ") // such as "number -1"
	got := map[string]string{"string": "a text", "array": "a list", "object": "an object", "bool": "true or false",
		"number": "the number " + number}[kind]
	if kind == "number" && number == "" {
		got = "a number"
	}
	problem := t.problem(wrong.Field, mistake.WrongType, fmt.Sprintf("want %s, got %s", wanted, got), example)
	if wrong.Field != "" {
		problem.Fix = "write " + wanted
	}
	return &manifests.Error{Problems: []manifests.Problem{problem}}
}

func (t *translation) refuse(key string, kind mistake.Kind, message, fix string) error {
	return &manifests.Error{Problems: []manifests.Problem{t.problem(key, kind, message, fix)}}
}

func (t *translation) add(key string, kind mistake.Kind, message, fix string) {
	t.problems = append(t.problems, t.problem(key, kind, message, fix))
}

func (t *translation) note(key, message, fix string) {
	t.notes = append(t.notes, t.problem(key, mistake.NoEquivalent, message, fix))
}

// problem returns a problem at a member, or at the nearest one around it.
func (t *translation) problem(key string, kind mistake.Kind, message, fix string) manifests.Problem {
	at := t.place(key)
	return manifests.Problem{File: t.file, Line: at.Line, Column: at.Column, Path: key, Kind: kind, Message: message,
		Fix: fix}
}

// place returns where a member is written, or the nearest one around it.
func (t *translation) place(key string) manifests.Place {
	at := manifests.Place{Key: key, Line: 1, Column: 1}
	for near := key; near != ""; near = near[:max(0, strings.LastIndexAny(near, ".["))] {
		if offset, found := t.places[near]; found {
			at.Line, at.Column = t.position(offset)
			break
		}
	}
	return at
}

func (t *translation) position(offset int) (line, column int) {
	before := t.source[:min(offset, len(t.source))]
	return 1 + strings.Count(before, "\n"), 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
}

// origins are the members from which keys of the manifests come, and which numbers they can have.
var origins = []struct{ key, member, numbers string }{
	{"module.config", "config", ""},
	{"module.variables", "memory.max_var_bytes", ""},
	{"permissions.network", "allowed_hosts", ""},
	{"permissions.files", "allowed_paths", ""},
	{"limits.timeout", "timeout_ms", "a number of milliseconds from 1 to 86400000"},
	{"limits.memory", "memory.max_pages", "a number of pages of 64 KiB from 1 to 65535"},
	{"limits.http_bytes", "memory.max_http_response_bytes", "a number of bytes from 1 to 1099511627776"},
}

// outOfRange gives problems with numbers the fix that fits the member.
func outOfRange(problems []manifests.Problem) []manifests.Problem {
	for i, p := range problems {
		for _, o := range origins {
			if p.Kind == mistake.OutOfRange && o.numbers != "" && p.Path == o.member {
				problems[i].Fix = "write " + o.numbers
			}
		}
	}
	return problems
}

// origin returns the place of the member from which a key of a manifest comes, or the first line if it comes from none.
func (t *translation) origin(path string) manifests.Place {
	for _, m := range t.modules {
		switch {
		case path == "module.path" && m == t.main, path == keypath.Key("module.libraries", m.name) && m != t.main:
			return t.place(m.at + ".path")
		case path == "module.sha256" && m.said.Hash != "": // of the first that has one
			return t.place(m.at + ".hash")
		}
	}
	switch path {
	case "module.libraries":
		return t.place("wasm")
	case "permissions.functions": // of all modules
		return t.place(t.main.at + ".path")
	}
	for _, o := range origins {
		if rest, found := strings.CutPrefix(path, o.key); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return t.place(o.member)
		}
	}
	return manifests.Place{Key: path, Line: 1, Column: 1}
}
