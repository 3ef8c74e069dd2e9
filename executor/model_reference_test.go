package executor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// modelWant is the result of one call that the reference wants. The text has "?" in place of values that other
// sessions change.
type modelWant struct {
	kind    tool.Kind
	output  string
	skipped bool
	source  int // the call of the batch whose result this is; -1: none
}

// modelReference runs batches of one session one call after the other, with nothing that
// is known from before: no time, no places, no answers that are used again.
type modelReference struct {
	scope   executor.Scope
	numbers map[string]int64 // the session's own
}

// batch returns the wanted results of a batch's calls.
func (r *modelReference) batch(calls []tool.Call) (wants []modelWant) {
	known := map[string]int{} // since the last barrier
	stopped := false
	for i, call := range calls {
		name, arguments := resolve(call.Function)
		want := modelWant{source: -1}
		if kind := refused(name, arguments); kind != "" {
			wants = append(wants, modelWant{kind: kind, skipped: true, source: -1})
			continue
		}
		if stopped {
			wants = append(wants, modelWant{kind: tool.Cancelled, skipped: true, source: -1})
			continue
		}
		if slices.Contains(modelWriting, name) {
			clear(known)
		}
		question := name + " " + canonical(arguments)
		if at, ok := known[question]; ok {
			want = wants[at]
			want.skipped, want.source = true, at
			wants = append(wants, want)
			continue
		}
		want.kind, want.output = r.run(name, arguments)
		if slices.Contains(modelReading, name) && name != "fresh" && r.scope != executor.ReuseNone && want.kind != tool.Cancelled {
			known[question] = i
		}
		stopped = name == "stops"
		wants = append(wants, want)
	}
	return wants
}

func resolve(f tool.Function) (name, arguments string) {
	if f.Name == "get" {
		return "read", f.Arguments
	}
	return f.Name, f.Arguments
}

// refused says why a call is not run, if it is not.
func refused(name, arguments string) tool.Kind {
	var members map[string]any
	switch {
	case json.Unmarshal([]byte(arguments), &members) != nil:
		return tool.InvalidArguments
	case name == "missing":
		return tool.UnknownTool
	case name == "secret":
		return tool.Denied
	case name == "pure" && members["n"] == nil:
		return tool.InvalidArguments
	}
	return ""
}

func canonical(arguments string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(arguments), &members); err != nil {
		return arguments
	}
	text, _ := json.Marshal(members)
	return string(text)
}

// run returns the result of a call that is run, and changes the numbers like the call.
func (r *modelReference) run(name, arguments string) (kind tool.Kind, output string) {
	var given struct {
		N    int
		Name string
	}
	_ = json.Unmarshal([]byte(arguments), &given)
	switch name {
	case "pure":
		return "", fmt.Sprint("pure ", given.N)
	case "long":
		return "", longText(fmt.Sprint(given.N))
	case "read", "fresh", "hidden":
		if given.Name == "shared" {
			return "", "shared=?"
		}
		return "", fmt.Sprintf("%s=%d", given.Name, r.numbers[given.Name])
	case "write":
		r.numbers[given.Name]++
		return "", "wrote " + given.Name
	case "breaks":
		r.numbers[given.Name]++
		return tool.Trap, ""
	case "fails":
		return tool.ToolFailed, ""
	case "traps":
		return tool.Trap, ""
	case "hangs", "stops":
		return tool.Cancelled, ""
	case "relay_read", "relay_write":
		return "", r.relay(name == "relay_read", arguments)
	}
	panic("no such tool in the model: " + name)
}

// relay returns the results of the calls that a tool makes.
func (r *modelReference) relay(only bool, arguments string) string {
	var said []string
	for _, f := range parseScript(arguments) {
		name, arguments := resolve(f)
		kind, output := refused(name, arguments), ""
		switch {
		case kind != "":
		case name == "hidden" || name == "stops": // the manifest does not ask for them
			kind = tool.Denied
		case only && slices.Contains(modelWriting, name):
			kind = tool.Denied
		default:
			kind, output = r.run(name, arguments)
		}
		if kind != "" {
			said = append(said, fmt.Sprintf("%s!%s", f.Name, kind))
		} else {
			said = append(said, fmt.Sprintf("%s:%s", f.Name, output))
		}
	}
	return strings.Join(said, " ")
}
