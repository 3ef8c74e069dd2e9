package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

// id returns the n-th call's id.
func id(n int) string { return fmt.Sprintf("%08x-5d1e-7aa0-b3a5-6f0d9c1e2b47", n) }

// keep keeps entries like one run of the command.
func keep(folder Folder, entries ...Entry) error {
	keeper, err := folder.Open()
	if err != nil {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, keeper.Keep(e))
	}
	return errors.Join(err, keeper.Close())
}

// list returns the ids of the newest records.
func list(t *testing.T, folder Folder, n int) []string {
	t.Helper()
	ids := noerr.Get(folder.Newest("", n))(t)
	return ids
}

func entry(n int) Entry {
	return Entry{
		Time: time.Unix(int64(n), 0).UTC(), Source: "/tools", Manifest: "/tools/tool.yaml",
		Record: tool.Record{
			Call:   tool.Call{ID: "call_1", Type: "function", Function: tool.Function{Name: "probe", Arguments: "{}"}},
			CallID: id(n), Result: tool.Result{Success: true, Output: "<ok>"}, ExecutionTime: 123457 * time.Nanosecond,
		},
	}
}

func TestARecordIsKeptAsItWas(t *testing.T) {
	folder := In(t.TempDir())
	wire := noerr.Get(json.Marshal(entry(1).Record))(t)
	require.NoError(t, keep(folder, entry(1), entry(2)))
	for _, prefix := range []string{id(1), id(1)[:8], id(1)[:9], strings.ToUpper(id(1)[:20])} {
		found, err := folder.Find(prefix)
		require.NoError(t, err, prefix)
		assert.Equal(t, string(wire), string(found.Wire), "byte for byte, although decoding rounds times")
		assert.Equal(t, entry(1).Record.Result, found.Record.Result)
		assert.Equal(t, "/tools/tool.yaml", found.Manifest)
		assert.Equal(t, "/tools", found.Source)
		assert.True(t, entry(1).Time.Equal(found.Time))
	}
	assert.Equal(t, []string{id(2), id(1)}, list(t, folder, 9))
	assert.Equal(t, []string{id(2)}, list(t, folder, 1))
}

// TestWhatWasCutIsKeptInWhole: the record is kept as it was printed, and the whole result in addition.
func TestWhatWasCutIsKeptInWhole(t *testing.T) {
	folder := In(t.TempDir())
	cut := entry(1)
	cut.Record.Cuts = []tool.Cut{{Part: "output", Bytes: 4, Kept: 1}}
	cut.Whole = &tool.Result{Success: true, Output: "<ok>"}
	cut.Record.Result.Output = "<"
	require.NoError(t, keep(folder, cut, entry(2)))
	found := noerr.Get(folder.Find(id(1)))(t)
	assert.Equal(t, "<", found.Record.Result.Output)
	assert.Equal(t, "<ok>", found.Result().Output)
	assert.NotContains(t, string(found.Wire), "whole")
	uncut := noerr.Get(folder.Find(id(2)))(t)
	assert.Nil(t, uncut.Whole)
	assert.Equal(t, "<ok>", uncut.Result().Output)
}

// TestOf: Of returns a tenant's records, whatever others exist. Those of other tenants are read once, and damaged ones
// are left out.
func TestOf(t *testing.T) {
	folder := In(t.TempDir())
	of := func(n int, tenant string) Entry {
		e := entry(n)
		e.Tenant = tenant
		return e
	}
	require.NoError(t, keep(folder, of(1, "acme"), of(2, "evil"), of(3, ""), of(4, "acme"), of(5, "acme")))
	ids := func(found []Entry) (ids []string) {
		for _, e := range found {
			ids = append(ids, e.Record.CallID)
		}
		return ids
	}
	found, seen := noerr.Get2(folder.Of(t.Context(), "acme", 2, nil))(t)
	assert.Equal(t, []string{id(5), id(4)}, ids(found))
	found, seen = noerr.Get2(folder.Of(t.Context(), "acme", 9, seen))(t)
	assert.Equal(t, []string{id(5), id(4), id(1)}, ids(found))
	assert.Equal(t, map[string]string{id(1): "acme", id(2): "evil", id(3): "", id(4): "acme", id(5): "acme"}, seen)

	for _, n := range []int{1, 2} {
		require.NoError(t, os.WriteFile(filepath.Join(string(folder), id(n)+".json"), []byte("{"), 0o600))
	}
	found, seen = noerr.Get2(folder.Of(t.Context(), "acme", 9, map[string]string{id(2): "evil", id(9): "acme"}))(t)
	assert.Equal(t, []string{id(5), id(4)}, ids(found))
	assert.Equal(t, map[string]string{id(2): "evil", id(3): "", id(4): "acme", id(5): "acme"}, seen, "removed records are forgotten")
}

