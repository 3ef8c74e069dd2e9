package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// tenRuns are bounds with room for what a test adds.
var tenRuns = ledger.RunBounds{Runs: 10, Bytes: 1 << 20, Keep: time.Hour}

// TestUnsureRuns: the answer to a change of a run is lost, so that nobody knows whether it was made. The next change is
// made either way. The control does not name the change.
func TestUnsureRuns(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		r := ledger.Run{ID: "run_1", Tenant: "acme", Status: "queued", Created: time.Now(), Content: []byte("{}")}
		r.Version = noerr.Get(l.AddRun(t.Context(), r, tenRuns))(t)
		r.Save = ledger.NewSave()
		made := noerr.Get(l.ChangeRun(t.Context(), r, true, nil, 0))(t)
		lost := r.Save
		r.Save = ledger.NewSave()
		require.ErrorIs(t, noerr.Error(l.ChangeRun(t.Context(), r, false, nil, 0)), ledger.ErrChanged, "the control")
		r.Unsure = []int64{lost}
		again := noerr.Get(l.ChangeRun(t.Context(), r, false, nil, 0))(t)
		assert.Equal(t, made+1, again)
		require.ErrorIs(t, l.Intend(ledger.InRun(t.Context(), "run_1", made), intended(1)), ledger.ErrChanged)
		require.NoError(t, l.Intend(ledger.InRun(t.Context(), "run_1", again), intended(1)))
		appended(t, l, intended(1))
	})
}

// TestAnswersOfRuns: answers are added to a run without its content, until it changes.
func TestAnswersOfRuns(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		r := ledger.Run{ID: "run_1", Tenant: "acme", Status: "queued", Created: time.Now(), Content: []byte("{}")}
		r.Version = noerr.Get(l.AddRun(t.Context(), r, tenRuns))(t)
		var want [][]byte
		for i := range 12 { // one digit and two
			want = append(want, []byte{byte('a' + i)})
			r.Pending = 12 - i
			r.Version = noerr.Get(l.AddAnswers(t.Context(), r, want[i]))(t)
		}
		old := r
		old.Version--
		require.ErrorIs(t, noerr.Error(l.AddAnswers(t.Context(), old, nil)), ledger.ErrChanged)
		read := func() ledger.Run { return noerr.Get(l.Run(t.Context(), "acme", "run_1", true))(t) }
		assert.Equal(t, want, read().Answers)
		assert.Equal(t, "{}", string(read().Content))
		assert.Equal(t, 1, read().Pending)
		assert.Empty(t, noerr.Get(l.Run(t.Context(), "acme", "run_1", false))(t).Answers)
		r.Version = noerr.Get(l.ChangeRun(t.Context(), r, false, nil, 0))(t)
		assert.Empty(t, read().Answers)
		noerr.Get(l.AddAnswers(t.Context(), r, want[0]))(t)
		require.NoError(t, l.RemoveRun(t.Context(), "acme", "run_1"))
		noerr.Get(l.AddRun(t.Context(), r, tenRuns))(t)
		assert.Empty(t, read().Answers)
	})
}

// TestExpiredRunsMakeRoom: a run whose wait has expired does not count, though no process has ended it. The control
// waits.
func TestExpiredRunsMakeRoom(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		bounds := ledger.RunBounds{Runs: 1, Bytes: 1 << 20, Keep: time.Hour}
		for n, until := range []time.Duration{time.Hour, -time.Second} {
			r := ledger.Run{ID: fmt.Sprint("run_", n), Tenant: fmt.Sprint(n), Status: "queued", Created: time.Now(),
				Content: []byte("{}"), Until: time.Now().Add(until)}
			r.Version = noerr.Get(l.AddRun(t.Context(), r, bounds))(t)
			noerr.Get(l.ChangeRun(t.Context(), r, false, nil, 0))(t)
			next := ledger.Run{ID: fmt.Sprint("run_next", n), Tenant: r.Tenant, Created: time.Now()}
			_, err := l.AddRun(t.Context(), next, bounds)
			assert.Equal(t, until > 0, errors.Is(err, ledger.ErrTooMany), "%v", err)
		}
	})
}
