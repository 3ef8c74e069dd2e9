package tooltest

import (
	"testing"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

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