func TestMadeBy(t *testing.T) {
	// Ids of one second, with the entries' times in it.
	at := func(n int) string { return fmt.Sprintf("000000%02x-5d1e-7aa0-b3a5-6f0d9c1e2b47", n) }
	when := func(n int) time.Time { return madeAt(at(n)) }
	call := func(n int, parent string) Entry {
		e := entry(0)
		e.Record.CallID, e.Record.Parent, e.Time = at(n), parent, when(n+1)
		return e
	}
	caller := call(1, "")
	caller.Time = when(9)
	folder := In(t.TempDir())
	require.NoError(t, keep(folder, caller, call(4, at(1)), call(3, at(2)), call(2, at(1)), call(5, ""), call(9, at(1))))
	require.NoError(t, os.WriteFile(filepath.Join(string(folder), at(6)+".json"), []byte("{"), 0o600))
	// Calls made before their caller or after its end cannot be its own.
	require.NoError(t, keep(folder, call(0, at(1)), call(10, at(1))))
	made := noerr.Get(folder.MadeBy(t.Context(), caller))(t)
	var ids []string
	for _, m := range made {
		ids = append(ids, m.Record.CallID)
	}
	assert.Equal(t, []string{at(2), at(4), at(9)}, ids)
	none := noerr.Get(folder.MadeBy(t.Context(), call(5, "")))(t)
	assert.Empty(t, none)
	assert.Equal(t, time.UnixMilli(0x0199f3c25d1e), madeAt("0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47"))
}

// TestRoomIsMadeAsCallsEnd: old records are removed while calls run, so that a long-running command does
// not fill the disk.
func TestRoomIsMadeAsCallsEnd(t *testing.T) {
	folder := In(t.TempDir())
	keeper := noerr.Get(folder.Open())(t)
	for n := range MaxRecords + 3*pruned {
		require.NoError(t, keeper.Keep(entry(n)))
		if n%pruned == pruned-1 {
			assert.Len(t, list(t, folder, 2*MaxRecords), min(n+1, MaxRecords))
		}
	}
	require.NoError(t, keeper.Close())
	held := list(t, folder, 2*MaxRecords)
	require.Len(t, held, MaxRecords)
	assert.Equal(t, id(MaxRecords+3*pruned-1), held[0])
	assert.Equal(t, id(3*pruned), held[MaxRecords-1], "the oldest go")
}

// A tenant makes many calls, or calls with long results, so that another's records are removed. The control is a call
// of the first tenant, whose record is removed.
func TestAttackRecordsOfOthers(t *testing.T) {
	for name, flood := range map[string]struct {
		Entry
		times int
	}{
		"many": {entry(0), MaxRecords + pruned},
		"long": {Entry{Record: tool.Record{Result: tool.Result{Output: strings.Repeat("x", MaxBytes/pruned)}}}, pruned + pruned/4},
	} {
		for _, restarted := range []bool{false, true} {
			if restarted && name == "long" {
				continue // it writes more than the limit, and a restart makes no difference to sizes
			}
			if restarted && !testsize.Slow {
				continue // it takes as long as the other two
			}
			t.Run(fmt.Sprintf("%s, restarted: %t", name, restarted), func(t *testing.T) {
				folder := In(t.TempDir())
				keeper := noerr.Get(folder.Open())(t)
				say := func(n int, e Entry, tenant string) {
					e.Record.CallID, e.Tenant = id(n), tenant
					require.NoError(t, keeper.Keep(e))
				}
				for n := range 20 {
					say(n, entry(n), "victim")
				}
				say(20, entry(20), "attacker")
				if restarted {
					require.NoError(t, keeper.Close())
					keeper = noerr.Get(folder.Open())(t)
				}
				for n := range flood.times {
					say(100+n, flood.Entry, "attacker")
				}
				say(10_000, entry(10_000), "victim")
				require.NoError(t, keeper.Close())
				held := list(t, folder, 2*MaxRecords)
				assert.LessOrEqual(t, len(held), MaxRecords)
				theirs, _ := noerr.Get2(folder.Of(t.Context(), "victim", MaxRecords, nil))(t)
				assert.Equal(t, 21, len(theirs))
				assert.NotContains(t, held, id(20), "the oldest of who has more goes")
				assert.Contains(t, held, id(100+flood.times-1), "and the newest stays")
			})
		}
	}
}

