package tool_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"/project/ü x":          "/project/ü x",
		"a\x1b[31m\n\x00b":      "a\uFFFD[31m\uFFFD\uFFFDb",
		"a\u202eb\u200bc":       "a\uFFFDb\uFFFDc", // what reorders text, and what has no width
		"a\xffb":                "a\uFFFDb",
		"1234567890123456":      "1234567890123456",
		"12345678901234567":     "1234567890123456…",
		"123456789012345\u00fc": "123456789012345…", // no half of a character is left
	} {
		assert.Equal(t, want, tool.Shown(text, 16), "%q", text)
	}
}
