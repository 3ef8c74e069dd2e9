//go:build !race

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

const lateCalls = 16

// TestAttackLongOutputBeforeTheDeadline: many calls that end just before their deadlines, each with
// as much output as it may have, of the kind that takes longest to mask and to read, are not late for it.
func TestAttackLongOutputBeforeTheDeadline(t *testing.T) {
	for name, c := range map[string]struct{ stdout, before, text string }{
		"to be masked": {"text", secretValue, strings.Repeat("%25", 10<<10)},
		"to be read":   {"result", `{"success":true,"data":[0`, strings.Repeat(`,{"a":1}`, 5<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			guest := lateGuest(t, c.stdout)
			arguments := encode(t, map[string]any{"do": "print", "before": c.before, "text": c.text, "times": 4<<20/len(c.text) - 1, "millis": 970})
			for attempt := 0; ; attempt++ {
				outcomes, late := together(t, guest, string(arguments), lateCalls)
				ended := 0
				for _, outcome := range outcomes {
					if outcome.Result.Kind == tool.Deadline {
						assert.Empty(t, outcome.Result.Output)
						assert.Nil(t, outcome.Result.Data)
					}
					assertHolds(t, false, secretValue, asJSON(t, outcome), "record")
					if outcome.Usage.Wall < time.Second {
						ended++
					}
				}
				if late < 100*time.Millisecond && ended > 0 { // a busy machine may keep guests from ending in time
					return
				}
				require.Less(t, attempt, 3, "%s late, %d of the guests had ended in time", late, ended)
			}
		})
	}
}

// TestLongOutputControl: without checks of the time, to mask or read a long output takes far longer than a call may be
// late.
func TestLongOutputControl(t *testing.T) {
	guest := lateGuest(t, "text")
	for name, work := range map[string]func(){
		"masked": func() { guest.permit.Secrets.Mask([]byte(strings.Repeat("%25", 4<<20/3))) },
		"read": func() {
			var members map[string]json.RawMessage
			_ = json.Unmarshal([]byte(`{"success":true`+strings.Repeat(`,"a":1`, 4<<20/6)+"}"), &members)
		},
	} {
		began := time.Now()
		var group sync.WaitGroup
		for range min(lateCalls, 4*goruntime.GOMAXPROCS(0)) { // as many keep each processor busy
			group.Go(work)
		}
		group.Wait()
		assert.Greater(t, time.Since(began), 130*time.Millisecond, name)
	}
}

// together has some callers make a call at once, and returns how late the last one was.
func together(t *testing.T, guest *Tool, arguments string, callers int) (outcomes []tool.Outcome, late time.Duration) {
	t.Helper()
	outcomes = make([]tool.Outcome, callers)
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range outcomes {
		made := invocation(t, arguments, nil)
		group.Go(func() {
			began := time.Now()
			outcome, _ := guest.Invoke(t.Context(), made)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			outcomes[i], late = outcome, max(late, took-time.Second)
		})
	}
	group.Wait()
	return outcomes, late
}

// TestLogOfALateCallIsMasked: it is short, and worth reading.
func TestLogOfALateCallIsMasked(t *testing.T) {
	guest := lateGuest(t, "text")
	outcome, err := invoke(t, guest, `{"do":"log","text":"the key is `+secretValue+`","millis":60000}`)
	require.ErrorIs(t, err, tool.Deadline)
	assert.Equal(t, "the key is [secret API_KEY]", outcome.Log)
}

// TestCancelledCallIsNotMaskedForLong: who cancels a call does not wait for its output, nor for
// its arguments to another tool.
func TestCancelledCallIsNotMaskedForLong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	guest := lateGuest(t, "text")
	r := guest.newRun(tool.Invocation{})
	r.answer.Stdout.Bytes, r.answer.Secrets = []byte(secretValue), guest.permit.Secrets
	cancel()
	outcome, err := r.answer.Outcome(ctx, ctx, engine.Usage{}, nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, r.answer.Stdout.Bytes)
	assert.Empty(t, outcome.Result.Output)
	_, err = r.call(ctx, tool.Call{Function: tool.Function{Arguments: secretValue}})
	require.ErrorIs(t, err, context.Canceled)
}

