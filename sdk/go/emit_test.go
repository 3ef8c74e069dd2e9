package caisson

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEmissionsThatJSONWouldChange are refused before they are sent, as are those that it cannot write.
func TestEmissionsThatJSONWouldChange(t *testing.T) {
	for name, emit := range map[string]func(hostFunction) error{
		"text":             func(f hostFunction) error { return emitText(f, "a\xff") },
		"title":            func(f hostFunction) error { return emitLink(f, "https://example.com/", "\xff") },
		"URL":              func(f hostFunction) error { return emitLink(f, "https://example.com/\xff", "") },
		"media type":       func(f hostFunction) error { return emitImage(f, "image/\xff", []byte{1}, false) },
		"value":            func(f hostFunction) error { return emitJSON(f, func() {}) },
		"number":           func(f hostFunction) error { return emitJSON(f, math.Inf(1)) },
		"no JSON":          func(f hostFunction) error { return emitJSON(f, json.RawMessage("{")) },
		"fraction":         func(f hostFunction) error { return emitProgress(f, 1.5, "a") },
		"no number at all": func(f hostFunction) error { return emitProgress(f, math.NaN(), "a") },
	} {
		h := &host{}
		assert.ErrorIs(t, emit(h.function("f")), Invalid, name)
		assert.Empty(t, h.requests, name)
	}
}

// TestEmissionsAreNoLongerThanTheyMust: what a call may say is counted by its requests.
func TestEmissionsAreNoLongerThanTheyMust(t *testing.T) {
	h := &host{}
	require.NoError(t, emitText(h.function("f"), "<&>"))
	require.NoError(t, emitJSON(h.function("f"), map[string]string{"a": "<&>"}))
	require.NoError(t, emitJSON(h.function("f"), nil))
	assert.Equal(t, []string{`{"type":"text","text":"<&>"}`, `{"type":"json","data":{"a":"<&>"}}`, `{"type":"json","data":null}`}, h.requests)
}
