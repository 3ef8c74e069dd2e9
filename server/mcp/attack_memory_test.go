package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// roomFor lets the bodies of a tenant's open requests take so many bytes.
func (w *world) roomFor(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound = memory.New(bytes, 4*bytes)
}

// newWaiting returns a tool whose calls say that they run, and of which the first waits until let is closed.
func newWaiting(t *testing.T) (wait *fake, running, let chan struct{}) {
	running, let = make(chan struct{}, 10_000), make(chan struct{})
	var first atomic.Bool
	first.Store(true)
	return newFake(t, "wait", nil, func(context.Context, tool.Invocation) tool.Result {
		running <- struct{}{}
		if first.Swap(false) {
			<-let
		}
		return tool.Result{Success: true, Output: "waited"}
	}), running, let
}

// TestAttackBatchesWithoutRoom: a batch of many messages is passed on if there is room for them, and is refused
// otherwise, so that a tenant has no more of them than of calls in batches of the HTTP API. 240 batches of 1,024 calls
// that wait held 900 MB, and other tenants waited for seconds. A single call needs no room.
func TestAttackBatchesWithoutRoom(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"echo","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":"%d","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%d"}}`,
	} {
		wait, running, let := newWaiting(t)
		var echoed atomic.Int64
		w := newWorld(t, mcp.Options{}, wait, newFake(t, "echo", nil, func(context.Context, tool.Invocation) tool.Result {
			echoed.Add(1)
			return tool.Result{Success: true, Output: "echoed"}
		}))
		w.roomFor(4 << 20)
		mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
		other := auth.Caller{ID: "2", Tenant: "other", Scopes: everything}
		session := func(of auth.Caller) map[string]string {
			_, _, header := post(t, w, of, http.MethodPost, strings.Replace(initializeBody, "2025-11-25", "2025-03-26", 1), nil)
			return map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
		}
		me, them := session(mine), session(other)
		const last = `{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"wait","arguments":{}}}`
		batch := "["
		for i := range 599 {
			batch += fmt.Sprintf(message, i) + ","
		}
		first := make(chan string)
		go func() {
			_, answer, _ := post(t, w, mine, http.MethodPost, batch+last+"]", me)
			first <- answer
		}()
		<-running
		before := echoed.Load()
		second := strings.ReplaceAll(batch+last+"]", `"id":"`, `"id":"again`)
		status, answer, header := post(t, w, mine, http.MethodPost, second, me)
		assert.Equal(t, http.StatusTooManyRequests, status, "%.200s", answer)
		assert.Equal(t, "5", header.Get("Retry-After"))
		assert.Empty(t, running, "no call of it has begun")
		_, answer, _ = post(t, w, mine, http.MethodPost, strings.Replace(last, "wait", "echo", 1), session(mine))
		assert.Contains(t, answer, "echoed", "one call")
		_, answer, _ = post(t, w, other, http.MethodPost, strings.Replace(batch+last+"]", "wait", "echo", 1), them)
		assert.Contains(t, answer, "echoed", "another tenant's")
		require.GreaterOrEqual(t, echoed.Load(), before+2)
		close(let)
		assert.Contains(t, <-first, "waited")
		_, answer, _ = post(t, w, mine, http.MethodPost, batch+last+"]", me)
		assert.Contains(t, answer, "waited", "the control")
	}
}

// TestAttackValuesOfOpenCalls: what the SDK decodes of a call, and keeps while it lasts, counts as much as it takes.
// 250 open calls of 46 KB with 20,000 values in _meta held 1.3 GB. The control has as many bytes in one value.
func TestAttackValuesOfOpenCalls(t *testing.T) {
	values := "[" + strings.Repeat(`{"":0},`, 4000) + "0]"
	for name, params := range map[string]string{
		"_meta":          strings.Replace(meta, "{", `{"x":%s,`, 1),
		"inputResponses": `"inputResponses":{"a":{"action":"accept","content":{"x":%s}}},` + meta,
	} {
		t.Run(name, func(t *testing.T) {
			wait, running, let := newWaiting(t)
			w := newWorld(t, mcp.Options{}, wait)
			w.roomFor(4 << 20)
			mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
			headers := map[string]string{
				"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait",
			}
			call := func(x string) (status int) {
				const begin = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},`
				status, _, _ = post(t, w, mine, http.MethodPost, begin+fmt.Sprintf(params, x)+"}}", headers)
				return status
			}
			ended := make(chan int)
			go func() { ended <- call(values) }()
			<-running
			assert.Equal(t, http.StatusTooManyRequests, call(values))
			assert.Empty(t, running, "it has not begun")
			go func() { ended <- call(`"` + strings.Repeat("x", len(values)) + `"`) }()
			<-running // the control
			close(let)
			assert.Equal(t, http.StatusOK, <-ended)
			assert.Equal(t, http.StatusOK, <-ended)
			assert.Equal(t, http.StatusOK, call(values), "after the first has ended")
		})
	}
}
