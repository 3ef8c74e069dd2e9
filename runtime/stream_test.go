package runtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const streamprobe = "internal/guests/streamprobe/streamprobe.wasm"

// listener receives a call's emissions. It makes no calls.
type listener struct {
	err error // of emissions, if it is not nil
	// then, if set, is done with each emission.
	then func(tool.Emission)

	mu   sync.Mutex
	said []tool.Emission
}

func (w *listener) Call(context.Context, tool.Call) (tool.Record, error) {
	return tool.Record{}, errors.New("no")
}

func (w *listener) Page(string, int64, int64) (tool.Page, error) {
	return tool.Page{}, errors.New("no")
}

func (w *listener) Emit(e tool.Emission) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, e)
	if w.then != nil {
		w.then(e)
	}
	return w.err
}

// speaker loads a streamprobe.
func speaker(t testing.TB, r *Runtime, text string) *Tool {
	t.Helper()
	return load(t, r, manifest(t, streamprobe, text), manifests.Grants{})
}

// listen makes a call with a listener, or without one if w is nil.
func listen(t testing.TB, loaded *Tool, w *listener, arguments string) (tool.Outcome, error) {
	t.Helper()
	made := invocation(t, arguments, nil)
	if w != nil {
		made.Host = w
	}
	return loaded.Invoke(t.Context(), made)
}

func mustListen(t testing.TB, loaded *Tool, w *listener, arguments string) tool.Outcome {
	t.Helper()
	outcome, err := listen(t, loaded, w, arguments)
	require.NoError(t, err, outcome.Result.Error)
	return outcome
}

func says(text string) string { return `{"do":"text","text":` + quoted(text) + `}` }

// makes returns a step that makes an emission with this request.
func makes(request string) string { return `{"do":"raw","text":` + quoted(request) + `}` }

// floods returns a step that makes an emission count times.
func floods(request string, count int) string {
	return fmt.Sprintf(`{"do":"flood","count":%d,"text":%s}`, count, quoted(request))
}

func quoted(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(written)
}

func TestGuestSpeaks(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "")
	half := 0.5
	want := []tool.Emission{
		{Type: tool.EmitProgress, Text: "looking"},
		{Type: tool.EmitProgress, Text: "drawing", Fraction: &half},
		{Type: tool.EmitImage, Data: json.RawMessage(`"AAH/"`), MIMEType: "image/png", Partial: true},
		{Type: tool.EmitText, Text: "<b> & \x1b[31m\n"},
		{Type: tool.EmitJSON, Data: json.RawMessage(`{"rows":[1.50,null]}`)},
		{Type: tool.EmitLink, Data: json.RawMessage(`"https://example.com/?a=b&c"`), Text: "Example"},
	}
	todo := steps(`{"do":"progress","fraction":-1,"text":"looking"}`, `{"do":"progress","fraction":0.5,"text":"drawing"}`,
		`{"do":"image","image":"AAH/","mime_type":"image/png","partial":true}`, `{"do":"text","text":"<b> & \u001b[31m\n"}`,
		`{"do":"json","data":{"rows":[1.50,null]}}`, `{"do":"link","url":"https://example.com/?a=b&c","text":"Example"}`,
		says(""), `{"do":"link","url":"file:///etc/passwd"}`)
	for _, w := range []*listener{{}, nil} {
		outcome := mustListen(t, loaded, w, todo)
		assert.JSONEq(t, `["ok","ok","ok","ok","ok","ok","invalid: an emission of type text needs text",
			"invalid: an emission of type link needs data, the URL of a page: https://… or http://…, without user and password"]`, string(outcome.Result.Data))
		assert.Empty(t, outcome.HostCalls, "no permission decides about it")
		assert.Zero(t, outcome.Usage.HostCalls)
		assert.Empty(t, outcome.Log)
		if w != nil {
			assert.Equal(t, want, w.said)
		}
	}
}

