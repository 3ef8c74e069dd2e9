package gemini

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

// feed gives a stream of server-sent events, each with one line of data, to a stream.
func feed(stream dialects.Stream, text string) ([]tool.StreamResponse, error) {
	var pieces []tool.StreamResponse
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			more, err := stream.Event(name, []byte(data))
			pieces, name = append(pieces, more...), ""
			if err != nil {
				return pieces, err
			}
		}
	}
	more, err := stream.End()
	return append(pieces, more...), err
}

// lines shows pieces, one on each line.
func lines(pieces []tool.StreamResponse) string {
	var text strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&text, "%s %s %q", p.ResponseType, p.ID, p.Content)
		for _, call := range p.ToolCalls {
			fmt.Fprintf(&text, " %s %s %s", call.ID, call.Function.Name, call.Function.Arguments)
		}
		if p.Data != nil {
			fmt.Fprintf(&text, " %s", p.Data)
		}
		if p.Done {
			text.WriteString(" done")
		}
		text.WriteString("\n")
	}
	return text.String()
}

func called(pieces []tool.StreamResponse) []tool.Call {
	calls := []tool.Call{}
	for _, p := range pieces {
		calls = append(calls, p.ToolCalls...)
	}
	return calls
}

func toolCall(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
}

// calls writes calls back to the provider.
func calls(t testing.TB, all ...tool.Call) string {
	t.Helper()
	writer, ok := New().(interface {
		Calls(calls []tool.Call) (json.RawMessage, error)
	})
	require.True(t, ok)
	text, err := writer.Calls(all)
	require.NoError(t, err)
	return string(text)
}
