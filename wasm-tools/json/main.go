// Command json implements json_process: it reads, changes and compares JSON texts, and keeps the order of members and
// the digits of numbers.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

// arguments are the tool's arguments. Those that only some operations take are nil if they are absent.
type arguments struct {
	JSONString string   `json:"json_string"`
	Operation  string   `json:"operation"`
	Path       *string  `json:"path"`
	Patch      *string  `json:"patch"`
	Target     *string  `json:"target"`
	Indent     *float64 `json:"indent"` // a whole number, which may be written as 2.0
}

// operation implements an operation, with the part of the document that path names, and the other arguments that it
// takes.
type operation struct {
	run func(part *document.Node, other *document.Node, a arguments) (outcome, error)
	// takes is patch or target, if it needs that. A query needs path, which names no part then.
	takes string
	// indent is the default of the argument indent.
	indent int
}

// outcome is the result of an operation.
type outcome struct {
	value *document.Node
	data  map[string]any // besides the value
}

var operations = map[string]operation{
	"parse":       {run: itself},
	"format":      {run: itself, indent: 2},
	"minify":      {run: itself},
	"get":         {run: itself},
	"keys":        {run: keys},
	"query":       {run: query},
	"sort_keys":   {run: sortKeys, indent: 2},
	"flatten":     {run: flatten, indent: 2},
	"patch":       {run: patch, takes: "patch"},
	"merge_patch": {run: mergePatch, takes: "patch"},
	"diff":        {run: diff, takes: "target"},
	"merge_diff":  {run: mergeDiff, takes: "target"},
}

func main() {
	// The collector frees memory in time to stay below the manifest's limit, rather than at twice the live memory.
	debug.SetMemoryLimit(96 << 20)
	call.Main(process)
}

func process(a arguments) (call.Result, error) {
	if a.Operation == "validate" {
		return validate(a)
	}
	o, known := operations[a.Operation]
	if !known { // the schema has the list
		return call.Result{}, fmt.Errorf("there is no operation %q", a.Operation)
	}
	other, err := o.other(a)
	if err != nil {
		return call.Result{}, err
	}
	part, err := document.Parse(a.JSONString)
	if err != nil {
		return call.Result{}, fmt.Errorf("json_string: %w", err)
	}
	if a.Operation != "query" {
		if part, err = partOf(part, a); err != nil {
			return call.Result{}, err
		}
	}
	done, err := o.run(part, other, a)
	if err != nil {
		return call.Result{}, err
	}
	return o.result(done, a)
}

// other checks that the arguments are those of the operation, and reads its second document, if it has one.
func (o operation) other(a arguments) (*document.Node, error) {
	for name, text := range map[string]*string{"patch": a.Patch, "target": a.Target} {
		if name != o.takes && text != nil {
			return nil, fmt.Errorf("the operation %s takes no %s; %s", a.Operation, name, takers(name))
		}
		if name == o.takes && text == nil {
			return nil, fmt.Errorf("the operation %s needs %s, a JSON text", a.Operation, name)
		}
	}
	if (a.Operation == "query" || a.Operation == "get") && a.Path == nil {
		return nil, fmt.Errorf("the operation %s needs path", a.Operation)
	}
	if o.takes == "" {
		return nil, nil
	}
	text := a.Patch
	if o.takes == "target" {
		text = a.Target
	}
	n, err := document.Parse(*text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.takes, err)
	}
	return n, nil
}

// takers names the operations that take an argument.
func takers(name string) string {
	var all []string
	for operation, o := range operations {
		if o.takes == name {
			all = append(all, operation)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " and ") + " do"
}

// partOf returns the part of a document that path names.
func partOf(n *document.Node, a arguments) (*document.Node, error) {
	if a.Path == nil {
		return n, nil
	}
	if strings.HasPrefix(*a.Path, "$") {
		return nil,
			errors.New("path: it is a JSONPath, which the operation query takes; write a JSON Pointer such as /items/0")
	}
	p, err := document.ParsePointer(*a.Path)
	if err == nil {
		n, err = p.Find(n)
	}
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	return n, nil
}

// result shows an outcome to a model and to programs.
func (o operation) result(done outcome, a arguments) (call.Result, error) {
	indent := o.indent
	if a.Indent != nil {
		indent = int(*a.Indent)
	}
	output, err := done.value.Write(indent)
	if err != nil {
		return call.Result{}, fmt.Errorf("%w; name a part with path", err)
	}
	data := done.data
	if data == nil {
		data = map[string]any{"type": done.value.Type()}
		if strings.Contains("array object", done.value.Type()) {
			data["count"] = done.value.Len()
		}
	}
	if value, ok := embedded(done.value); ok {
		data["value"] = value
	}
	return call.Result{Success: true, Output: output, Data: data}, nil
}

// validate says whether a text is JSON. Text that is not JSON is not a failure of the call.
func validate(a arguments) (call.Result, error) {
	if a.Path != nil || a.Patch != nil || a.Target != nil || a.Indent != nil {
		return call.Result{}, errors.New("the operation validate takes json_string alone")
	}
	n, err := document.Parse(a.JSONString)
	wrong, ok := errors.AsType[*document.SyntaxError](err)
	switch {
	case err == nil:
		return call.Result{Success: true, Output: "valid JSON: " + described(n),
			Data: map[string]any{"valid": true, "type": n.Type()}}, nil
	case !ok:
		return call.Result{}, err
	}
	return call.Result{
		Success: true, Output: "not JSON: " + wrong.Error(),
		Data: map[string]any{"valid": false, "error": wrong.What, "line": wrong.Line, "column": wrong.Column},
	}, nil
}

// described returns the type of a value and, for arrays and objects, the size.
func described(n *document.Node) string {
	switch n.Type() {
	case "array":
		return fmt.Sprintf("an array of %d elements", n.Len())
	case "object":
		return fmt.Sprintf("an object of %d members", n.Len())
	case "null":
		return "null"
	}
	return cmp.Or("a "+n.Type(), "a value")
}
