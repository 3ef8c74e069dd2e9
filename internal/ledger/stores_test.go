package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// stores are the databases with which every test of this package runs: each makes a new location. "make postgres" adds
// a real PostgreSQL.
var stores = map[string]func(t *testing.T) (location string){
	"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "state") },
}

// eachStore runs a test with each database.
func eachStore(t *testing.T, test func(t *testing.T, location string)) {
	for name, location := range stores {
		t.Run(name, func(t *testing.T) { test(t, location(t)) })
	}
}

// opened opens a ledger until the end of the test.
func opened(t *testing.T, options ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close(context.WithoutCancel(t.Context()))) })
	return l
}

// id returns the n-th call's id.
func id(n int) string { return fmt.Sprintf("%08x-5d1e-7aa0-b3a5-6f0d9c1e2b47", n) }

// entry returns the n-th call.
func entry(n int, change ...func(e *ledger.Entry)) ledger.Entry {
	e := ledger.Entry{
		Time: time.Unix(int64(n), 0).UTC(), Source: "/tools", Manifest: "/tools/tool.yaml",
		Record: tool.Record{
			Call:   tool.Call{ID: "call_1", Type: "function", Function: tool.Function{Name: "probe", Arguments: "{}"}},
			CallID: id(n), Result: tool.Result{Success: true, Output: "<ok>"}, ExecutionTime: 123457 * time.Nanosecond,
		},
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

// appended appends entries.
func appended(t *testing.T, l *ledger.Ledger, entries ...ledger.Entry) {
	t.Helper()
	for _, e := range entries {
		require.NoError(t, l.Append(t.Context(), e))
	}
}

// found returns the ids of all calls that a filter asks for, in the order of the pages.
func found(t *testing.T, l *ledger.Ledger, f ledger.Filter) (ids []string) {
	t.Helper()
	for {
		page := noerr.Get(l.Calls(t.Context(), f))(t)
		for _, e := range page.Entries {
			ids = append(ids, e.Record.CallID)
		}
		if f.Cursor = page.Cursor; f.Cursor == "" {
			return ids
		}
	}
}

// numbers returns the ids with these numbers.
func numbers(ns ...int) (ids []string) {
	for _, n := range ns {
		ids = append(ids, id(n))
	}
	return ids
}
