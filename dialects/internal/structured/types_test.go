package structured

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// TestToolsAreFunctionsUnlessTheirTypeIsKnown: a provider that does not know a type is offered the
// tool with the same parameters.
func TestToolsAreFunctionsUnlessTheirTypeIsKnown(t *testing.T) {
	definitions := []tool.Definition{
		{Name: "patch", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"text"}`), Parameters: json.RawMessage(property(`{"type":"string"}`))},
		{Name: "local_shell", Type: tool.LocalShellCall, Parameters: json.RawMessage(property(`{"type":"string"}`))},
		{Name: "note", Type: "prose", Parameters: json.RawMessage(property(`{"type":"string"}`))},
	}
	for _, test := range []struct{ known, want []string }{
		{nil, []string{"function", "function", "function"}},
		{[]string{tool.CustomCall}, []string{"custom", "function", "function"}},
		{[]string{tool.CustomCall, tool.LocalShellCall}, []string{"custom", "local_shell", "function"}},
	} {
		tools, findings, err := Offer(wire.Reader{}, definitions, dialects.DefinitionOptions{Strict: true}, test.known...)
		require.NoError(t, err)
		assert.Empty(t, findings)
		var types []string
		for _, offered := range tools {
			types = append(types, offered.Type)
			isFunction := offered.Type == tool.FunctionCall
			assert.Equal(t, isFunction, offered.Parameters != nil)
			assert.Equal(t, isFunction, offered.Strict)
			assert.Equal(t, offered.Type == tool.CustomCall, offered.Format != nil)
		}
		assert.Equal(t, test.want, types)
	}
}
