package responses

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// execute is the type of the only action of the local shell that there is.
const execute = `"exec"`

// shellArguments returns what an action, a JSON object, asks of the local shell, as a call has it:
// without the type that all actions have, and without the members that are null, which stand for
// being left out. What is no such action stays as it is, for whoever checks arguments to refuse.
func shellArguments(action json.RawMessage) string {
	if wire.Absent(action) {
		return "{}"
	}
	action = bytes.ToValidUTF8(action, []byte("\uFFFD")) // as texts are decoded
	given, err := exact.Parse(action, tool.MaxArgumentsDepth, dialects.MaxArguments)
	if err != nil {
		var compact bytes.Buffer
		if json.Compact(&compact, action) != nil {
			return string(action)
		}
		return compact.String()
	}
	var asked []exact.Member
	for _, m := range given.Members() {
		if m.Value.Literal() != "null" && (m.Name != "type" || m.Value.Literal() != execute) {
			asked = append(asked, m)
		}
	}
	return string(exact.Object(asked...).Append(nil))
}

// shellAction is the reverse of shellArguments.
func shellAction(arguments string) (json.RawMessage, error) {
	return action(arguments, "type", execute)
}

// fullAction returns an action that has an environment, as clients may want it.
func fullAction(arguments string) (json.RawMessage, error) {
	typed, err := shellAction(arguments)
	if err != nil {
		return nil, err
	}
	return action(string(typed), "env", "{}")
}

// action returns arguments as a JSON object that has the member, which is added where it is missing.
func action(arguments, name, value string) (json.RawMessage, error) {
	given, err := tool.ParseArguments(arguments)
	if err != nil {
		return wire.Object(arguments)
	}
	if _, ok := given.Get(name); !ok {
		given = given.With(name, json.RawMessage(value))
	}
	return given.MarshalJSON()
}
