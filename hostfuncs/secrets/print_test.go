package secrets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
)

// TestNoPrintedFormShowsAValue, nor its bytes in decimal or hexadecimal.
func TestNoPrintedFormShowsAValue(t *testing.T) {
	const value = "0123456789abcdef"
	set := one(t, inHeader("X-Api-Key"), value)
	encoded := must(json.Marshal(map[string]any{"pointer": set, "value": *set}))
	assert.JSONEq(t, `{"pointer":["SEARCH_KEY"],"value":["SEARCH_KEY"]}`, string(encoded))
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "set", set, "value", *set)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "set", set, "value", *set, slog.Group("g", "any", []any{set}))
	shown := []string{log.String(), string(encoded), set.String(), fmt.Sprint(errors.Join(fmt.Errorf("%v", set)))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%t", "%e", "%U"} {
		for _, printed := range []any{set, *set, &set, []*secrets.Set{set}, struct{ Inner *secrets.Set }{set}, struct{ inner secrets.Set }{*set}} {
			shown = append(shown, fmt.Sprintf(verb, printed))
		}
	}
	for _, text := range shown {
		assert.NotContains(t, text, value)
		assert.NotContains(t, text, "30313233", "in hexadecimal")
		assert.NotContains(t, text, "48 49 50", "in decimal")
		assert.NotContains(t, text, "0x30, 0x31")
	}
	assert.Equal(t, "secrets.Set(SEARCH_KEY)", fmt.Sprintf("%#v", *set))
}
