package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestARecordIsKeptAsItWas(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		options := ledger.Options{Location: location}
		l, err := ledger.Open(t.Context(), options)
		require.NoError(t, err)
		wire := noerr.Get(json.Marshal(entry(1).Record))(t)
		appended(t, l, entry(1), entry(2))
		require.NoError(t, l.Close(t.Context()))
		require.NoError(t, l.Close(t.Context()), "a second time does nothing")
		require.ErrorIs(t, l.Append(t.Context(), entry(3)), ledger.ErrClosed)

		l = opened(t, options)
		for _, prefix := range []string{id(1), id(1)[:8], id(1)[:9], strings.ToUpper(id(1)[:20])} {
			found, err := l.Find(t.Context(), prefix)
			require.NoError(t, err, prefix)
			assert.Equal(t, string(wire), string(found.Wire), "byte for byte, although decoding rounds times")
			assert.Equal(t, entry(1).Record.Result, found.Record.Result)
			assert.Equal(t, "/tools/tool.yaml", found.Manifest)
			assert.Equal(t, "/tools", found.Source)
			assert.True(t, entry(1).Time.Equal(found.Time))
		}
		assert.Equal(t, numbers(2, 1), found(t, l, ledger.Filter{}))
		v := noerr.Get(l.Verify(t.Context()))(t)
		assert.Equal(t, ledger.Verification{Chains: 1, Entries: 2, Checkpoints: v.Checkpoints, Key: v.Key}, v)
	})
}

func TestFindNames(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		similar := entry(0x12345678)
		other := entry(0x12345678)
		other.Record.CallID = strings.Replace(other.Record.CallID, "b3a5", "b3a6", 1)
		appended(t, l, similar, other)
		for prefix, want := range map[string]error{
			"12345678": ledger.ErrAmbiguous, id(0x12345678)[:22]: ledger.ErrAmbiguous, id(0x12345678)[:23]: nil,
			"1234567": ledger.ErrID, "12345679": ledger.ErrNotFound, "1234567x": ledger.ErrID, "12345678 ": ledger.ErrID,
			"123456785d1e": ledger.ErrID, "12345678-": ledger.ErrAmbiguous, id(0x12345678) + "0": ledger.ErrID, "": ledger.ErrID,
		} {
			_, err := l.Find(t.Context(), prefix)
			require.ErrorIs(t, err, want, prefix)
		}
		require.ErrorIs(t, l.Append(t.Context(), entry(1, func(e *ledger.Entry) { e.Record.CallID = "call_1" })), ledger.ErrID)
		require.ErrorIs(t, l.Append(t.Context(), similar), ledger.ErrKept)
		appended(t, l, entry(2))
	})
}

// TestCutResultsAreKeptInWhole: the record is kept as it was printed, and the whole result in addition.
func TestCutResultsAreKeptInWhole(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		cut := entry(1)
		cut.Record.Cuts = []tool.Cut{{Part: "output", Bytes: 4, Kept: 1}}
		cut.Whole = &tool.Result{Success: true, Output: "<ok>"}
		cut.Record.Result.Output = "<"
		appended(t, l, cut, entry(2))
		found := noerr.Get(l.Find(t.Context(), id(1)))(t)
		assert.Equal(t, "<", found.Record.Result.Output)
		assert.Equal(t, "<ok>", found.Result().Output)
		assert.NotContains(t, string(found.Wire), "whole")
		uncut := noerr.Get(l.Find(t.Context(), id(2)))(t)
		assert.Nil(t, uncut.Whole)
		assert.Equal(t, "<ok>", uncut.Result().Output)
	})
}

