package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/examples/agent/internal/scripted"
	"github.com/caisson-run/caisson/tool"
)

func TestAServerWithoutTimeIsAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		after  string
		want   time.Duration
	}{
		"too many requests": {http.StatusTooManyRequests, "7", 7 * time.Second},
		"at once":           {http.StatusServiceUnavailable, "0", 0},
		"not said":          {http.StatusServiceUnavailable, "", time.Second},
		"a past date":       {http.StatusTooManyRequests, "Wed, 21 Oct 2015 07:28:00 GMT", 0},
		"nonsense":          {http.StatusTooManyRequests, "soon", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			busy := scripted.Answer{Status: test.status, Header: http.Header{"Retry-After": {test.after}}}
			w := newWorld(t, append([]scripted.Answer{busy}, script(t, "text")...)...)
			ran := w.run(t, "What is a caisson?")
			assert.Zero(t, ran.code, ran.errors)
			assert.Equal(t, []time.Duration{test.want}, w.pauses)
		})
	}
}

func TestAServerThatStaysBusyIsLeft(t *testing.T) {
	w := newWorld(t, make([]scripted.Answer, 9)...)
	for i := range w.endpoint.Answers {
		w.endpoint.Answers[i] = scripted.Answer{Status: http.StatusServiceUnavailable}
	}
	ran := w.run(t, "What is a caisson?")
	assert.Equal(t, exitLimit, ran.code)
	assert.Contains(t, ran.errors, "agent: error: the model's server says 503 Service Unavailable\nagent: hint: try again later\n")
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, w.pauses)
	assert.Len(t, w.endpoint.Requests(), maxAttempts)

	w = newWorld(t, scripted.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}}})
	assert.Equal(t, exitLimit, w.run(t, "What is a caisson?").code)
	assert.Empty(t, w.pauses, "nobody waits for an hour")
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		answer scripted.Answer
		want   []string
	}{
		"a wrong key, which the server repeats": {
			scripted.Answer{Status: 401, Body: []byte(`{"error":{"message":"Incorrect API key provided: ` + key + `\u001b[2J"}}`)},
			[]string{"agent: error: the model's server says 401 Unauthorized: Incorrect API key provided: [API key]\\u001b[2J\n", "agent: hint: see to it that the variable that --api-key-env names holds a key"},
		},
		"no such model": {scripted.Answer{Status: 404, Body: []byte("not found")}, []string{"404 Not Found: not found\n", "--base-url ends before /chat/completions"}},
		"a huge page":   {scripted.Answer{Status: 500, Body: bytes.Repeat([]byte("<p>\n"), 1<<20)}, []string{"500 Internal Server Error: <p> · <p>", "…\n"}},
		"elsewhere": {
			scripted.Answer{Status: 307, Header: http.Header{"Location": {"/elsewhere"}}},
			[]string{"the model's server points elsewhere (307 Temporary Redirect), where nothing is sent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.answer)
			ran := w.run(t, "What is a caisson?")
			assert.Equal(t, exitFailed, ran.code)
			for _, want := range test.want {
				assert.Contains(t, ran.errors, want)
			}
			assert.Less(t, len(ran.errors), 1000)
			assert.Len(t, w.endpoint.Requests(), 1)
		})
	}
}

func TestAStreamThatBreaksOff(t *testing.T) {
	broken := script(t, "broken")[0]
	ends, breaks := broken, broken
	breaks.Then = scripted.BreakOff
	for name, answer := range map[string]scripted.Answer{"in good order": ends, "in the middle": breaks} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answer)
			ran := w.run(t, "What is a caisson?")
			assert.Equal(t, exitFailed, ran.code)
			assert.Equal(t, "The first \n", ran.out, "what came was shown")
			assert.Contains(t, ran.errors, "agent: error: the model's answer cannot be read: ")
			assert.Contains(t, ran.errors, "broke off")
			assert.Len(t, w.endpoint.Requests(), 1, "an answer that has begun is not asked for again")
		})
	}
}

