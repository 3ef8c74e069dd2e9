package view

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestLogIsShownOnce: an error repeats the log only if it was not printed, and always keeps the tool's
// own reason.
func TestLogIsShownOnce(t *testing.T) {
	lines := func(n int) string { return strings.TrimSuffix(strings.Repeat("busy\n", n), "\n") }
	for _, test := range []struct {
		name, text, log string
		all             bool
		want            string
	}{
		{"a line", "the tool exited with code 1: no: city", "no: city\n", false, "the tool exited with code 1"},
		{"lines", "the tool exited with code 1:\na\n\nb", "\na\n\nb\n", false, "the tool exited with code 1"},
		{"a denial", "denied: files /a: no grant; the tool exited with code 1: no", "no", false, "denied: files /a: no grant; the tool exited with code 1"},
		{"a crash", "the tool crashed: unreachable: no", "no\n\n[trap at]\n" + lines(30), false, "the tool crashed: unreachable"},
		{"a log that was cut", "the tool exited with code 1:\n… b\nno", "a\n[cut after 64KiB: 5 bytes left out]\nb\nno", false, "the tool exited with code 1"},
		{"the end of a log", "the tool exited with code 1:\n… b\nc", "a\nb\nc", false, "the tool exited with code 1"},
		{"the end of a line", "the tool exited with code 1: … bc", "abc", false, "the tool exited with code 1"},
		{"as many lines as are printed", "the tool exited with code 1:\n" + lines(shownLog), lines(shownLog), false, "the tool exited with code 1"},
		{"more lines than are printed", "the tool exited with code 1:\n" + lines(shownLog) + "\nFATAL", lines(shownLog) + "\nFATAL", false,
			"the tool exited with code 1:\n" + lines(shownLog) + "\nFATAL"},
		{"all lines", "the tool exited with code 1:\n" + lines(shownLog) + "\nFATAL", lines(shownLog) + "\nFATAL", true, "the tool exited with code 1"},
		{"the tool's words", "the tool says: bob", "bob", false, "the tool says: bob"},
		{"the tool's words, which look like the host's", "the tool says: the tool exited with code 1: bob", "bob", false, "the tool says: the tool exited with code 1: bob"},
		{"the tool's words, a line of its log", "no such user: bob", "bob", false, "no such user: bob"},
		{"part of a line", "the tool's output is not JSON: b", "a: b", false, "the tool's output is not JSON: b"},
		{"no log", "the tool exited with code 1", "", false, "the tool exited with code 1"},
		{"nothing after a colon", "the tool says:", "", false, "the tool says:"},
	} {
		assert.Equal(t, test.want, withoutLog(test.text, PrintedLog(test.log, test.all)), test.name)
	}
}

func TestResult(t *testing.T) {
	for want, result := range map[string]tool.Result{
		"":                {Success: true},
		"text\n":          {Output: "text", Data: []byte(`{"a":1}`)},
		"lines\nend\n":    {Output: "lines\nend\n"},
		"{\"a\":1}\n":     {Data: []byte(`{"a":1}`)},
		"text\nmore\n":    {Output: "text", Content: []tool.Content{{Type: "text", Text: "more"}}},
		"[link: x://y]\n": {Content: []tool.Content{{Type: "link", URL: "x://y"}}},
		"[image a.png, 3 bytes; --json has them]\n":     {Content: []tool.Content{{Type: "image", Name: "a.png", MIMEType: "image/png", Data: []byte("abc")}}},
		"[image image/png, 0 bytes; --json has them]\n": {Content: []tool.Content{{Type: "image", MIMEType: "image/png"}}},
	} {
		assert.Equal(t, want, Result(result))
	}
}
