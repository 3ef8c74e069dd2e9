package ledger_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackChangedLedger: whoever can write to the database, but has not the key, cannot change, remove, swap or forge
// an entry without Verify reporting it, with the call's id where there is one. The control is the ledger as it was.
func TestAttackChangedLedger(t *testing.T) {
	const entries = 6
	for name, attack := range map[string]struct {
		statements []string
		want       string // in a fault
	}{
		"nothing (control)": {nil, ""},
		"a byte of a record": {
			[]string{"update calls set content = replace(content, 'ok', 'no') where seq = 3"},
			"entry 3 (call " + id(3) + "): its content was changed",
		},
		"a salt":   {[]string{"update calls set salt = digest where seq = 3"}, "call " + id(3)},
		"a time":   {[]string{"update calls set at = at + 1 where seq = 3"}, "call " + id(3)},
		"an id":    {[]string{"update calls set call_id = salt where seq = 3"}, "entry 3 "},
		"a digest": {[]string{"update calls set digest = salt where seq = 3"}, "call " + id(3)},
		"a record in the middle is removed": {
			[]string{"delete from calls where seq = 3"}, "(call " + id(4) + "): entries 3 to 3 before it were removed",
		},
		"a record is erased": { // as Erase does, without a fault; but nobody can put another in its place
			[]string{
				"update calls set salt = null, content = null where seq = 3",
				"update calls set content = '{}', salt = digest where seq = 3",
			}, "call " + id(3),
		},
		"two records are swapped": {
			[]string{
				"update calls set seq = 100 where seq = 3", "update calls set seq = 3 where seq = 4",
				"update calls set seq = 4 where seq = 100",
			}, "call " + id(4),
		},
		"the contents of two are swapped": {
			[]string{
				"create table other as select content, salt, digest from calls where seq = 3",
				"update calls set content = (select content from calls where seq = 4), " +
					"salt = (select salt from calls where seq = 4), digest = (select digest from calls where seq = 4) where seq = 3",
				"update calls set content = (select content from other), salt = (select salt from other), " +
					"digest = (select digest from other) where seq = 4",
			}, "call " + id(3),
		},
		"the last record is removed": {
			[]string{"delete from calls where seq = 6"}, "the chain should end with entry 6, and ends with 5",
		},
		"the last record is removed, and the end moved": {
			[]string{
				"delete from calls where seq = 6",
				"update chains set seq = 5, hash = (select hash from calls where seq = 5)",
			}, "entry 6: the checkpoint signs an entry that is not there",
		},
		"the first records are removed as if they were old": {
			[]string{
				"update chains set base_seq = 6, base_hash = (select digest from calls where seq = 6)",
				"delete from calls where seq <= 6",
			}, "entry 6: the checkpoint signs another hash",
		},
		"a checkpoint's hash":      {[]string{"update checkpoints set hash = key"}, "the signature of the checkpoint is wrong"},
		"a checkpoint's signature": {[]string{"update checkpoints set signature = key"}, "the signature of the checkpoint is wrong"},
		"a checkpoint's key":       {[]string{"update checkpoints set key = hash"}, "the signature of the checkpoint is wrong"},
		"a checkpoint's time":      {[]string{"update checkpoints set at = at - 1"}, "the signature of the checkpoint is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, location string) {
				options := ledger.Options{Location: location, Key: testKey()}
				l := noerr.Get(ledger.Open(t.Context(), options))(t)
				for n := range entries {
					appended(t, l, entry(n+1))
				}
				require.NoError(t, l.Close(t.Context()))
				raw := noerr.Get(database.Open(t.Context(), location))(t)
				for _, statement := range attack.statements {
					require.NoError(t, raw.Update(t.Context(), func(tx *database.Tx) error {
						_, err := tx.Exec(t.Context(), statement)
						return err
					}), statement)
				}
				require.NoError(t, raw.Close())
				v := noerr.Get(opened(t, options).Verify(t.Context()))(t)
				if attack.want == "" {
					assert.Empty(t, v.Faults)
					return
				}
				require.NotEmpty(t, v.Faults)
				assert.Contains(t, fmt.Sprint(v.Faults), attack.want)
			})
		})
	}
}

// testKey is a key that signs checkpoints.
func testKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
}