func TestHostileServers(t *testing.T) {
	content := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("a", 60_000) + `"}}]}` + "\n\n"
	for name, test := range map[string]struct {
		answer scripted.Answer
		want   string
	}{
		"endless words":    {scripted.Answer{Then: scripted.Endless, Again: []byte(content)}, "has more than 8388608 bytes"},
		"endless comments": {scripted.Answer{Then: scripted.Endless, Again: bytes.Repeat([]byte(": wait\n"), 10_000)}, "larger than 16777216 bytes"},
		"an endless line":  {scripted.Answer{Then: scripted.Endless, Again: bytes.Repeat([]byte("data: "), 10_000)}, "an event is larger than"},
		"no JSON":          {scripted.Answer{Body: []byte("data: <html>\n\n")}, "the model's answer cannot be read"},
		"nothing":          {scripted.Answer{}, "broke off"},
		"another protocol": {scripted.Answer{Body: []byte("data: [1,2]\n\ndata: [DONE]\n\n")}, "the model's answer cannot be read"},
		"endless JSON":     {scripted.Answer{Header: http.Header{"Content-Type": {"application/json"}}, Then: scripted.Endless, Again: bytes.Repeat([]byte("["), 60_000)}, "larger than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.answer)
			ran := w.run(t, "What is a caisson?")
			assert.Equal(t, exitFailed, ran.code)
			assert.Contains(t, ran.errors, test.want)
			assert.Less(t, len(ran.errors), 2000)
		})
	}
}

func TestAServerWithoutStreams(t *testing.T) {
	w := newWorld(t, scripted.Answer{
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
		Body:   []byte(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"A box."},"finish_reason":"stop"}]}`),
	})
	ran := w.run(t, "What is a caisson?")
	assert.Zero(t, ran.code, ran.errors)
	assert.Equal(t, "A box.\n", ran.out)
}

// TestAnAnswerEndsWithItsMark: some servers leave the connection open behind it.
func TestAnAnswerEndsWithItsMark(t *testing.T) {
	answer := script(t, "text")[0]
	answer.Then = scripted.Hang
	w := newWorld(t, answer)
	assert.Zero(t, w.run(t, "What is a caisson?").code)
}

// TestSilence: a server that says nothing is left after a while, whatever it has said before.
func TestSilence(t *testing.T) {
	for name, answer := range map[string]scripted.Answer{"from the beginning": {Then: scripted.Hang}, "in the middle": {Body: script(t, "broken")[0].Body, Then: scripted.Hang}} {
		t.Run(name, func(t *testing.T) {
			for name, test := range map[string]struct {
				change func(*endpoint)
				want   string
			}{
				"silence": {func(e *endpoint) { e.silence = 20 * time.Millisecond }, errSilence.Error()},
				"time":    {func(e *endpoint) { e.timeout = 20 * time.Millisecond }, "the model's answer took longer than 20ms"},
			} {
				w := newWorld(t, answer)
				e, err := newEndpoint(options{baseURL: w.url, timeout: time.Minute}, environment{transport: w.transport})
				require.NoError(t, err, name)
				test.change(e)
				_, err = e.answer(t.Context(), nil, func(tool.StreamResponse) {})
				require.EqualError(t, err, test.want)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				var known *failure
				require.ErrorAs(t, err, &known)
				assert.Equal(t, exitLimit, known.code)
			}
		})
	}
}

// TestInterrupted: Ctrl-C while the model speaks.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	answer := script(t, "broken")[0]
	answer.Then = scripted.Hang
	w := newWorld(t, answer)
	w.transport = onceAnswered{w.transport, func() { cancel(errors.New("interrupt signal received")) }}
	ran := w.runWith(ctx, t, strings.NewReader(""), "What is a caisson?")
	assert.Equal(t, exitInterrupted, ran.code)
	assert.Contains(t, ran.errors, "agent: error: interrupted\n")
}

// onceAnswered calls a function when an answer has begun.
type onceAnswered struct {
	http.RoundTripper
	then func()
}

func (o onceAnswered) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(request)
	o.then()
	return response, err
}
