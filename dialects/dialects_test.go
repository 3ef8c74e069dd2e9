package dialects_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func TestErrorSaysWhereAndWhy(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]*dialects.Error{
		"openai response: choices[0]: wrong: cause": {Op: "response", Dialect: "openai", Path: "choices[0]", Message: "wrong", Err: cause},
		"events: wrong":        {Op: "events", Message: "wrong"},
		"gemini stream: cause": {Op: "stream", Dialect: "gemini", Err: cause},
	} {
		assert.Equal(t, want, err.Error())
		assert.Equal(t, err.Err != nil, errors.Is(err, cause))
	}
}

func TestAnswersAreGivenToTheirCalls(t *testing.T) {
	action := func(kind tool.ActionType, ours, id, name string) tool.Action {
		return tool.Action{Type: kind, CallID: ours, Call: tool.Call{ID: id, Function: tool.Function{Name: name}}}
	}
	output := func(text string) tool.Result { return tool.Result{Success: true, Output: text} }
	pending := []tool.Action{
		action(tool.NeedsApproval, "0", "c0", "f"), action(tool.NeedsOutput, "1", "c1", "f"), action(tool.NeedsOutput, "2", "c2", "g"),
		action(tool.NeedsOutput, "3", "c3", "f"), action(tool.NeedsOutput, "4", "c4", "f"), action(tool.NeedsOutput, "5", "c5", "f"),
	}
	given := dialects.Answers{
		Outputs:   []tool.Answer{{CallID: "c3", Result: output("three")}, {CallID: "4", Result: output("four")}},
		Named:     []dialects.NamedOutput{{"f", output("one")}, {"f", output("five")}, {"g", output("two")}, {"f", output("none")}, {"h", output("strange")}},
		Approvals: []tool.Approval{{CallID: "0"}},
	}
	assert.Equal(t, dialects.Answers{
		Outputs: []tool.Answer{
			{CallID: "c3", Result: output("three")}, {CallID: "4", Result: output("four")}, {CallID: "1", Result: output("one")},
			{CallID: "5", Result: output("five")}, {CallID: "2", Result: output("two")}, {CallID: "f", Result: output("none")}, {CallID: "h", Result: output("strange")},
		},
		Named:     []dialects.NamedOutput{},
		Approvals: []tool.Approval{{CallID: "0"}},
	}, given.For(pending))
	assert.Len(t, given.Outputs, 2, "it is left as it was")
	assert.Len(t, given.Named, 5)
	none := dialects.Answers{Outputs: []tool.Answer{}}
	assert.Equal(t, none, none.For(pending))
}