func TestFilters(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		odd := "a\x00b\xff"
		appended(t, l,
			entry(1, func(e *ledger.Entry) { e.Tenant, e.User, e.Session = "acme", "ann", "s1" }),
			entry(2, func(e *ledger.Entry) {
				e.Tenant, e.Record.Function.Name = "acme", "fetch"
				e.Record.Result = tool.Result{Kind: tool.Denied, Error: "No entry for Café"}
				e.Record.Denials = []tool.Denial{{Value: "x"}}
			}),
			entry(3, func(e *ledger.Entry) { e.Tenant, e.User, e.Session = "evil", "ann", "s1" }),
			entry(4, func(e *ledger.Entry) { e.Record.Function.Arguments = `{"city":"New-York","n":12}` }),
			entry(5, func(e *ledger.Entry) { e.Tenant, e.Record.Parent = "acme", id(1) }),
			entry(6, func(e *ledger.Entry) { e.Tenant = odd }),
			entry(7, func(e *ledger.Entry) { e.Tenant = `"a\x00b\xff"` }),
			entry(8, func(e *ledger.Entry) { e.Tenant, e.Record.Parent = "acme", id(1) }),
		)
		acme, none, quoted := "acme", "", `"a\x00b\xff"`
		for name, test := range map[string]struct {
			filter ledger.Filter
			want   []string
		}{
			"all":               {ledger.Filter{}, numbers(8, 7, 6, 5, 4, 3, 2, 1)},
			"tenant":            {ledger.Filter{Tenant: &acme}, numbers(8, 5, 2, 1)},
			"no tenant":         {ledger.Filter{Tenant: &none}, numbers(4)},
			"odd tenant":        {ledger.Filter{Tenant: &odd}, numbers(6)},
			"look-alike tenant": {ledger.Filter{Tenant: &quoted}, numbers(7)},
			"tool":              {ledger.Filter{Tool: "fetch"}, numbers(2)},
			"unknown tool":      {ledger.Filter{Tool: "fetc"}, nil},
			"user":              {ledger.Filter{User: "ann"}, numbers(3, 1)},
			"user, tenant":      {ledger.Filter{User: "ann", Tenant: &acme}, numbers(1)},
			"session, tenant":   {ledger.Filter{Session: "s1", Tenant: &acme}, numbers(1)},
			"success, tenant":   {ledger.Filter{Outcome: "success", Tenant: &acme}, numbers(8, 5, 1)},
			"denied":            {ledger.Filter{Outcome: "denied"}, numbers(2)},
			"denials":           {ledger.Filter{Denied: true}, numbers(2)},
			"denials, tool":     {ledger.Filter{Denied: true, Tool: "probe"}, nil},
			"made by":           {ledger.Filter{Parent: id(1)}, numbers(5, 8)},
			"made by none":      {ledger.Filter{TopLevel: true, Tenant: &acme}, numbers(2, 1)},
			"from":              {ledger.Filter{From: time.Unix(6, 0)}, numbers(8, 7, 6)},
			"from, to":          {ledger.Filter{From: time.Unix(2, 0), To: time.Unix(4, 0)}, numbers(3, 2)},
			"words":             {ledger.Filter{Words: "york NEW"}, numbers(4)},
			"a number":          {ledger.Filter{Words: "12"}, numbers(4)},
			"other letters":     {ledger.Filter{Words: "CAFÉ, entry"}, numbers(2)},
			"without accent":    {ledger.Filter{Words: "cafe"}, nil},
			"a word of a name":  {ledger.Filter{Words: "probe"}, nil},
			"words, tenant":     {ledger.Filter{Words: "ok", Tenant: &acme}, numbers(8, 5, 1)},
			"words, no call":    {ledger.Filter{Words: "york", Tenant: &acme}, nil},
			"an operator":       {ledger.Filter{Words: `ok" OR "york`}, nil},
			"another operator":  {ledger.Filter{Words: `ok & ! york`}, numbers(4)},
		} {
			for _, limit := range []int{0, 1, 2, 3} {
				f := test.filter
				if f.Limit = limit; f.Parent != "" && limit > 0 {
					continue // the calls that a call made have one page
				}
				assert.Equal(t, test.want, found(t, l, f), "%s, %d a page", name, limit)
			}
		}
		for _, refused := range []ledger.Filter{
			{Limit: -1}, {Limit: 1001}, {MaxBytes: -1}, {Cursor: "x"}, {Cursor: id(99)}, {Cursor: id(3), Tenant: &acme}, {Words: "-"}, {Parent: "x"},
			{Words: "a b c d e f g h i j k l m n o p q"},
		} {
			_, err := l.Calls(t.Context(), refused)
			require.Error(t, err, "%+v", refused)
		}
	})
}

