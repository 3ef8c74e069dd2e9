package wire

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// Answers gathers what one document answers. It is for one goroutine.
type Answers struct {
	Reader
	found dialects.Answers
}

// ReadAnswers calls visit with the elements of a document, as [Reader.Elements] does, and returns
// what it has added to answers. No list is nil.
func ReadAnswers(r Reader, document []byte, visit func(answers *Answers, path string, element json.RawMessage) error) (dialects.Answers, error) {
	answers := &Answers{Reader: r, found: dialects.Answers{
		Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{},
	}}
	err := r.Elements(document, func(path string, _ int, element json.RawMessage) error {
		return visit(answers, path, element)
	})
	if err != nil {
		return dialects.Answers{}, err
	}
	return answers.found, nil
}

// Add adds the output of a call, which stands at path.
func (a *Answers) Add(path string, output tool.Answer) error {
	return add(a, &a.found.Outputs, path, output)
}

// AddNamed adds an output of a call of which only the name of its tool is known.
func (a *Answers) AddNamed(path string, output dialects.NamedOutput) error {
	return add(a, &a.found.Named, path, output)
}

// AddApproval adds the answer to a request for approval.
func (a *Answers) AddApproval(path string, approval tool.Approval) error {
	return add(a, &a.found.Approvals, path, approval)
}

// add adds one of all the answers that there can be, of whichever kind.
func add[T any](a *Answers, list *[]T, path string, answer T) error {
	if len(a.found.Outputs)+len(a.found.Named)+len(a.found.Approvals) == dialects.MaxCalls {
		return a.Fail(path, "is one answer too many; there can be %d", dialects.MaxCalls)
	}
	*list = append(*list, answer)
	return nil
}