// TestAttackForgedCheckpoints: whoever replaces the whole chain, and signs it with a key of their own, is found out.
func TestAttackForgedCheckpoints(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		forged := ledger.Options{Location: location, Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
		l := noerr.Get(ledger.Open(t.Context(), forged))(t)
		appended(t, l, entry(1))
		require.NoError(t, l.Close(t.Context()))
		l = opened(t, ledger.Options{Location: location, Key: testKey()})
		assert.Contains(t, fmt.Sprint(noerr.Get(l.Verify(t.Context()))(t).Faults), "signed with another key")
		l = opened(t, forged)
		assert.Empty(t, noerr.Get(l.Verify(t.Context()))(t).Faults, "the control")
	})
}

// TestErase: what was erased cannot be found or read any more, and the rest can still be verified.
func TestErase(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		options := ledger.Options{Location: location}
		l := opened(t, options)
		for n := range 400 {
			appended(t, l, entry(n+1, func(e *ledger.Entry) {
				e.Tenant, e.User = []string{"acme", "evil"}[n%2], []string{"ann", "ann", "bob", "bob"}[n%4]
				e.Record.Function.Arguments = `"` + e.Tenant + "of" + e.User + `"`
			}))
		}
		assert.EqualValues(t, 100, noerr.Get(l.Erase(t.Context(), "acme", "ann"))(t))
		acme, evil := "acme", "evil"
		assert.Empty(t, found(t, l, ledger.Filter{Words: "acmeofann"}))
		assert.Empty(t, found(t, l, ledger.Filter{Tenant: &acme, User: "ann"}))
		assert.Len(t, found(t, l, ledger.Filter{Tenant: &acme, Limit: 1000}), 100)
		assert.Len(t, found(t, l, ledger.Filter{Tenant: &evil, User: "ann", Limit: 1000}), 100)
		_, err := l.Find(t.Context(), id(1))
		require.ErrorIs(t, err, ledger.ErrNotFound)
		assert.EqualValues(t, 200, noerr.Get(l.Erase(t.Context(), "evil", ""))(t))
		assert.EqualValues(t, 0, noerr.Get(l.Erase(t.Context(), "evil", ""))(t))
		assert.EqualValues(t, 0, noerr.Get(l.Erase(t.Context(), "acme", "ann"))(t))
		assert.Len(t, found(t, l, ledger.Filter{Limit: 1000}), 100)
		appended(t, l, entry(500, func(e *ledger.Entry) { e.Tenant, e.User = "evil", "ann" }))
		assert.Equal(t, numbers(500), found(t, l, ledger.Filter{Tenant: &evil, User: "ann"}))
		v := noerr.Get(l.Verify(t.Context()))(t)
		assert.Empty(t, v.Faults)
		assert.EqualValues(t, 101, v.Entries-v.Removed)
		assertNowhere(t, location, "evilof", "ofann")
	})
}

// assertNowhere asserts that no text of the tables has one of these.
func assertNowhere(t *testing.T, location string, texts ...string) {
	t.Helper()
	raw := noerr.Get(database.Open(t.Context(), location))(t)
	defer func() { assert.NoError(t, raw.Close()) }()
	require.NoError(t, raw.View(t.Context(), func(tx *database.Tx) error {
		for _, text := range texts {
			var n int
			query := "select (select count(*) from calls where content like ?) + (select count(*) from names where name like ?)"
			if err := tx.Row(t.Context(), query, []any{"%" + text + "%", "%" + text + "%"}, &n); err != nil {
				return err
			}
			assert.Zero(t, n, text)
		}
		return nil
	}))
}

// TestOldRecordsGo: the oldest records are removed, and what is left can be verified.
func TestOldRecordsGo(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		options := ledger.Options{Location: location, KeepCalls: 50}
		l := noerr.Get(ledger.Open(t.Context(), options))(t)
		const entries = 1300
		for n := range entries {
			appended(t, l, entry(n+1))
		}
		assert.LessOrEqual(t, len(found(t, l, ledger.Filter{Limit: 1000})), entries-1024+50, "some were removed meanwhile")
		require.NoError(t, l.Close(t.Context()))
		l = opened(t, options)
		held := found(t, l, ledger.Filter{Limit: 1000})
		require.Len(t, held, 50)
		assert.Equal(t, id(entries), held[0])
		assert.Equal(t, id(entries-49), held[49])
		v := noerr.Get(l.Verify(t.Context()))(t)
		assert.Empty(t, v.Faults)
		assert.EqualValues(t, 50, v.Entries, "of those before, no links are left")
		var rows int
		raw := noerr.Get(database.Open(t.Context(), location))(t)
		require.NoError(t, raw.View(t.Context(), func(tx *database.Tx) error {
			return tx.Row(t.Context(), "select count(*) from calls", nil, &rows)
		}))
		require.NoError(t, raw.Close())
		assert.Equal(t, 50, rows)
	})
}

