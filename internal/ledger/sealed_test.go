package ledger_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// ageKeys returns new keys.
func ageKeys(t *testing.T) *agefile.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(noerr.Get(age.GenerateX25519Identity())(t).String()+"\n"), 0o600))
	return noerr.Get(agefile.ReadKeys(file))(t)
}

// TestAttackReadRuns: an attacker reads the database. With keys, it contains no text of the content, the answers and
// the events of a run, and only a process with these keys can read the run. The control has no keys.
func TestAttackReadRuns(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		keys := ageKeys(t)
		write := func(id string, sealer ledger.Sealer) ledger.Run {
			l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: location, RunKeys: sealer}))(t)
			r := ledger.Run{
				ID: id, Tenant: "acme", Status: "queued", Created: time.Now(), Until: time.Now().Add(time.Hour),
				Content: []byte(`{"n":"the content"}`),
			}
			r.Version = noerr.Get(l.AddRun(t.Context(), r, tenRuns))(t)
			first := []ledger.Event{{ID: 1, Data: []byte("the first event")}}
			require.NoError(t, l.AddEvents(t.Context(), "acme", id, first, 1))
			events := []ledger.Event{{ID: 2, Data: []byte("the second event")}}
			r.Version = noerr.Get(l.ChangeRun(t.Context(), r, false, events, 1))(t)
			assert.Equal(t, "the second event", string(events[0].Data))
			r.Version = noerr.Get(l.AddAnswers(t.Context(), r, []byte("the answer")))(t)
			require.NoError(t, l.Close(t.Context()))
			return r
		}
		stored := func(id string) (all string) {
			for _, column := range []string{
				"content from runs where id", "data from run_events where run", "data from run_answers where run",
			} {
				for _, one := range queried(t, location, "select "+column+" = '"+id+"'") {
					all += one + "\n"
				}
			}
			return all
		}
		sealed, plain := write("run_1", keys), write("run_2", nil)
		parts := []string{"the content", "the first event", "the second event", "the answer"}
		for _, part := range parts {
			assert.NotContains(t, stored("run_1"), part)
			assert.Contains(t, stored("run_2"), part, "the control")
		}
		with := opened(t, ledger.Options{Location: location, RunKeys: keys})
		for _, want := range []ledger.Run{sealed, plain} {
			read := noerr.Get(with.Run(t.Context(), "acme", want.ID, true))(t)
			assert.Equal(t, want.Content, read.Content)
			assert.Equal(t, [][]byte{[]byte("the answer")}, read.Answers)
			events := noerr.Get(with.Events(t.Context(), want.ID, 0))(t)
			assert.Equal(t, "the first event", string(events[0].Data))
			assert.Equal(t, "the second event", string(events[1].Data))
		}
		for _, other := range []ledger.Sealer{nil, ageKeys(t)} {
			l := opened(t, ledger.Options{Location: location, RunKeys: other})
			require.ErrorIs(t, noerr.Error(l.Run(t.Context(), "acme", "run_1", true)), ledger.ErrSealed)
			require.ErrorIs(t, noerr.Error(l.Events(t.Context(), "run_1", 0)), ledger.ErrSealed)
			noerr.Get(l.Run(t.Context(), "acme", "run_1", false))(t)
			assert.Len(t, noerr.Get(l.Runs(t.Context(), "acme"))(t), 2)
		}
		executed(t, location, "update runs set content = 'sealed:?'")
		require.ErrorIs(t, noerr.Error(with.Run(t.Context(), "acme", "run_1", true)), ledger.ErrDamaged)
	})
}
