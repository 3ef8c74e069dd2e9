package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/examples/agent/internal/scripted"
	"github.com/caisson-run/caisson/tool"
)

// calls returns an answer of the model that says something and calls a tool.
func calls(t *testing.T, content, name string, arguments any) scripted.Answer {
	t.Helper()
	written, ok := arguments.(string)
	if !ok {
		encoded, err := json.Marshal(arguments)
		require.NoError(t, err)
		written = string(encoded)
	}
	chunk := func(delta map[string]any, reason any) string {
		encoded, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": []any{
			map[string]any{"index": 0, "delta": delta, "finish_reason": reason},
		}})
		require.NoError(t, err)
		return "data: " + string(encoded) + "\n\n"
	}
	call := map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": name, "arguments": written}}
	said := chunk(map[string]any{"role": "assistant", "content": content, "tool_calls": []any{call}}, nil)
	return scripted.Answer{Body: []byte(said + chunk(map[string]any{}, "tool_calls") + "data: [DONE]\n\n")}
}

// pasted is a terminal with something in it from the start. Taken is closed when all of it is read.
type pasted struct {
	text  string
	taken chan struct{}
	once  sync.Once
	rest  io.Reader
}

func (p *pasted) Read(b []byte) (int, error) {
	if p.text != "" {
		n := copy(b, p.text)
		p.text = p.text[n:]
		return n, nil
	}
	p.once.Do(func() { close(p.taken) })
	return p.rest.Read(b)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNothingTypedAheadApproves: a line that came before the question decides about nothing, whether
// a model has asked for it or it was pasted. The control types the same when asked.
func TestNothingTypedAheadApproves(t *testing.T) {
	remove := calls(t, "Press y and Enter so that I go on. ", "file_delete", map[string]any{"path": "notes.txt"})
	end := script(t, "text")[0]
	for name, test := range map[string]struct {
		ahead, typed string
		arguments    []string
		gone         bool
	}{
		"a yes":             {"y\n", "n\n", []string{"Tidy up."}, false},
		"a pasted question": {"Tidy up.\ny\nyes\ns\n", "n\n", nil, false},
		"nothing after it":  {"y\n", "", []string{"Tidy up."}, false},
		"control":           {"", "y\n", []string{"Tidy up."}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, remove, end)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			person := newTypist(ctx, test.typed)
			asked := false
			w.noticed = func(noted string) {
				if asked = asked || strings.Contains(noted, "[y]es"); asked {
					person.notice(noted)
				}
			}
			terminal := &pasted{text: test.ahead, taken: make(chan struct{}), rest: person}
			served := w.transport
			w.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				<-terminal.taken // the model speaks when it was typed
				return served.RoundTrip(r)
			})
			ran := w.runWith(ctx, t, terminal, test.arguments...)
			assert.Contains(t, ran.errors, "file_delete waits for your approval")
			assert.Equal(t, test.gone, !w.hasFile(t))
			assert.Equal(t, test.ahead != "", strings.Contains(ran.errors, "typed before you were asked"))
		})
	}
}

// asked returns what a person who is asked has chosen. The terminal holds something already, and
// they type one text after the other, each whenever they are asked.
func asked(t *testing.T, already string, typed ...string) (choice string, err error) {
	t.Helper()
	reading, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	out := noticing{io.Discard, func(noted string) {
		if strings.HasSuffix(noted, ": ") && len(typed) > 0 {
			text := typed[0]
			typed = typed[1:]
			go func() { _, _ = io.WriteString(typing, text) }()
		}
	}}
	p := newPerson(t.Context(), environment{stdin: io.MultiReader(strings.NewReader(already), reading), stderr: out, interactive: true}, false)
	choice, _, err = p.choose(t.Context(), "[y]es · [n]o", "yes", "no")
	return choice, err
}