// TestAttackRecordsOfOthers: a tenant makes many calls, or calls with long results, so that another's records are
// removed. The control is a call of the first tenant, whose record is removed.
func TestAttackRecordsOfOthers(t *testing.T) {
	for name, flood := range map[string]struct {
		calls int
		bytes int
	}{"many": {400, 10}, "long": {60, 20_000}} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, location string) {
				options := ledger.Options{Location: location, KeepCalls: 200, KeepBytes: 500_000}
				l := opened(t, options)
				of := func(tenant string) func(*ledger.Entry) { return func(e *ledger.Entry) { e.Tenant = tenant } }
				for n := range 20 {
					appended(t, l, entry(n+1, of("victim")))
				}
				appended(t, l, entry(21, of("attacker")))
				for n := range flood.calls {
					appended(t, l, entry(100+n, of("attacker"), func(e *ledger.Entry) {
						e.Record.Result.Output = strings.Repeat("x", flood.bytes)
					}))
				}
				noerr.Get(l.Prune(t.Context()))(t)
				victim := "victim"
				assert.Len(t, found(t, l, ledger.Filter{Tenant: &victim}), 20)
				held := found(t, l, ledger.Filter{Limit: 1000})
				assert.LessOrEqual(t, len(held), 200)
				assert.NotContains(t, held, id(21), "the oldest of who has more goes")
				assert.Contains(t, held, id(100+flood.calls-1), "and the newest stays")
				assert.Empty(t, noerr.Get(l.Verify(t.Context()))(t).Faults)
			})
		})
	}
}

// TestAttackLargeRecords: few calls with long results, to fill the disk before old records are removed. The control is
// what was written in all.
func TestAttackLargeRecords(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const most, size = 1 << 20, 100_000
		l := opened(t, ledger.Options{Location: location, KeepBytes: most})
		for n := range 40 {
			appended(t, l, entry(n, func(e *ledger.Entry) { e.Record.Result.Output = strings.Repeat("x", size) }))
		}
		assert.Eventually(t, func() bool { return len(found(t, l, ledger.Filter{Limit: 100})) <= most/size+2 }, 10*time.Second, time.Millisecond)
		assert.Greater(t, 40*size, 2*most, "the control")
		noerr.Get(l.Prune(t.Context()))(t)
		held := found(t, l, ledger.Filter{Limit: 100})
		assert.Less(t, len(held)*size, most)
		assert.Greater(t, len(held)*size, most/2, "no more is removed than has to be")
		assert.Equal(t, id(39), held[0])
	})
}

// TestAttackErasingInTheWay: one process erases many records. Those that another one appends meanwhile wait for a part
// of it.
func TestAttackErasingInTheWay(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		eraser, server := opened(t, ledger.Options{Location: location}), opened(t, ledger.Options{Location: location})
		var group sync.WaitGroup
		for w := range 40 {
			group.Go(func() {
				for n := range 100 {
					assert.NoError(t, eraser.Append(t.Context(), entry(w*100+n, func(e *ledger.Entry) { e.Tenant = "gone" })))
				}
			})
		}
		group.Wait()
		erased := make(chan time.Duration)
		began := time.Now()
		go func() {
			_, err := eraser.Erase(t.Context(), "gone", "")
			assert.NoError(t, err)
			erased <- time.Since(began)
		}()
		longest := time.Duration(0)
		for n := 10_000; ; n++ {
			one := time.Now()
			appended(t, server, entry(n))
			longest = max(longest, time.Since(one))
			time.Sleep(time.Millisecond) // a server that always writes would keep the eraser out
			select {
			case whole := <-erased:
				assert.Less(t, longest, whole*3/4)
				return
			default:
			}
		}
	})
}

// TestSumsOfTenants: what a tenant takes is counted in bytes, in whatever language it writes.
func TestSumsOfTenants(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		for n := range 20 {
			appended(t, l, entry(n, func(e *ledger.Entry) { e.Record.Result.Output = strings.Repeat("日", 1000) }))
			if n%2 == 0 {
				noerr.Get(l.Erase(t.Context(), "", ""))(t)
			}
		}
		raw := noerr.Get(database.Open(t.Context(), location))(t)
		defer func() { assert.NoError(t, raw.Close()) }()
		var calls, bytes, trueCalls, trueBytes int64
		require.NoError(t, raw.View(t.Context(), func(tx *database.Tx) error {
			return errors.Join(tx.Row(t.Context(), "select calls, bytes from tenants", nil, &calls, &bytes),
				tx.Row(t.Context(), "select count(content), sum(octet_length(content)) from calls", nil, &trueCalls, &trueBytes))
		}))
		assert.Equal(t, []int64{trueCalls, trueBytes}, []int64{calls, bytes})
		assert.Positive(t, calls)
	})
}

