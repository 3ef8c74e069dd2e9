package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// calls returns a streamed response with some text and one tool call.
func calls(t *testing.T, content, name string, arguments map[string]any) string {
	t.Helper()
	written, err := json.Marshal(arguments)
	require.NoError(t, err)
	chunk := func(delta map[string]any, reason any) string {
		encoded, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": []any{
			map[string]any{"index": 0, "delta": delta, "finish_reason": reason},
		}})
		require.NoError(t, err)
		return "data: " + string(encoded) + "\n\n"
	}
	call := map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": name, "arguments": string(written)}}
	said := chunk(map[string]any{"role": "assistant", "content": content, "tool_calls": []any{call}}, nil)
	return said + chunk(map[string]any{}, "tool_calls") + "data: [DONE]\n\n"
}

// TestNothingTypedAheadApproves: lines that arrive before the question approve nothing, whether the model
// asked for them or they were pasted. The control types the same lines when asked.
func TestNothingTypedAheadApproves(t *testing.T) {
	remove := calls(t, "Press y and Enter so that I go on. ", "file_delete", map[string]any{"path": "notes.txt"})
	for name, test := range map[string]struct {
		ahead, typed string
		gone         bool
	}{
		"a yes":                 {"y\n", "n\n", false},
		"several":               {"y\nyes\ns\n", "n\n", false},
		"nothing after it":      {"y\n", "", false},
		"behind a wrong answer": {"", "what?\ny\n", true},
		"control":               {"", "y\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, remove, script(t, "text")[0])
			w.ahead, w.typed = test.ahead, test.typed
			_, shown, err := w.run(t, "Tidy up.")
			require.NoError(t, err)
			assert.Contains(t, shown, "file_delete needs your approval")
			assert.Equal(t, test.gone, !w.hasFile())
			assert.Equal(t, test.ahead != "", strings.Contains(shown, "typed before you were asked"))
		})
	}
}

// TestPastesOfAnyLength: nothing pasted before the question, or after a line that does not answer it,
// counts as an answer, whatever its length. The controls type one line per question.
func TestPastesOfAnyLength(t *testing.T) {
	for _, test := range []struct {
		ahead, typed string // lines typed at each question, separated by bars
		approved     bool
	}{
		{strings.Repeat("y\n", 50_000), "n\n", false},
		{"", "what?\ny\n|n\n", false},
		{"", "what?\n|y\n", true},
		{"", "y\n", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newTerminal("")
			c.lines = strings.Split(test.typed, "|")
			p := newPerson(&typing{c, test.ahead}, c, true)
			approval, err := p.approve(t.Context(), tool.Action{Tool: "file_delete"})
			require.NoError(t, err)
			assert.Equal(t, test.approved, approval.Approve, test.typed)
			close(c.asked)
			for range p.lines { // until it is at its end
			}
		})
	}
}

// lastScreen returns the last lines of a terminal of 80 columns and 24 lines before the prompt, and
// the prompt.
func lastScreen(t *testing.T, errors string) string {
	t.Helper()
	at := strings.Index(errors, "[y]es")
	require.Positive(t, at, "nothing was asked")
	end := at + strings.IndexByte(errors[at:], ':')
	var rows []string
	for line := range strings.Lines(errors[:end]) {
		for len(line) > 80 {
			rows, line = append(rows, line[:80]), line[80:]
		}
		rows = append(rows, line)
	}
	return strings.Join(rows[max(0, len(rows)-24):], "")
}

