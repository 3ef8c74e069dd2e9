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
	return wire.ReadAnswers(reader("answers"), document, func(found *wire.Answers, path string, element json.RawMessage) error {
		m, err := readMessage(found.Reader, path, element)
		if err != nil || m.Method != "" {
			return err
		}
		id, result, err := m.answer(found.Reader, path, (*wire.Outcome).Result)
		if err != nil {
			return err
		}
		return found.Add(path, tool.Answer{CallID: id, Result: result})
	})
}