// TestPagesAreBounded: a page ends after so many bytes, and the next goes on.
func TestPagesAreBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		for n := range 5 {
			appended(t, l, entry(n, func(e *ledger.Entry) { e.Record.Result.Output = strings.Repeat("x", 1000) }))
		}
		page := noerr.Get(l.Calls(t.Context(), ledger.Filter{MaxBytes: 2000}))(t)
		assert.Len(t, page.Entries, 2)
		assert.Equal(t, numbers(4, 3, 2, 1, 0), found(t, l, ledger.Filter{MaxBytes: 2000}))
	})
}

// TestManyWriters: entries that are appended at the same time, by several processes, are all there, in chains that
// hold.
func TestManyWriters(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const writers, callers, calls = 3, 8, 20
		var group sync.WaitGroup
		for w := range writers {
			l := opened(t, ledger.Options{Location: location})
			for c := range callers {
				group.Go(func() {
					for n := range calls {
						assert.NoError(t, l.Append(t.Context(), entry((w*callers+c)*calls+n)))
					}
				})
			}
		}
		group.Wait()
		l := opened(t, ledger.Options{Location: location})
		assert.Len(t, found(t, l, ledger.Filter{Limit: 100}), writers*callers*calls)
		v := noerr.Get(l.Verify(t.Context()))(t)
		assert.Empty(t, v.Faults)
		assert.EqualValues(t, writers*callers*calls, v.Entries)
	})
}

// TestAppendEndsWithItsContext: a caller does not wait longer than it wants to.
func TestAppendEndsWithItsContext(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Append(ended, entry(1)); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		appended(t, l, entry(2))
	})
}

// TestOldFolder: what an earlier version has kept in files is there, in its order, and is not imported twice. What
// cannot be read is left out.
func TestOldFolder(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		state := filepath.Join(t.TempDir(), "state")
		old := filepath.Join(state, "records")
		require.NoError(t, os.MkdirAll(old, 0o700))
		write := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(old, name), []byte(content), 0o600))
		}
		record := noerr.Get(json.Marshal(entry(1).Record))(t)
		write(id(1)+".json", `{"tenant":"acme","time":"2026-11-20T12:00:00Z","source":"/tools","manifest":"","record":`+string(record)+`}`)
		record = noerr.Get(json.Marshal(entry(2).Record))(t)
		write(id(2)+".json", `{"tenant":"","time":"2026-11-21T12:00:00Z","source":"","manifest":"","record":`+string(record)+`}`)
		write(id(3)+".json", "{")
		write(".draft.tmp", "{")
		require.True(t, ledger.Exists(state))
		options := ledger.Options{Location: location}
		for range 2 {
			l := noerr.Get(ledger.OpenIn(t.Context(), state, options))(t)
			assert.Equal(t, numbers(2, 1), found(t, l, ledger.Filter{}))
			kept := noerr.Get(l.Find(t.Context(), id(1)))(t)
			assert.Equal(t, "acme", kept.Tenant)
			assert.Equal(t, string(noerr.Get(json.Marshal(entry(1).Record))(t)), string(kept.Wire), "byte for byte")
			require.NoError(t, l.Close(t.Context()))
		}
		assert.NoDirExists(t, old)
		assert.DirExists(t, old+"-imported")

		require.NoError(t, os.MkdirAll(old, 0o700)) // an earlier version was run again
		write(id(4)+".json", strings.ReplaceAll(`{"tenant":"","time":"2026-11-22T12:00:00Z","source":"","manifest":"","record":`+string(record)+`}`, id(2), id(4)))
		l := noerr.Get(ledger.OpenIn(t.Context(), state, options))(t)
		assert.Equal(t, numbers(4, 2, 1), found(t, l, ledger.Filter{}))
		require.NoError(t, l.Close(t.Context()))
		assert.NoDirExists(t, old)
		assert.DirExists(t, old+"-imported-2")
	})
}

// TestExposedFolder: nothing is kept where other users could read it.
func TestExposedFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := ledger.Open(t.Context(), ledger.Options{Location: dir})
	require.ErrorIs(t, err, folder.ErrExposed)
	files := noerr.Get(os.ReadDir(dir))(t)
	assert.Empty(t, files)
	dir = filepath.Join(dir, "state")
	opened(t, ledger.Options{Location: dir})
	for _, file := range noerr.Get(os.ReadDir(dir))(t) {
		assert.Equal(t, os.FileMode(0o600), noerr.Get(file.Info())(t).Mode().Perm(), file.Name())
	}
}