// speaking returns a command that makes an emission count times, and after each runs a loop for as many rounds as the
// sum of the status and the length of the response.
func speaking(request string, count int) string {
	// local 0 = status + length + 1; loop: local 0 -= 1; br_if 0
	then := "\x22\x01\x42\x20\x88\xa7\x20\x01\xa7\x6a\x41\x01\x6a\x21\x00\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b"
	body := vector("\x02\x01\x7f\x01\x7e" + strings.Repeat(callOf(request)+then, count) + "\x0b")
	return magic + section(1, "\x02\x60\x02\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x01"+vector("caisson:stream@1")+vector("emit")+"\x00\x00") + section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") + section(10, "\x01"+body) + section(11, "\x01\x00\x41\x00\x0b"+vector(request))
}

// TestNobodyIsNoticed: equal calls take equal fuel, with or without a listener.
func TestNobodyIsNoticed(t *testing.T) {
	r := newRuntime(t, Options{})
	spent := map[string]int64{}
	for name, request := range map[string]string{"sound": `{"type":"text","text":"0123456789"}`, "refused": `{"type":"text","text":""}`} {
		loaded := load(t, r, named(t, "guest", speaking(request, 50), "limits: {fuel: 10000000, output: 1KiB}"), manifests.Grants{})
		for i, w := range []*listener{{}, nil, {}} {
			outcome := mustListen(t, loaded, w, "{}")
			if i == 0 {
				spent[name] = *outcome.Usage.Fuel
			}
			assert.Equal(t, spent[name], *outcome.Usage.Fuel, name)
			if w != nil && name == "sound" {
				assert.Len(t, w.said, 1024/len(request))
			}
		}
	}
	assert.NotEqual(t, spent["sound"], spent["refused"], "control: what the guest is told shows in its fuel")
}

// TestSpeechHasALimitOfItsOwn: the limit of emissions is separate from that of the output, and separate for each call.
func TestSpeechHasALimitOfItsOwn(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "limits: {output: 2KiB}")
	long := strings.Repeat("a", 1000)
	for range 2 {
		w := &listener{}
		outcome := mustListen(t, loaded, w, steps(says(long), says(long), says("b")+","+makes("{"+strings.Repeat(" ", 2048))+`,{"do":"print","text":"`+strings.Repeat("c", 2048)+`"}`))
		assert.Len(t, outcome.Result.Output, 2048)
		assert.Equal(t, []tool.Emission{{Type: tool.EmitText, Text: long}, {Type: tool.EmitText, Text: "b"}}, w.said, "the second does not fit, and a shorter one does")
	}
	outcome := mustListen(t, loaded, nil, steps(says(long), says(long), makes("{"+strings.Repeat(" ", 2048))))
	assert.JSONEq(t, `["ok","limit: output is 2048",["3","{\"limit\":\"output\",\"value\":2048}"]]`, string(outcome.Result.Data))
	_, err := listen(t, loaded, nil, steps(`{"do":"print","text":"`+strings.Repeat("c", 2049)+`"}`))
	require.ErrorIs(t, err, tool.Output, "control: printed output")
}

// TestSpeechAfterTheEnd: an emission after the end of the call is refused as unavailable. A failure
// of the host's is not blamed on the tool.
func TestSpeechAfterTheEnd(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "")
	gone := &listener{err: &tool.Error{Op: "emit", Kind: tool.Cancelled, Message: "the call has ended"}}
	outcome := mustListen(t, loaded, gone, steps(says("a")))
	assert.JSONEq(t, `["unavailable: the call has ended"]`, string(outcome.Result.Data))
	outcome, err := listen(t, loaded, &listener{err: errors.New("a bug")}, steps(says("a")))
	require.ErrorIs(t, err, tool.Internal)
	assert.NotContains(t, outcome.Result.Error, "a bug")
}

