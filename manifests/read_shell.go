package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
	"github.com/caisson-run/caisson/manifests/schema"
)

// shellActions are examples of what OpenAI's API puts into a local_shell_call as its action. The
// parameters of a local shell have to take each of them.
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

const shellFix = "declare command, a required list of strings, env, an object of strings, working_directory and user, both strings, " +
	"timeout_ms, an integer, and nothing else"

// checkShell makes sure that a local shell is run by the client, with what a model writes as the
// action of a call.
func (r *reader) checkShell(parameters *node, m *Manifest) {
	const path = "parameters"
	if m.Execution == Sandbox {
		r.add(r.place("type"), "type", Conflict, "the commands of a local shell run where the caller is, and not in a sandbox", "add execution: client and remove module, or write type: function")
	}
	r.plainObject(parameters, path, shellFix)
	properties := parameters.get("properties")
	if properties.get("command") == nil || !hasText(parameters.get("required"), "command") {
		r.add(r.place(path), path, Conflict, "a call of a local shell always has a command", shellFix)
		return
	}
	for _, p := range properties.members {
		if !slices.Contains(shellParameters, p.key) {
			r.add(p.at, keypath.Key(path+".properties", p.key), Conflict, fmt.Sprintf("no call of a local shell has the argument %q", clip(p.key)), shellFix)
		}
	}
	if m.Parameters == nil {
		return // that has been reported
	}
	var unending context.Context // nobody waits for the loading of a manifest with a deadline
	for _, action := range shellActions {
		if err := m.Parameters.Validate(unending, json.RawMessage(action)); err != nil {
			r.add(r.place(path), path, Conflict, fmt.Sprintf("the call %s, which a model may make, would be refused: %s", action, firstViolation(err)), shellFix)
			return
		}
	}
}

// firstViolation says where a value does not fit a schema first.
func firstViolation(err error) string {
	var violations *schema.ViolationError
	if !errors.As(err, &violations) || len(violations.Violations) == 0 {
		return "it does not fit"
	}
	first := violations.Violations[0]
	if first.Path == "" {
		return clip(first.Message)
	}
	return clip(first.Path + ": " + first.Message)
}