// TestLostFile: what is appended once the file is lost is not said to be kept.
func TestLostFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := opened(t, ledger.Options{Location: dir})
	appended(t, l, entry(1))
	file := filepath.Join(dir, database.FileName)
	require.NoError(t, os.Rename(file, file+"-away"))
	require.ErrorIs(t, l.Append(t.Context(), entry(2)), database.ErrMoved)
	require.NoError(t, os.Rename(file+"-away", file))
	appended(t, l, entry(2))
}

func TestLocations(t *testing.T) {
	for _, wrong := range []string{"", "mysql://user:secret@host/db", "postgres://user:secret@127.0.0.1:1/db?password=secret", "postgres://[user:secret@/"} {
		_, err := ledger.Open(t.Context(), ledger.Options{Location: wrong})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err := ledger.Open(t.Context(), ledger.Options{Location: "mysql://host/db"})
	require.ErrorIs(t, err, database.ErrLocation)
}

// TestAttackSearchesThatAreGivenUp: clients give up their searches at any moment, and later searches and calls find
// connections that work.
func TestAttackSearchesThatAreGivenUp(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		for n := range 200 {
			appended(t, l, entry(n))
		}
		began := time.Now()
		found(t, l, ledger.Filter{Words: "ok", Limit: 100})
		step := time.Since(began) / 100
		var group sync.WaitGroup
		for w := range 4 { // more would cancel so often that a real server takes no connections any more
			group.Go(func() {
				for n := range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(w*n)*step)
					for _, err := range []error{
						noerr.Error(l.Calls(ctx, ledger.Filter{Words: "ok", Limit: 100})),
						noerr.Error(l.Find(ctx, id(n))), noerr.Error(l.Erase(ctx, "nobody", "")),
					} {
						assert.True(t, err == nil || ctx.Err() != nil, "%v", err)
					}
					cancel()
				}
			})
		}
		group.Wait()
		for n := range 20 {
			assert.Len(t, found(t, l, ledger.Filter{Words: "ok", Limit: 1000}), 200+n)
			appended(t, l, entry(1000+n))
		}
	})
}

// TestAttackOpeningThatIsGivenUp: who asks for the ledger first gives up at any moment while it is opened. It is opened
// nevertheless, or not at all, and is there for others.
func TestAttackOpeningThatIsGivenUp(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		for n := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond/2)
			l, err := ledger.Open(ctx, ledger.Options{Location: location})
			cancel()
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				continue
			}
			appended(t, l, entry(n))
			require.NoError(t, l.Close(t.Context()))
		}
		appended(t, opened(t, ledger.Options{Location: location}), entry(100))
	})
}

// TestClaims: of all who claim a state at the same time, one gets it, until it expires.
func TestClaims(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const processes, keys = 3, 10
		var ours [keys]atomic.Int32
		var group sync.WaitGroup
		for range processes {
			l := opened(t, ledger.Options{Location: location})
			for range 4 {
				group.Go(func() {
					for n := range keys {
						ok, err := l.Claim(t.Context(), fmt.Sprint("key", n), time.Now().Add(time.Hour))
						assert.NoError(t, err)
						if ok {
							ours[n].Add(1)
						}
					}
				})
			}
		}
		group.Wait()
		for n := range keys {
			assert.EqualValues(t, 1, ours[n].Load(), n)
		}
		l := opened(t, ledger.Options{Location: location})
		assert.True(t, noerr.Get(l.Claim(t.Context(), "short", time.Now().Add(50*time.Millisecond)))(t))
		assert.False(t, noerr.Get(l.Claim(t.Context(), "short", time.Now().Add(time.Hour)))(t))
		time.Sleep(100 * time.Millisecond)
		assert.True(t, noerr.Get(l.Claim(t.Context(), "short", time.Now().Add(time.Hour)))(t))
		assert.False(t, noerr.Get(l.Claim(t.Context(), "key1", time.Now().Add(time.Hour)))(t))
	})
}