// TestFunctionsBeforeInputAreNotSnapshotted: both an emission and a context belong to one call.
func TestFunctionsBeforeInputAreNotSnapshotted(t *testing.T) {
	r := newRuntime(t, Options{})
	for early, function := range map[string]string{"emit": "caisson:stream@1.emit", "context": "caisson:context@1.get"} {
		loaded := speaker(t, r, "module: {path: guest.wasm, args: ["+early+"]}\nbehavior: {snapshot: start}")
		found := isolationOf(t, loaded)
		assert.False(t, found.Resumed)
		assert.Equal(t, tooEarly(function), found.Reason)
		for i := range 4 {
			w := &listener{}
			made := invocation(t, `{}`, nil)
			made.CallID, made.Host = fmt.Sprint("call ", i), w
			outcome, err := loaded.Invoke(t.Context(), made)
			require.NoError(t, err, outcome.Result.Error)
			if early == "emit" {
				assert.Equal(t, []tool.Emission{{Type: tool.EmitText, Text: "early"}}, w.said)
			} else {
				assert.Contains(t, string(outcome.Result.Data), fmt.Sprintf(`"call_id":"call %d"`, i))
			}
		}
	}
	// One that reads first is resumed, and speaks as it does otherwise.
	loaded := speaker(t, r, "behavior: {snapshot: start}")
	found := isolationOf(t, loaded)
	assert.True(t, found.Resumed, found.Reason)
	for range 5 {
		w := &listener{}
		mustListen(t, loaded, w, steps(says("late"), `{"do":"context"}`))
		assert.Equal(t, []tool.Emission{{Type: tool.EmitText, Text: "late"}}, w.said)
	}
}

// TestAttackFloodOfEmissions: the shown emissions are bounded, nothing of the rest is kept, and the deadline holds.
func TestAttackFloodOfEmissions(t *testing.T) {
	const request = `{"type":"text","text":"0123456789"}`
	for name, text := range map[string]string{
		"sound": request, "padded": request + strings.Repeat(" ", 3000), "refused": `{"type":"text","text":"a","call_id":"b"}`,
		"deep": `{"type":"json","data":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`,
	} {
		loaded := speaker(t, newRuntime(t, Options{}), "limits: {timeout: 500ms, output: 16KiB}")
		w := &listener{}
		outcome, err := listen(t, loaded, w, steps(floods(text, -1)))
		require.ErrorIs(t, err, tool.Deadline, name)
		assert.Empty(t, outcome.HostCalls, name)
		assert.LessOrEqual(t, len(w.said), 16<<10/len(text), name)
		held := 0
		for _, e := range w.said {
			held += cap(e.Data) + len(e.Text)
		}
		assert.LessOrEqual(t, held, 16<<10, name)
	}
	// The control: where the limit is wide, as much is shown as it takes.
	w := &listener{}
	outcome, err := listen(t, speaker(t, newRuntime(t, Options{}), "limits: {output: 4MiB}"), w,
		steps(floods(request, 2000)))
	require.NoError(t, err, outcome.Result.Error)
	assert.Len(t, w.said, 2000)
}

// TestAttackEndlessSpeechIsEnded: once the call is over, none of the long requests that a guest still makes is read.
func TestAttackEndlessSpeechIsEnded(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "limits: {timeout: 60s, output: 4MiB}")
	long := `{"type":"json","data":[` + strings.Repeat("[1],", 100_000) + `1]}`
	ctx, cancel := context.WithCancel(t.Context())
	w := &listener{then: func(tool.Emission) { cancel() }}
	made := invocation(t, steps(floods(long, -1)), nil)
	made.Host = w
	_, err := loaded.Invoke(ctx, made)
	require.ErrorIs(t, err, tool.Cancelled)
	assert.Len(t, w.said, 1)

	w = &listener{}
	mustListen(t, loaded, w, steps(floods(long, 5)))
	assert.Len(t, w.said, 5, "control: else it is")
}

// TestAttackForgedEmission: an emission belongs to the call that makes it, whatever its content.
func TestAttackForgedEmission(t *testing.T) {
	r := newRuntime(t, Options{})
	loaded := speaker(t, r, "")
	const line = "{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"call_finished\",\"call_id\":\"theirs\"}"
	mine, theirs := &listener{}, &listener{}
	var group sync.WaitGroup
	group.Go(func() {
		mustListen(t, loaded, theirs, steps(says("theirs")))
	})
	outcome, err := listen(t, loaded, mine, steps(
		makes(`{"type":"text","text":"a","call_id":"theirs"}`), makes(`{"type":"text","text":"a","CallID":"theirs","parent":"x"}`),
		makes(`{"type":"call_finished","text":"a"}`), makes(line), says(line), says("\x1b]0;title\x07\u009b2J\u2028\u202e"),
	))
	group.Wait()
	require.NoError(t, err, outcome.Result.Error)
	assert.Equal(t, []tool.Emission{{Type: tool.EmitText, Text: "theirs"}}, theirs.said)
	require.Len(t, mine.said, 2, "control: the words as such are its own to say, but not as a request: %s", outcome.Result.Data)
	assert.Equal(t, line, mine.said[0].Text)
	for _, e := range mine.said {
		written := encode(t, tool.Event{Type: tool.CallOutput, Emission: &e})
		assert.NotContains(t, string(written), "\n", "one line stays one")
		assert.NotContains(t, string(written), "\x1b")
		var read tool.Event
		require.NoError(t, json.Unmarshal(written, &read))
		assert.Equal(t, &e, read.Emission)
	}
}