// TestAttackLongAnswersBeforeTheDeadline: many requests at once whose answers take long to mask do
// not make a call late.
func TestAttackLongAnswersBeforeTheDeadline(t *testing.T) {
	body := []byte(strings.Repeat("%25", 5<<20/3))
	grant := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	r := newRuntime(t, Options{
		LookupEnv: func(string) (string, bool) { return secretValue, true }, Limits: Limits{HTTPBytes: 100 << 20},
	})
	grants := manifests.Grants{
		Network: []manifests.NetworkGrant{grant},
		Secrets: []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}},
	}
	requests := strings.TrimSuffix(strings.Repeat(get("https://api.example.com/")+",", 10), ",")
	ended := 0
	for _, timeout := range []time.Duration{400 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond} {
		guest := load(t, r, manifest(t, netprobe, "permissions: {network: [{host: api.example.com}], secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}\n"+
			"limits: {http_bytes: 100MiB, timeout: "+timeout.String()+"}"), grants)
		require.NoError(t, guest.Prepare(t.Context()))
		for attempt := 0; ; attempt++ {
			began := time.Now()
			_, err := invoke(t, guest, `{"steps":[{"do":"netall","requests":[`+requests+`]}]}`)
			late := time.Since(began) - timeout
			if errors.Is(err, tool.Deadline) { // a fast machine may have masked all of it in the longer times
				ended++
			}
			if late < 100*time.Millisecond {
				break
			}
			require.Less(t, attempt, 3, "%s late for %s", late, timeout)
		}
	}
	assert.NotZero(t, ended)
}

// TestAttackResultsThatTakeLongToCheck: calls that end just before their deadlines, with data that takes
// far longer to check against the tool's own schema, are not late for it, nor succeed after it.
func TestAttackResultsThatTakeLongToCheck(t *testing.T) {
	cases := []struct {
		name, schema, text string
		times              int
	}{
		{"one match", `{pattern: '^(.*a){60}$'}`, "a", 120 << 10},
		{"one match of classes", `{pattern: '^(?:\P{Han}*\PN){29}$'}`, "a", 130 << 10},
		{"a match of a misfit", `{anyOf: [{pattern: '^(.*a){60}b$'}, {type: "null"}]}`, "a", 120 << 10},
		{"several of a short one", `{allOf: [` + strings.Repeat(`{pattern: '^(.*a){100}$'},`, 12) + `{}]}`, "a", 6 << 10},
	}
	for _, c := range testsize.Sample(cases, 2) {
		t.Run(c.name, func(t *testing.T) {
			r := newRuntime(t, Options{})
			m := manifest(t, probe, "module: {path: guest.wasm, stdout: json}\nlimits: {timeout: 1s, output: 4MiB}\nresult: "+c.schema+"\n")
			guest := load(t, r, m, manifests.Grants{})
			text := `"` + strings.Repeat(c.text, c.times) + `"`
			arguments := encode(t, map[string]any{"do": "print", "text": text, "times": 1, "millis": 970})
			for _, callers := range testsize.Sample([]int{lateCalls, 1}, 1) {
				t.Run(fmt.Sprint(callers), func(t *testing.T) {
					for attempt := 0; ; attempt++ { // a busy machine may keep guests from ending in time
						outcomes, late := together(t, guest, string(arguments), callers)
						ended := 0
						for _, outcome := range outcomes {
							assert.NotEqual(t, tool.ToolFailed, outcome.Result.Kind, outcome.Result.Error)
							if outcome.Result.Kind == tool.Deadline {
								ended++
							}
						}
						if late < promisedOver && ended > 0 {
							return
						}
						require.Less(t, attempt, 3, "%s late, %d of the calls were", late, ended)
					}
				})
			}
		})
	}
}