// TestAttackReadersWithoutEnd: readers overlap, so that SQLite's log cannot be reset, and would grow for as long. The
// control is how much is written in all.
func TestAttackReadersWithoutEnd(t *testing.T) {
	location := filepath.Join(t.TempDir(), "state")
	l := opened(t, ledger.Options{Location: location})
	long := strings.Repeat("word ", 20_000)
	raw := noerr.Get(database.Open(t.Context(), location))(t)
	t.Cleanup(func() { assert.NoError(t, raw.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = l.Calls(ctx, ledger.Filter{Words: "word", Limit: 5})
			}
		})
	}
	written, most := int64(0), int64(0)
	for n := range 250 {
		e := entry(n, func(e *ledger.Entry) { e.Record.Result.Output = long })
		appended(t, l, e)
		written += int64(len(long))
		if info, err := os.Stat(filepath.Join(location, database.FileName+"-wal")); err == nil {
			most = max(most, info.Size())
		}
	}
	cancel()
	readers.Wait()
	assert.Greater(t, written, int64(23<<20), "the control: with its index and the pages around it, it is more")
	assert.Less(t, most, int64(23<<20))
}

// TestAttackWordsOfOthers: a search for a word that many calls of another tenant have takes no longer than one for a
// word that nobody has. The control is the search of the other tenant.
func TestAttackWordsOfOthers(t *testing.T) {
	const calls = 6_000
	l := opened(t, ledger.Options{Location: filepath.Join(t.TempDir(), "state")})
	var group sync.WaitGroup
	for w := range 50 {
		group.Go(func() {
			for n := range calls / 50 {
				assert.NoError(t, l.Append(t.Context(), entry(w*1000+n, func(e *ledger.Entry) { e.Tenant, e.Record.Function.Arguments = "victim", `"common"` })))
			}
		})
	}
	group.Wait()
	appended(t, l, entry(1_000_000, func(e *ledger.Entry) { e.Tenant = "attacker" }))
	took := func(tenant, word string, tool string) time.Duration {
		best := time.Hour
		for range 20 {
			began := time.Now()
			page := noerr.Get(l.Calls(t.Context(), ledger.Filter{Tenant: &tenant, Words: word, Tool: tool, Prefix: "ffffffff"}))(t)
			best = min(best, time.Since(began))
			assert.Empty(t, page.Entries)
		}
		return best
	}
	none, others, own := took("attacker", "nothing", "probe"), took("attacker", "common", "probe"), took("victim", "common", "probe")
	assert.Less(t, others, 3*none+time.Millisecond)
	assert.Greater(t, own, 5*none, "the control")
	assert.Less(t, took("attacker", "", "probe"), 3*none+time.Millisecond)
}

// TestAttackRecordsInTheWay: a tenant keeps many long records waiting to be committed. Those of another tenant wait for
// a few of them. The control are the attacker's own, which wait for all that came before.
func TestAttackRecordsInTheWay(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const waiting = 32
		l := opened(t, ledger.Options{Location: location})
		var next, ended, own atomic.Int32 // own is how many others' ended while the last one of the attacker waited
		ctx, cancel := context.WithCancel(t.Context())
		var attacking sync.WaitGroup
		long := strings.Repeat("some words <", 20_000)
		for range waiting {
			attacking.Go(func() {
				for ctx.Err() == nil {
					before := ended.Load()
					assert.NoError(t, l.Append(t.Context(), entry(1000+int(next.Add(1)), func(e *ledger.Entry) {
						e.Tenant, e.Record.Result.Output = "attacker", long
					})))
					own.Store(ended.Add(1) - before)
				}
			})
		}
		require.Eventually(t, func() bool { return ended.Load() > 2*waiting }, time.Minute, time.Millisecond)
		most := int32(0)
		for n := range 5 {
			before := ended.Load()
			appended(t, l, entry(n, func(e *ledger.Entry) { e.Tenant = "victim" }))
			most = max(most, ended.Load()-before)
		}
		assert.Greater(t, own.Load(), int32(waiting/2), "the control")
		cancel()
		attacking.Wait()
		assert.Less(t, most, int32(waiting/2))
	})
}