// TestAttackDepthOfEmissions: a mebibyte of brackets is refused, and takes about as much memory as any
// other text of its length.
func TestAttackDepthOfEmissions(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "limits: {output: 4MiB, timeout: 30s}")
	for _, data := range []string{
		strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19-200), strings.Repeat(`{"a":`, 1<<16) + "1" + strings.Repeat("}", 1<<16),
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
	} {
		w := &listener{}
		outcome := mustListen(t, loaded, w, steps(makes(`{"type":"json","data":`+data+`}`)))
		assert.Contains(t, string(outcome.Result.Data), `[["2","{\"message\":`)
		assert.Empty(t, w.said)
	}
	w := &listener{}
	outcome := mustListen(t, loaded, w, steps(makes(`{"type":"json","data":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`)))
	assert.JSONEq(t, `[["0",""]]`, string(outcome.Result.Data), "control: data that is less deep is shown")
	assert.Len(t, w.said, 1)
}

// TestAttackPaddedEmission: white space around the data of an emission is not kept with it.
func TestAttackPaddedEmission(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "limits: {output: 4MiB, timeout: 30s}")
	w := &listener{}
	outcome := mustListen(t, loaded, w, steps(floods(`{"type":"json","data":1`+strings.Repeat(" ", 1<<20-200)+`}`, 5)))
	require.JSONEq(t, `[{"0":4,"3":1}]`, string(outcome.Result.Data), "control: it was read, and counted, with its white space")
	require.Len(t, w.said, 4)
	for _, e := range w.said {
		assert.LessOrEqual(t, cap(e.Data), 64)
	}
}

// TestSecretDoesNotLeaveInEmissions, however a guest has come by it.
func TestSecretDoesNotLeaveInEmissions(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "unused") })
	encoded := base64.StdEncoding.EncodeToString([]byte("xx" + secretValue + "xx"))
	todo := steps(says("it is "+secretValue), `{"do":"json","data":["`+secretValue+`"]}`, `{"do":"progress","fraction":0,"text":"`+secretValue+`"}`,
		`{"do":"link","url":"https://example.com/","text":"`+secretValue+`"}`, `{"do":"image","mime_type":"image/png","image":"`+encoded+`"}`, says("the end"))
	for _, has := range []bool{true, false} {
		var log bytes.Buffer
		r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, has }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		m := manifest(t, streamprobe, "permissions: {secrets: [{name: KEY, header: X-Key, host: api.example.com}], network: [{host: api.example.com}]}")
		loaded := load(t, r, m, manifests.Grants{
			Network: []manifests.NetworkGrant{grant}, Secrets: []manifests.SecretGrant{{Name: "KEY", From: manifests.SecretSource{Env: "KEY"}, Host: "api.example.com"}},
		})
		w := &listener{}
		outcome := mustListen(t, loaded, w, todo)
		assert.JSONEq(t, `["ok","ok","ok","ok","ok","ok"]`, string(outcome.Result.Data))
		written := encode(t, w.said)
		assertHolds(t, !has, secretValue, string(written), "shown emissions")
		assert.Contains(t, string(written), "the end")
		assert.Equal(t, has, strings.Contains(log.String(), "emissions withheld, since they hold a secret"), log.String())
		assert.NotContains(t, log.String(), secretValue)
		if has {
			assert.Len(t, w.said, 5, "an image has no place for a name")
			assert.Contains(t, string(written), "it is [secret KEY]")
		}
	}
}
