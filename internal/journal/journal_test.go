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

// TestNotesHideNoDenials: half of the receipts are for denials after notes were made, and half are for notes.
func TestNotesHideNoDenials(t *testing.T) {
	var j journal.Journal
	deny := func(what string) {
		for i := range 100 {
			j.Deny(tool.Denial{Value: fmt.Sprint(what, i)}, nil)
		}
	}
	deny("note")
	j.MakeNotes()
	deny("denial")
	denials := j.Denials()
	require.Len(t, denials, journal.MaxDenials)
	half := journal.MaxDenials / 2
	assert.Equal(t, tool.Denial{Value: "note0", Note: true}, denials[0])
	assert.True(t, denials[half-1].Note)
	assert.Equal(t, tool.Denial{Value: "denial0"}, denials[half])
	assert.Equal(t, tool.Denial{Value: "denial99"}, denials[journal.MaxDenials-1])
}

// TestUndo: a host call that is taken back is neither listed nor counted, whether or not the list is full.
func TestUndo(t *testing.T) {
	var j journal.Journal
	for n := range 2 * tool.MaxHostCalls {
		undone, _ := j.Begin(tool.HostCall{Target: "undone"})
		j.Undo(undone)
		entry, count := j.Begin(tool.HostCall{Target: "kept"})
		assert.EqualValues(t, n+1, count)
		j.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
	}
	listed := j.HostCalls()
	require.Len(t, listed, tool.MaxHostCalls)
	for _, call := range listed {
		assert.Equal(t, tool.HostCall{Target: "kept", Status: "ok"}, call)
	}
}

// TestContinue: a journal that continues another one changes without it.
func TestContinue(t *testing.T) {
	var j, next journal.Journal
	entry, _ := j.Begin(tool.HostCall{Target: "new", Status: "ok"})
	j.Deny(tool.Denial{Value: "/a"}, nil)
	next.Continue(&j, func() time.Time { return time.Time{} })
	assert.Len(t, next.Denials(), 1)
	next.Change(entry, func(call *tool.HostCall) { call.Status = "failed" })
	assert.Equal(t, "failed", next.HostCalls()[0].Status)
	assert.Equal(t, "ok", j.HostCalls()[0].Status)
	next.Reset()
	assert.Empty(t, next.HostCalls())
	assert.Zero(t, next.Count())
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
