package mcp

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Answers reads responses to tools/call requests: one, or an array of them. Requests and
// notifications among them are passed over. Each is read as [Answer] does, but that a text that
// is the JSON of a result, as records have it, is that result: who answers is the client here.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	r := reader("answers")
	all := dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}
	err := r.Elements(document, func(path string, _ int, element json.RawMessage) error {
		m, err := readMessage(r, path, element)
		if err != nil || m.Method != "" {
			return err
		}
		if len(all.Outputs) == dialects.MaxCalls {
			return r.Fail(path, "is one answer too many; there can be %d", dialects.MaxCalls)
		}
		id, result, err := m.answer(r, path, (*wire.Outcome).Result)
		all.Outputs = append(all.Outputs, tool.Answer{CallID: id, Result: result})
		return err
	})
	if err != nil {
		return dialects.Answers{}, err
	}
	return all, nil
}