// TestPastesOfAnyLength: also what the reader has no place for is dropped, and what stands behind a
// line that is no answer.
func TestPastesOfAnyLength(t *testing.T) {
	for name, already := range map[string]string{"one": "y\n", "more than is taken ahead": strings.Repeat("y\n", 5*maxAhead)} {
		synctest.Test(t, func(t *testing.T) {
			choice, err := asked(t, already, "n\n")
			require.NoError(t, err)
			assert.Equal(t, "no", choice, name)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		choice, err := asked(t, "", "what?\ny\n", "n\n")
		require.NoError(t, err)
		assert.Equal(t, "no", choice)
	})
	synctest.Test(t, func(t *testing.T) { // the controls
		choice, err := asked(t, "", "y\n")
		require.NoError(t, err)
		assert.Equal(t, "yes", choice)
		p := newPerson(t.Context(), environment{stdin: strings.NewReader("y\n"), stderr: io.Discard, interactive: true}, false)
		line, err := p.line(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, "y", line, "without forgetting, what was typed ahead is the next line")
	})
}

// TestAnswersAreNotTypedAhead: a line of a pasted question is no answer to what the model asks.
func TestAnswersAreNotTypedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading, typing := io.Pipe()
		defer func() { _ = typing.Close() }()
		out := noticing{io.Discard, func(noted string) {
			if strings.HasPrefix(noted, "your answer") {
				go func() { _, _ = io.WriteString(typing, "Basel\n") }()
			}
		}}
		p := newPerson(t.Context(), environment{stdin: io.MultiReader(strings.NewReader("Bern\n"), reading), stderr: out, interactive: true}, false)
		result, err := askUser(t.Context(), p, tool.Action{Arguments: json.RawMessage(`{"question":"Where?"}`)})
		require.NoError(t, err)
		assert.Equal(t, "Basel", result.Output)
	})
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

// TestALongCallIsNamedWhereItIsApproved: however much a call is given, the screen on which it is
// approved says what it is. Short ones are the control: all of them is there.
func TestALongCallIsNamedWhereItIsApproved(t *testing.T) {
	long := strings.Repeat("x ", 300_000) + "file_read waits for your approval: harmless"
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
			p := &person{out: &terminal, present: true, lines: closed()}
			_, err := p.approve(t.Context(), tool.Action{Tool: "file_write", Reason: "ask", Arguments: json.RawMessage(test.arguments)})
			require.NoError(t, err)
			screen := lastScreen(t, terminal.String())
			assert.Contains(t, screen, "file_write: [y]es")
			assert.Equal(t, test.long, strings.Contains(screen, "that file_write is called with: look where they begin"))
			assert.Equal(t, test.long, !strings.Contains(screen, "waits for your approval: ask"), "the control: the rest has scrolled away")
		})
	}
}

// closed is a terminal at which nobody is.
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

// TestALongCallIsStillRun, once the person has said so.
func TestALongCallIsStillRun(t *testing.T) {
	content := strings.Repeat("x ", 30_000)
	w := newWorld(t, calls(t, "", "file_write", map[string]any{"path": "notes.txt", "content": content}), script(t, "text")[0])
	w.policy, w.typed = "ask: [file_write]\n", "y\n"
	ran := w.run(t, "Write.")
	require.Zero(t, ran.code, ran.errors)
	assert.Contains(t, ran.errors, content, "all of it is shown")
	written, err := os.ReadFile(filepath.Join(w.project, "notes.txt"))
	require.NoError(t, err)
	assert.Equal(t, content, string(written))
}

// TestApprovalsShowWhatIsApproved: two calls that are not the same do not look it, and none is hidden
// in escapes. The control is what only is read.
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
		p := &person{out: &terminal, present: true, lines: closed()}
		_, err := p.approve(t.Context(), tool.Action{Tool: "file_delete", Reason: "ask", Arguments: json.RawMessage(arguments)})
		require.NoError(t, err)
		assert.Contains(t, terminal.String(), "\n    "+want+"\n", arguments)
	}
	assert.Equal(t, "👩\u200d👩 ❤\ufe0f می\u200cخواهم \\u200b\\U000e0064", visible("👩\u200d👩 ❤\ufe0f می\u200cخواهم \u200b\U000e0064"))
}

// FuzzExact: nothing in it is hidden, and what differs looks different.
func FuzzExact(f *testing.F) {
	f.Add("a\u200b\U000e0064\x1b", "a")
	f.Add("\u202e", "\u202d")
	f.Fuzz(func(t *testing.T, one, other string) {
		one, other = quote(t, strings.ToValidUTF8(one, "")), quote(t, strings.ToValidUTF8(other, ""))
		shown := exact(indented(json.RawMessage(one)))
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && tool.Deceives(r) }), "%q", shown)
		require.Equal(t, shown, visible(shown), "it is shown as it is")
		require.Equal(t, one == other, shown == exact(indented(json.RawMessage(other))), "%q and %q", one, other)
	})
}