// TestAttackOlderDatabases: an older copy of the database is restored while a process has it open, and another tenant
// gets the id of one that the copy does not have. Neither sees a record of the other. The control is the record before.
func TestAttackOlderDatabases(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		of := func(n int, tenant string) ledger.Entry {
			e := entry(n)
			e.Tenant = tenant
			return e
		}
		appended(t, l, of(1, "acme"), of(2, "beta"))
		seen := func(tenant string) (found []string) {
			for _, e := range noerr.Get(l.Calls(t.Context(), ledger.Filter{Tenant: &tenant}))(t).Entries {
				found = append(found, e.Record.CallID)
			}
			return found
		}
		assert.Equal(t, []string{id(2)}, seen("beta"), "the control")
		executed(t, location, "update tenants set name = 'gamma' where name = 'beta'")
		appended(t, l, of(3, "beta"))
		assert.Equal(t, []string{id(3)}, seen("beta"))
		assert.Equal(t, []string{id(2)}, seen("gamma"))

		named := of(4, "beta")
		named.Record.Function.Name = "newest"
		appended(t, l, named)
		executed(t, location, "delete from calls where tool = (select id from names where name = 'newest')")
		executed(t, location, "delete from names where name = 'newest'")
		named.Record.CallID = id(5)
		appended(t, l, named)
		found := noerr.Get(l.Calls(t.Context(), ledger.Filter{Tool: "newest"}))(t).Entries
		assert.Len(t, found, 1, "the id of the name is not used again")
	})
}

// TestAttackErasedContents: whoever can read SQLite's file looks for erased arguments. The control is the file before.
func TestAttackErasedContents(t *testing.T) {
	const secret = "the first of three secrets"
	location := ledger.In(t.TempDir())
	holds := func() bool {
		return bytes.Contains(noerr.Get(os.ReadFile(filepath.Join(location, "ledger.db")))(t), []byte(secret))
	}
	for _, erases := range []bool{false, true} {
		l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: location}))(t)
		if erases {
			assert.EqualValues(t, 1, noerr.Get(l.Erase(t.Context(), "acme", ""))(t))
		} else {
			appended(t, l, entry(1, func(e *ledger.Entry) {
				e.Tenant, e.Record.Function.Arguments = "acme", `{"text":"`+secret+`"}`
			}))
		}
		require.NoError(t, l.Close(t.Context()))
		assert.Equal(t, !erases, holds())
	}
}

// TestNumbersOfProcesses: after an older copy of the database was restored, no process gets the number of another.
func TestNumbersOfProcesses(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const count = "select cast(count(distinct writer) as text) from intents"
		first, second := opened(t, ledger.Options{Location: location}), opened(t, ledger.Options{Location: location})
		require.NoError(t, first.Intend(t.Context(), intended(1)))
		executed(t, location, "delete from writers")
		require.NoError(t, second.Intend(t.Context(), intended(2)))
		assert.Equal(t, []string{"2"}, queried(t, location, count))
	})
}

// TestAttackExpiredKeysAndRuns: thousands of keys and runs have expired, and a new one removes some of them, since all
// writes wait meanwhile. The control is that some are removed.
func TestAttackExpiredKeysAndRuns(t *testing.T) {
	const expired = 1000
	l := opened(t, ledger.Options{Location: ledger.In(t.TempDir())})
	location := l.Location()
	number := "with recursive n(i) as (select 1 union all select i + 1 from n where i < " + strconv.Itoa(expired) + ") "
	executed(t, location, "insert into keys (key, tenant, body, until, writer, fence, bytes) "+number+
		"select cast(i as blob), 'old', x'00', 1, 0, 0, 0 from n")
	executed(t, location, "insert into runs (id, tenant, status, over, created, until, pending, session, version, cancel, "+
		"bytes, save, content) "+number+"select 'run_' || i, 'old', 'completed', 1, 1, 1, 0, '', 1, 0, 0, 0, '{}' from n")
	taken(t, l, key("acme", "new"), ledger.KeyTaken)
	noerr.Get(l.AddRun(t.Context(), ledger.Run{ID: "run_new", Tenant: "acme", Created: time.Now(), Content: []byte("{}")},
		ledger.RunBounds{Runs: 10, Bytes: 1 << 20, Keep: time.Hour}))(t)
	for _, table := range []string{"keys", "runs"} {
		left, err := strconv.Atoi(queried(t, location, "select cast(count(*) as text) from "+table+" where tenant = 'old'")[0])
		require.NoError(t, err)
		assert.Greater(t, left, expired/4, table)
		assert.Less(t, left, expired, table)
	}
}