// TestAttackPrunesInTheWay: calls whose records are appended while a large ledger is pruned wait for a part of it at
// most.
func TestAttackPrunesInTheWay(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const records = 3000
		full := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: location}))(t)
		var group sync.WaitGroup
		for w := range 10 {
			group.Go(func() {
				for n := range records / 10 {
					assert.NoError(t, full.Append(t.Context(), entry(w*records/10+n)))
				}
			})
		}
		group.Wait()
		require.NoError(t, full.Close(t.Context()))
		l := opened(t, ledger.Options{Location: location, KeepCalls: 10})
		pruned := make(chan time.Duration)
		began := time.Now()
		go func() {
			_, err := l.Prune(t.Context())
			assert.NoError(t, err)
			pruned <- time.Since(began)
		}()
		longest := time.Duration(0)
		for n := records; ; n++ {
			one := time.Now()
			appended(t, l, entry(n, func(e *ledger.Entry) { e.Tenant = "other" }))
			longest = max(longest, time.Since(one))
			select {
			case whole := <-pruned:
				assert.Less(t, longest, whole/4)
				return
			default:
			}
		}
	})
}

// TestAttackLongRecordsOfOthers: who lists calls reads no long records of another tenant. The control is who made them.
func TestAttackLongRecordsOfOthers(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		const others, long = 8, tool.MaxArgumentsBytes
		appended(t, l, entry(0, func(e *ledger.Entry) { e.Tenant = "victim" }))
		for n := range others {
			appended(t, l, entry(1+n, func(e *ledger.Entry) {
				e.Tenant, e.Record.Parent, e.Record.Function.Arguments = "attacker", id(0), strings.Repeat("x", long)
			}))
		}
		allocated := func(tenant string, f ledger.Filter, want int) uint64 {
			var before, after runtime.MemStats
			f.Tenant = &tenant
			runtime.ReadMemStats(&before)
			got := noerr.Get(l.Calls(t.Context(), f))(t)
			runtime.ReadMemStats(&after)
			assert.Len(t, got.Entries, want, "%s: %+v", tenant, f)
			return after.TotalAlloc - before.TotalAlloc
		}
		assert.Less(t, allocated("victim", ledger.Filter{}, 1), uint64(long))
		assert.Less(t, allocated("victim", ledger.Filter{Parent: id(0)}, 0), uint64(long))
		assert.Greater(t, allocated("attacker", ledger.Filter{}, 4<<20/long), uint64(long), "the control")
		assert.Greater(t, allocated("attacker", ledger.Filter{Parent: id(0), MaxBytes: 1 << 30}, others), uint64(long), "the control")
	})
}

// TestAttackLongCalls: a text of a call that is longer than arguments may be is cut. The control is as long as they may
// be.
func TestAttackLongCalls(t *testing.T) {
	const most = tool.MaxArgumentsBytes
	text := func(n int) string { return strings.Repeat("é", n/2) }
	call := func(text string) tool.Call {
		return tool.Call{ID: text, Type: text, Function: tool.Function{Name: text, Arguments: text}, Signature: text}
	}
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		appended(t, l, entry(1, func(e *ledger.Entry) { e.Record.Call = call("x" + text(2*most)) }),
			entry(2, func(e *ledger.Entry) { e.Record.Call = call(text(most)) }))
		assert.Equal(t, call("x"+text(most-2)+"…"), noerr.Get(l.Find(t.Context(), id(1)))(t).Record.Call)
		assert.Equal(t, call(text(most)), noerr.Get(l.Find(t.Context(), id(2)))(t).Record.Call)
	})
}

// TestNewerTables: an earlier version does not touch what a later one has written.
func TestNewerTables(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		raw := noerr.Get(database.Open(t.Context(), location))(t)
		require.NoError(t, raw.Update(t.Context(), func(tx *database.Tx) error {
			_, err := tx.Exec(t.Context(), "update version set number = number + 1")
			return err
		}))
		require.NoError(t, raw.Close())
		_, err := ledger.Open(context.WithoutCancel(t.Context()), ledger.Options{Location: location})
		require.ErrorIs(t, err, database.ErrNewer)
	})
}