// TestALongCallIsNamedWhereItIsApproved: however long the arguments, the screen with the question names
// the tool. Short arguments are the control: they fit on the screen.
func TestALongCallIsNamedWhereItIsApproved(t *testing.T) {
	long := strings.Repeat("x ", 300_000) + "file_read needs your approval: harmless"
	var many []string
	for range 500 {
		many = append(many, `"a"`)
	}
	for name, test := range map[string]struct {
		arguments string
		long      bool
	}{
		"a long text":      {`{"path":"notes.txt","content":` + quote(t, long) + `}`, true},
		"many lines":       {`{"path":"notes.txt","content":"","more":[` + strings.Join(many, ",") + `]}`, true},
		"what fits itself": {`{"path":"notes.txt","content":"short"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var terminal strings.Builder
			p := &person{out: &terminal, lines: closed()}
			_, err := p.approve(t.Context(), tool.Action{Tool: "file_write", Reason: "ask", Arguments: json.RawMessage(test.arguments)})
			require.NoError(t, err)
			screen := lastScreen(t, terminal.String())
			assert.Contains(t, screen, "file_write: [y]es")
			assert.Equal(t, test.long, strings.Contains(screen, "scroll up to see all of them"))
			assert.Equal(t, test.long, !strings.Contains(screen, "needs your approval: ask"), "the control: the rest has scrolled away")
		})
	}
}

// closed is a terminal whose input has ended.
func closed() <-chan string {
	lines := make(chan string)
	close(lines)
	return lines
}

func quote(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}

// TestALongCallIsStillRun once it is approved.
func TestALongCallIsStillRun(t *testing.T) {
	content := strings.Repeat("x ", 30_000)
	w := newWorld(t, calls(t, "", "file_write", map[string]any{"path": "notes.txt", "content": content}), script(t, "text")[0])
	w.policy, w.typed = "ask: [file_write]\n", "y\n"
	_, shown, err := w.run(t, "Write.")
	require.NoError(t, err)
	assert.Contains(t, shown, content, "all of it is shown")
	written, err := os.ReadFile(filepath.Join(w.project, "notes.txt"))
	require.NoError(t, err)
	assert.Equal(t, content, string(written))
}

// TestApprovalsShowWhatIsApproved: different calls look different, and escapes hide nothing. The control
// is text that is only displayed.
func TestApprovalsShowWhatIsApproved(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"path":"\u006eotes.txt"}`:                            `"path": "notes.txt"`,
		`{"path":"https:\/\/\u0065xample.com/<a>&"}`:           `"path": "https://example.com/<a>&"`,
		`{"path":"\u202etxt.seton\u0007\u007f\u2028"}`:         `"path": "\u202etxt.seton\u0007\u007f\u2028"`,
		"{\"path\":\"a\U000e0064\U000e007f\"}":                 `"path": "a\U000e0064\U000e007f"`,
		`{"path":"a\udb40\udc64"}`:                             `"path": "a\U000e0064"`,
		"{\"path\":\"a\u200b\u2060\ufeff\u00ad\u3164\u200d\"}": `"path": "a\u200b\u2060\ufeff\u00ad\u3164\u200d"`,
		"{\"path\":\"a\ufe0f\u034f\u200c\"}":                   `"path": "a\ufe0f\u034f\u200c"`,
		`{"path":"a\\u200b"}`:                                  `"path": "a\\u200b"`,
		`{"n":12345678901234567890.10e400}`:                    `"n": 12345678901234567890.10e400`,
		`{"path":"ü漢👩"}`:                                       `"path": "ü漢👩"`,
	} {
		var terminal strings.Builder
		p := &person{out: &terminal, lines: closed()}
		_, err := p.approve(t.Context(), tool.Action{Tool: "file_delete", Reason: "ask", Arguments: json.RawMessage(arguments)})
		require.NoError(t, err)
		assert.Contains(t, terminal.String(), "\n    "+want+"\n", arguments)
	}
	assert.Equal(t, "👩\u200d👩 ❤\ufe0f می\u200cخواهم \\u200b\\U000e0064", visible("👩\u200d👩 ❤\ufe0f می\u200cخواهم \u200b\U000e0064"))
}

// FuzzExact: nothing is invisible, and different texts look different.
func FuzzExact(f *testing.F) {
	f.Add("a\u200b\U000e0064\x1b", "a")
	f.Add("\u202e", "\u202d")
	f.Fuzz(func(t *testing.T, one, other string) {
		one, other = quote(t, strings.ToValidUTF8(one, "")), quote(t, strings.ToValidUTF8(other, ""))
		shown := exact(indented(json.RawMessage(one)))
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && tool.Deceives(r) }), "%q", shown)
		require.Equal(t, shown, visible(shown), "it is shown unchanged")
		require.Equal(t, one == other, shown == exact(indented(json.RawMessage(other))), "%q and %q", one, other)
	})
}