// TestAttackLongRecordsOfOthers: who lists calls, looks at one or has the folder pruned waits for no long records of
// another tenant. The control reads its own records, which are as many.
func TestAttackLongRecordsOfOthers(t *testing.T) {
	folder := In(t.TempDir())
	keeper := noerr.Get(folder.Open())(t)
	t.Cleanup(func() { _ = keeper.Close() })
	const others, long = 8, tool.MaxArgumentsBytes
	caller := entry(0)
	caller.Tenant, caller.Time = "victim", madeAt(id(100))
	require.NoError(t, keeper.Keep(caller))
	for n := range others {
		e := entry(1 + n)
		e.Tenant, e.Record.Parent, e.Record.Function.Arguments = "attacker", id(0), strings.Repeat("x", long)
		require.NoError(t, keeper.Keep(e))
	}
	ids := noerr.Get(folder.Newest("", 99))(t)
	list := func(tenant string) func() int {
		return func() int {
			found, _ := noerr.Get2(folder.Of(t.Context(), tenant, others, nil))(t)
			return len(found)
		}
	}
	made := func(caller Entry) func() int {
		return func() int { return len(noerr.Get(folder.MadeBy(t.Context(), caller))(t)) }
	}
	owner := caller
	owner.Tenant = "attacker"
	for name, test := range map[string]struct {
		read func() int
		want int
		long bool // the control: it is the attacker who reads
	}{
		"list":          {list("victim"), 1, false},
		"list control":  {list("attacker"), maxListed / long, true},
		"made":          {made(caller), 0, false},
		"made control":  {made(owner), others, true},
		"prune":         {func() int { return len(keeper.tenantsOf(ids)) }, 1 + others, false},
		"prune control": {func() int { return len(readAll(t, folder)) }, 1 + others, true},
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		got := test.read()
		goruntime.ReadMemStats(&after)
		assert.Equal(t, test.want, got, name)
		allocated := after.TotalAlloc - before.TotalAlloc
		assert.Equal(t, test.long, allocated > long, "%s: %d bytes", name, allocated)
	}
}

// readAll reads all records whole.
func readAll(t *testing.T, folder Folder) (entries []Entry) {
	t.Helper()
	for _, id := range noerr.Get(folder.Newest("", 99))(t) {
		entries = append(entries, noerr.Get(folder.Find(id))(t))
	}
	return entries
}

// TestTenantOfARecord: a record's tenant is found whatever its name is, and wherever in the file.
func TestTenantOfARecord(t *testing.T) {
	folder := In(t.TempDir())
	names := []string{"", "acme", `"}<` + "\n", strings.Repeat("long", maxHead)}
	for n, name := range names {
		e := entry(n)
		e.Tenant = name
		require.NoError(t, keep(folder, e))
	}
	earlier := noerr.Get(json.Marshal(map[string]any{"record": entry(9).Record, "tenant": "earlier"}))(t)
	require.NoError(t, os.WriteFile(filepath.Join(string(folder), id(9)+".json"), earlier, 0o600))
	for n, name := range map[int]string{0: names[0], 1: names[1], 2: names[2], 3: names[3], 9: "earlier"} {
		found, seen := noerr.Get2(folder.Of(t.Context(), name, 9, nil))(t)
		if assert.Len(t, found, 1, name) {
			assert.Equal(t, id(n), found[0].Record.CallID)
		}
		assert.Equal(t, name, seen[id(n)])
	}
}

// TestReadingEndsWithItsContext: nothing is read for who has gone.
func TestReadingEndsWithItsContext(t *testing.T) {
	folder := In(t.TempDir())
	require.NoError(t, keep(folder, entry(1), entry(2)))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := folder.Of(gone, "", 9, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, noerr.Error(folder.MadeBy(gone, entry(1))), context.Canceled)
}

