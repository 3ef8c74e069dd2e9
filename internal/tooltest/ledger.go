package tooltest

import (
	"errors"
	"testing"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// Agents opens the agents in a state folder until the end of the test.
func Agents(t testing.TB, state string) *agents.Store {
	t.Helper()
	store := noerr.Get(agents.Open(t.Context(), state, ""))(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Place stores a content in place of a document of the ledger in a state folder: nil for none.
func Place(t testing.TB, state string, kind ledger.Kind, tenant, name string, content []byte) {
	t.Helper()
	documents := noerr.Get(ledger.OpenDocuments(t.Context(), kind, state, ""))(t)
	err := documents.Change(t.Context(), tenant, name, func([]byte) ([]byte, error) { return content, nil })
	if err := errors.Join(err, documents.Close()); err != nil {
		t.Fatal(err)
	}
}

// Kept returns the call with an id from the ledger in a state folder.
func Kept(t testing.TB, state, id string) (kept ledger.Entry) {
	t.Helper()
	readLedger(t, state, func(l *ledger.Ledger) { kept = noerr.Get(l.Find(t.Context(), id))(t) })
	return kept
}

// KeptCalls returns the newest calls from the ledger in a state folder, at most 100, newest first. There need not be a
// ledger.
func KeptCalls(t testing.TB, state string) (kept []ledger.Entry) {
	t.Helper()
	if ledger.Exists(state) {
		readLedger(t, state, func(l *ledger.Ledger) {
			kept = noerr.Get(l.Calls(t.Context(), ledger.Filter{Limit: 100}))(t).Entries
		})
	}
	return kept
}

func readLedger(t testing.TB, state string, read func(l *ledger.Ledger)) {
	t.Helper()
	l := noerr.Get(ledger.OpenIn(t.Context(), state, ledger.Options{}))(t)
	read(l)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
