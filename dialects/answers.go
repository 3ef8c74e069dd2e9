package dialects

import "github.com/caisson-run/caisson/tool"

// Answers are what a client hands in for calls that wait. None of it is checked against what was
// asked for. A [Dialect] returns no list that is nil.
type Answers struct {
	Outputs []tool.Answer
	// Named are outputs that say which tool they are of, and not which call: Gemini has those for
	// calls without an id. See [Answers.For].
	Named     []NamedOutput
	Approvals []tool.Approval
}

// NamedOutput is what a call came to of which only the name of its tool is known.
type NamedOutput struct {
	Tool   string // as the model called it
	Result tool.Result
}

// For returns the answers with all that are Named among the Outputs, given what is waited for. They
// go to the calls of their tool that wait for an output and have none, in the order of both. One
// that no call is left for has its tool's name for an id, so that whoever takes the answers finds
// it unknown.
func (a Answers) For(pending []tool.Action) Answers {
	if len(a.Named) == 0 {
		return a
	}
	answered := make(map[string]bool, len(a.Outputs))
	for _, output := range a.Outputs {
		answered[output.CallID] = true
	}
	waiting := map[string][]string{} // ids of calls by the name of the tool
	for _, action := range pending {
		if name := action.Call.Function.Name; action.Type == tool.NeedsOutput && !answered[action.CallID] && !answered[action.Call.ID] {
			waiting[name] = append(waiting[name], action.CallID)
		}
	}
	matched := Answers{Outputs: append([]tool.Answer{}, a.Outputs...), Named: []NamedOutput{}, Approvals: a.Approvals}
	for _, named := range a.Named {
		id := named.Tool
		if left := waiting[named.Tool]; len(left) > 0 {
			id, waiting[named.Tool] = left[0], left[1:]
		}
		matched.Outputs = append(matched.Outputs, tool.Answer{CallID: id, Result: named.Result})
	}
	return matched
}
