package journal_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/tool"
)

func TestHostCalls(t *testing.T) {
	var j journal.Journal
	assert.Empty(t, j.HostCalls())
	for i := range tool.MaxHostCalls + 5 {
		entry, n := j.Begin(tool.HostCall{Kind: "a", Target: fmt.Sprint(i)})
		assert.EqualValues(t, i+1, n)
		j.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
	}
	assert.EqualValues(t, tool.MaxHostCalls+5, j.Count())
	calls := j.HostCalls()
	require.Len(t, calls, tool.MaxHostCalls)
	for i, call := range calls {
		assert.Equal(t, tool.HostCall{Kind: "a", Target: fmt.Sprint(i), Status: "ok"}, call)
	}
	calls[0].Kind = "changed"
	assert.Equal(t, "a", j.HostCalls()[0].Kind, "a list is the caller's to keep")
	j.Change(journal.Entry{}, func(*tool.HostCall) { t.Error("it is not listed") })
}

func TestDenials(t *testing.T) {
	var j journal.Journal
	assert.Empty(t, j.Denials())
	worded := 0
	word := func() tool.Allow { worded++; return tool.Allow{Manifest: json.RawMessage(`{}`)} }
	for range 3 {
		j.Deny(tool.Denial{Value: "/a", Rule: "r"}, word)
	}
	j.Deny(tool.Denial{Value: "/b", Rule: "r", Allow: tool.Allow{Grant: json.RawMessage(`null`)}}, nil)
	j.Deny(tool.Denial{Value: "/a", Rule: "r"}, word)
	assert.Zero(t, worded, "words are for those who read")
	assert.Equal(t, []tool.Denial{
		{Value: "/b", Rule: "r", Allow: tool.Allow{Grant: json.RawMessage(`null`)}}, {Value: "/a", Rule: "r", Allow: tool.Allow{Manifest: json.RawMessage(`{}`)}},
	}, j.Denials(), "each once, the most recent last")
	assert.Equal(t, 1, worded)

	for i := range 100 {
		j.Deny(tool.Denial{Value: fmt.Sprint(i), Rule: "r"}, nil)
	}
	denials := j.Denials()
	require.Len(t, denials, journal.MaxDenials)
	assert.Equal(t, "/b", denials[0].Value, "a flood does not hide how it began")
	assert.Equal(t, "99", denials[journal.MaxDenials-1].Value)
}

// TestForget: what is dropped stays dropped, whatever is changed or denied later.
func TestForget(t *testing.T) {
	var j journal.Journal
	old, _ := j.Begin(tool.HostCall{Target: "old"})
	j.Deny(tool.Denial{Value: "/a", Rule: "r"}, func() tool.Allow { t.Error("nobody reads it"); return tool.Allow{} })
	j.Forget()
	assert.Empty(t, j.Denials())
	assert.Empty(t, j.HostCalls())
	assert.Zero(t, j.Count())
	j.Change(old, func(*tool.HostCall) { t.Error("it is not listed") })

	entry, n := j.Begin(tool.HostCall{Target: "new"})
	assert.EqualValues(t, 1, n)
	j.Change(old, func(*tool.HostCall) { t.Error("it is not listed") })
	j.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
	j.Deny(tool.Denial{Value: "/a", Rule: "r"}, nil)
	want := []tool.HostCall{{Target: "new", Status: "ok"}}
	assert.Equal(t, want, j.HostCalls())
	assert.Len(t, j.Denials(), 1, "the same denial again is a new one")

	var next journal.Journal
	next.Continue(&j, func() time.Time { return want[0].Began })
	next.Change(entry, func(call *tool.HostCall) { call.Status = "failed" })
	assert.Equal(t, "failed", next.HostCalls()[0].Status)
	next.Reset()
	assert.Empty(t, next.HostCalls())
	entry, _ = next.Begin(tool.HostCall{Target: "again"})
	next.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
	assert.Equal(t, []tool.HostCall{{Target: "again", Status: "ok"}}, next.HostCalls())
}

func TestConcurrentUse(t *testing.T) {
	var j journal.Journal
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				entry, _ := j.Begin(tool.HostCall{})
				j.Change(entry, func(call *tool.HostCall) { call.Bytes++ })
				j.Deny(tool.Denial{Value: fmt.Sprint(i)}, nil)
				_, _, _ = j.Denials(), j.HostCalls(), j.Count()
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 800, j.Count())
	assert.Len(t, j.Denials(), 8)
}