// TestAttackLargeRecords: the folder has little more than its limit at any time, however few calls make the records.
func TestAttackLargeRecords(t *testing.T) {
	folder := In(t.TempDir())
	keeper := noerr.Get(folder.Open())(t)
	t.Cleanup(func() { _ = keeper.Close() })
	held := func() (bytes int64) {
		for _, file := range noerr.Get(os.ReadDir(string(folder)))(t) {
			bytes += noerr.Get(file.Info())(t).Size()
		}
		return bytes
	}
	large := entry(0)
	large.Record.Result.Output = strings.Repeat("x", 7<<20)
	written, most := int64(0), int64(0)
	for n := range 14 {
		large.Record.CallID = id(n)
		require.NoError(t, keeper.Keep(large))
		written += int64(len(large.Record.Result.Output))
		most = max(most, held())
	}
	assert.LessOrEqual(t, most, int64(MaxBytes+prunedBytes))
	assert.Greater(t, written, int64(MaxBytes+prunedBytes), "control: more was written")
}

// TestAttackLongCalls: of a call with texts that no call that runs may have, the start is kept. The control is as long
// as arguments may be.
func TestAttackLongCalls(t *testing.T) {
	const most = tool.MaxArgumentsBytes
	text := func(n int) string { return strings.Repeat("é", n/2) }
	call := func(text string) tool.Call {
		return tool.Call{ID: text, Type: text, Function: tool.Function{Name: text, Arguments: text}, Signature: text}
	}
	folder := In(t.TempDir())
	long, control := entry(1), entry(2)
	long.Record.Call, control.Record.Call = call("x"+text(2*most)), call(text(most))
	require.NoError(t, keep(folder, long, control))
	assert.Equal(t, call("x"+text(most-2)+"…"), noerr.Get(folder.Find(id(1)))(t).Record.Call)
	assert.Equal(t, call(text(most)), noerr.Get(folder.Find(id(2)))(t).Record.Call)
}

func TestNobodyElseReachesRecords(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // access follows from the location of the folder there
	}
	folder := In(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, keep(folder, entry(1)))
	for path, mode := range map[string]fs.FileMode{
		filepath.Dir(string(folder)): 0o700, string(folder): 0o700, filepath.Join(string(folder), id(1)+".json"): 0o600,
	} {
		info := noerr.Get(os.Stat(path))(t)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
	for _, mode := range []fs.FileMode{0o750, 0o701, 0o777} {
		require.NoError(t, os.Chmod(string(folder), mode))
		assert.ErrorContains(t, keep(folder, entry(2)), "must be accessible only to this user", mode)
		assert.ErrorContains(t, noerr.Error(folder.Find(id(1))), "must be accessible only to this user", mode)
	}
	require.NoError(t, os.Chmod(string(folder), 0o700))
	assert.NoError(t, noerr.Error(folder.Find(id(1))))
}

func TestFindFails(t *testing.T) {
	folder := In(t.TempDir())
	assert.ErrorIs(t, noerr.Error(folder.Find(id(1))), ErrNotFound, "there is no folder yet")
	twin := entry(1)
	twin.Record.CallID = id(1)[:35] + "8"
	require.NoError(t, keep(folder, entry(1), twin))
	for text, want := range map[string]error{
		id(2): ErrNotFound, id(2)[:8]: ErrNotFound,
		id(1)[:8]: ErrAmbiguous, id(1)[:35]: ErrAmbiguous,
		"": ErrID, id(1)[:7]: ErrID, "../../etc/passwd": ErrID, "0000000x": ErrID, "00000000.": ErrID,
		id(1) + "0": ErrID, "00000001_5d1e": ErrID, strings.Repeat("0", 36): ErrID,
	} {
		assert.ErrorIs(t, noerr.Error(folder.Find(text)), want, "%q", text)
	}
	assert.ErrorContains(t, noerr.Error(folder.Find(id(1)[:8])), id(1), "the message lists the matching ids")
}

func TestFilesThatAreNoRecords(t *testing.T) {
	folder := In(t.TempDir())
	require.NoError(t, keep(folder, entry(1)))
	in := func(name string) string { return filepath.Join(string(folder), name) }
	other := noerr.Get(os.ReadFile(in(id(1) + ".json")))(t)
	require.NoError(t, os.WriteFile(in(id(2)+".json"), []byte(`{"record":`), 0o600))
	require.NoError(t, os.WriteFile(in(id(3)+".json"), nil, 0o600))
	require.NoError(t, os.WriteFile(in(id(4)+".json"), other, 0o600))
	require.NoError(t, os.Mkdir(in(id(5)+".json"), 0o700))
	require.NoError(t, os.Symlink(in(id(1)+".json"), in(id(6)+".json")))
	for n := 2; n <= 6; n++ {
		assert.ErrorIs(t, noerr.Error(folder.Find(id(n))), ErrDamaged, n)
	}
	require.NoError(t, os.WriteFile(in("notes.json"), nil, 0o600))
	assert.Len(t, list(t, folder, 9), 6, "only names that are ids count")
}

