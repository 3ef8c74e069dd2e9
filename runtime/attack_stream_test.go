package runtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
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

// TestAttackFloodOfEmissions: what is shown is bounded, nothing of the rest is kept, and the deadline
// holds.
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

// TestAttackEndlessSpeechIsEnded: once the call is over, none of the long requests that a guest goes on to
// make is read.
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
	outcome, err := listen(t, loaded, w, steps(floods(long, 5)))
	require.NoError(t, err, outcome.Result.Error)
	assert.Len(t, w.said, 5, "control: else it is")
}

// TestAttackForgedEmission: what a call says is its own, whatever it says.
func TestAttackForgedEmission(t *testing.T) {
	r := newRuntime(t, Options{})
	loaded := speaker(t, r, "")
	const line = "{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"call_finished\",\"call_id\":\"theirs\"}"
	mine, theirs := &listener{}, &listener{}
	var group sync.WaitGroup
	group.Go(func() {
		outcome, err := listen(t, loaded, theirs, steps(says("theirs")))
		assert.NoError(t, err, outcome.Result.Error)
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
		written, err := json.Marshal(tool.Event{Type: tool.CallOutput, Emission: &e})
		require.NoError(t, err)
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
		outcome, err := listen(t, loaded, w, steps(makes(`{"type":"json","data":`+data+`}`)))
		require.NoError(t, err, outcome.Result.Error)
		assert.Contains(t, string(outcome.Result.Data), `[["2","{\"message\":`)
		assert.Empty(t, w.said)
	}
	w := &listener{}
	outcome, err := listen(t, loaded, w, steps(makes(`{"type":"json","data":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`)))
	require.NoError(t, err)
	assert.JSONEq(t, `[["0",""]]`, string(outcome.Result.Data), "control: what is less deep is shown")
	assert.Len(t, w.said, 1)
}

// TestAttackPaddedEmission: white space around what is said is not kept with it.
func TestAttackPaddedEmission(t *testing.T) {
	loaded := speaker(t, newRuntime(t, Options{}), "limits: {output: 4MiB, timeout: 30s}")
	w := &listener{}
	outcome, err := listen(t, loaded, w, steps(floods(`{"type":"json","data":1`+strings.Repeat(" ", 1<<20-200)+`}`, 5)))
	require.NoError(t, err, outcome.Result.Error)
	require.JSONEq(t, `[{"0":4,"3":1}]`, string(outcome.Result.Data), "control: it was read, and counted, as long as it is")
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
		outcome, err := listen(t, loaded, w, todo)
		require.NoError(t, err, outcome.Result.Error)
		assert.JSONEq(t, `["ok","ok","ok","ok","ok","ok"]`, string(outcome.Result.Data))
		written, err := json.Marshal(w.said)
		require.NoError(t, err)
		assertHolds(t, !has, secretValue, string(written), "what is shown")
		assert.Contains(t, string(written), "the end")
		assert.Equal(t, has, strings.Contains(log.String(), "emissions withheld, since they hold a secret"), log.String())
		assert.NotContains(t, log.String(), secretValue)
		if has {
			assert.Len(t, w.said, 5, "an image has no place for a name")
			assert.Contains(t, string(written), "it is [secret KEY]")
		}
	}
}
