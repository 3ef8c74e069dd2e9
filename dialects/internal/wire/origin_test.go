package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestOrigins(t *testing.T) {
	r := Reader{Op: "response", Dialect: "test"}
	none := noerr.Get(Origin(r, Member("a", nil), Member("b", json.RawMessage("null"))))(t)
	assert.Empty(t, none)
	origin := noerr.Get(Origin(r, Member("a", json.RawMessage(`{ "x": 1.50 }`)), Member("b", nil), Member("c", json.RawMessage(`"<"`))))(t)
	assert.Equal(t, `{"test":{"a":{"x":1.50},"c":"<"}}`, origin)
	require.ErrorContains(t, noerr.Error(Origin(r, Member("a", json.RawMessage(`"`+strings.Repeat("x", maxOrigin)+`"`)))), "test response: a: has, with what else has to be sent back with the call, more than 4096 bytes")

	var back struct{ A, C json.RawMessage }
	FromOrigin("other", &tool.Call{Origin: origin}, &back)
	assert.Nil(t, back.A)
	var named struct {
		A json.RawMessage `json:"a"`
	}
	FromOrigin("test", &tool.Call{Origin: origin}, &named)
	assert.Equal(t, `{"x":1.50}`, string(named.A))
}