func TestWhatCannotBeKept(t *testing.T) {
	folder := In(t.TempDir())
	for _, wrong := range []string{"", "../x", id(1) + ".json", "call_1"} {
		bad := entry(1)
		bad.Record.CallID = wrong
		assert.ErrorIs(t, keep(folder, bad, entry(7)), ErrID, "%q", wrong)
		require.NoError(t, noerr.Error(folder.Find(id(7))), "the others are kept")
		require.NoError(t, os.Remove(filepath.Join(string(folder), id(7)+".json")))
	}
	large := entry(1)
	large.Record.Log = strings.Repeat("x", MaxBytes)
	assert.ErrorIs(t, keep(folder, large), ErrTooLarge)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.ErrorContains(t, keep(In(file), entry(1)), "keep "+file)
}

// TestManyAtOnce: a reader sees only whole records while others write and prune.
func TestManyAtOnce(t *testing.T) {
	folder := In(t.TempDir())
	const writers, each = 4, 130
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range each {
				if !assert.NoError(t, keep(folder, entry(n*writers+w))) {
					return
				}
				newest, err := folder.Newest("", 3)
				assert.NoError(t, err)
				for _, id := range newest {
					_, err := folder.Find(id)
					assert.True(t, err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist), "%v", err)
				}
			}
		})
	}
	group.Wait()
	newest := list(t, folder, writers*each)
	assert.Len(t, newest, MaxRecords)
	assert.Equal(t, id(writers*each-1), newest[0])
}

// TestAttackPrunesInTheWay: while one record waits for the folder to be pruned, others are kept. That takes long if
// another process has left many records.
func TestAttackPrunesInTheWay(t *testing.T) {
	dir := In(t.TempDir())
	keeper := noerr.Get(dir.Open())(t)
	of := func(n int) Entry {
		e := entry(n)
		e.Tenant = "acme"
		return e
	}
	for n := range 2500 {
		content := noerr.Get(json.Marshal(map[string]any{"tenant": "other", "record": entry(n).Record}))(t)
		require.NoError(t, os.WriteFile(filepath.Join(string(dir), id(n)+".json"), content, 0o600))
	}
	const writers = 6
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	next.Store(10_000)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range pruned / 2 {
				began := time.Now()
				assert.NoError(t, keeper.Keep(of(int(next.Add(1)))))
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	longest, long := slices.Max(took), 0
	for _, one := range took {
		if one > longest/2 {
			long++
		}
	}
	assert.LessOrEqual(t, long, writers/2, "calls that waited more than %s", longest/2)
	require.NoError(t, keeper.Close())
	assert.Len(t, list(t, dir, 10_000), MaxRecords)
	found, _ := noerr.Get2(dir.Of(t.Context(), "acme", 1000, nil))(t)
	assert.Len(t, found, writers*pruned/2, "the tenant with fewer records keeps all")
}

func TestStateDir(t *testing.T) {
	root := t.TempDir()
	for _, test := range []struct {
		system      string
		environment map[string]string
		want        []string // below root; none for an error
	}{
		{"linux", map[string]string{"XDG_STATE_HOME": root, "HOME": "/elsewhere"}, []string{"caisson"}},
		{"linux", map[string]string{"XDG_STATE_HOME": "relative", "HOME": root}, []string{".local", "state", "caisson"}},
		{"linux", map[string]string{"HOME": root}, []string{".local", "state", "caisson"}},
		{"freebsd", map[string]string{"HOME": root}, []string{".local", "state", "caisson"}},
		{"linux", nil, nil},
		{"darwin", map[string]string{"HOME": root, "XDG_STATE_HOME": "/elsewhere"}, []string{"Library", "Application Support", "caisson"}},
		{"darwin", map[string]string{"XDG_STATE_HOME": root}, nil},
		{"windows", map[string]string{"LocalAppData": root, "HOME": "/elsewhere"}, []string{"caisson"}},
		{"windows", map[string]string{"HOME": root}, nil},
	} {
		dir, err := StateDir(test.system, func(name string) string { return test.environment[name] })
		if test.want == nil {
			assert.ErrorIs(t, err, ErrNoPlace, "%v", test)
			continue
		}
		require.NoError(t, err, "%v", test)
		assert.Equal(t, filepath.Join(append([]string{root}, test.want...)...), dir, "%v", test)
	}
	assert.Equal(t, Folder(filepath.Join(root, "records")), In(root))
}
