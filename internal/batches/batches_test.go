package batches

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/tool"
)

// waiting returns a paused batch.
func waiting(t testing.TB) Batch {
	t.Helper()
	tools := tooltest.Registry(t, tooltest.New(t, "ask_user", tooltest.Fields{"execution": "client", "module": nil}, nil))
	e := noerr.Get(executor.New(tools, executor.Options{}))(t)
	report := noerr.Get(e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{tooltest.Call("call_1", "ask_user", "{}")}}))(t)
	require.NotNil(t, report.State)
	return Batch{Dialect: "openai", State: *report.State}
}

func keep(t *testing.T, f Folder, b Batch) *Place {
	t.Helper()
	place := noerr.Get(f.New(b.State.ID()))(t)
	require.NoError(t, place.Keep(b))
	return place
}

// claim reads the batch at a place and claims it.
func claim(t *testing.T, place *Place) bool {
	t.Helper()
	assert.NoError(t, noerr.Error(place.Read()))
	ok, err := place.Claim(t.Context(), "key.1", time.Time{})
	assert.NoError(t, err)
	return ok
}

// rootOf opens the folder.
func rootOf(t *testing.T, path string) *os.Root {
	t.Helper()
	root := noerr.Get(os.OpenRoot(path))(t)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestABatchIsKeptUntilItHasEnded(t *testing.T) {
	folder, batch := In(t.TempDir()), waiting(t)
	_, err := folder.Find(batch.State.ID())
	require.ErrorIs(t, err, ErrNotFound, "the folder is not there")
	kept := keep(t, folder, batch)
	for _, id := range []string{batch.State.ID(), batch.State.ID()[:8], strings.ToUpper(batch.State.ID()[:12])} {
		place, err := folder.Find(id)
		require.NoError(t, err, id)
		found := noerr.Get(place.Read())(t)
		assert.Equal(t, "openai", found.Dialect)
		assert.Equal(t, batch.State.Pending(), found.State.Pending())
		assert.Equal(t, kept.Path(), place.Path())
	}
	for _, id := range []string{"", "0", batch.State.ID()[:7], "ffffffff", "../../../etc/passwd", batch.State.ID() + "0"} {
		assert.ErrorIs(t, noerr.Error(folder.Find(id)), ErrNotFound, id)
	}
	_, err = folder.New("../elsewhere")
	require.Error(t, err)

	place := noerr.Get(folder.Find(batch.State.ID()))(t)
	require.NoError(t, place.End(batch.State.ID(), time.Now()))
	_, err = place.Read()
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorContains(t, err, "read "+place.Path())
	content := noerr.Get(os.ReadFile(place.Path()))(t)
	assert.NotContains(t, string(content), "ask_user", "its calls are removed")
}

func TestNobodyElseReachesBatches(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // access follows from the location of the folder there
	}
	folder, batch := In(filepath.Join(t.TempDir(), "state")), waiting(t)
	place := keep(t, folder, batch)
	beside := folder.At(filepath.Join(t.TempDir(), "batch.json"))
	require.NoError(t, beside.Keep(batch))
	for path, mode := range map[string]fs.FileMode{string(folder): 0o700, place.Path(): 0o600, beside.Path(): 0o600} {
		info := noerr.Get(os.Stat(path))(t)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
	require.NoError(t, os.Chmod(string(folder), 0o755)) //nolint:gosec // that is the attack
	require.ErrorContains(t, noerr.Error(folder.Find(batch.State.ID())), "must be accessible only to this user")
	require.ErrorContains(t, folder.Check(), "must be accessible only to this user")
}

func TestAFileOfTheUsersIsNotOverwritten(t *testing.T) {
	batch, dir := waiting(t), t.TempDir()
	for name, content := range map[string]string{"notes.txt": "mine", "empty": "", "other.json": `{"schema":"caisson-state/v2"}`} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.ErrorIs(t, Folder("").At(path).Check(), ErrOccupied, name)
	}
	place := Folder("").At(filepath.Join(dir, "batch.json"))
	require.NoError(t, place.Check())
	require.NoError(t, place.Keep(batch))
	require.ErrorIs(t, place.Check(), ErrOccupied, "a paused batch is not overwritten")
	require.NoError(t, place.End(batch.State.ID(), time.Now()))
	require.NoError(t, place.Check())
	require.Error(t, Folder("").At(filepath.Join(dir, "missing", "batch.json")).Check())
}

// TestAStateIsClaimedOnce: of many that read a batch at the same time, one can resume it.
func TestAStateIsClaimedOnce(t *testing.T) {
	for _, folder := range []Folder{In(t.TempDir()), ""} {
		t.Run(fmt.Sprintf("folder %t", folder != ""), func(t *testing.T) {
			batch, path := waiting(t), filepath.Join(t.TempDir(), "batch.json")
			require.NoError(t, folder.At(path).Keep(batch))
			var claimed atomic.Int32
			var group sync.WaitGroup
			for range 16 {
				group.Go(func() {
					place := folder.At(path)
					if _, err := place.Read(); err != nil {
						assert.ErrorIs(t, err, ErrEnded)
						return
					}
					ok, err := place.Claim(t.Context(), "key.1", time.Now().Add(time.Hour))
					assert.NoError(t, err)
					if !ok {
						return
					}
					claimed.Add(1)
					assert.NoError(t, place.End(batch.State.ID(), time.Now()))
				})
			}
			group.Wait()
			assert.Equal(t, int32(1), claimed.Load())
		})
	}
}

// TestWhatWasReadBeforeIsNotClaimedLater: a slow process cannot resume a batch that another one has
// resumed since, although the marker of that claim is gone.
func TestWhatWasReadBeforeIsNotClaimedLater(t *testing.T) {
	batch, path := waiting(t), filepath.Join(t.TempDir(), "batch.json")
	require.NoError(t, Folder("").At(path).Keep(batch))
	slow, fast := Folder("").At(path), Folder("").At(path)
	noerr.Get(slow.Read())(t)
	require.True(t, claim(t, fast))
	require.NoError(t, fast.End(batch.State.ID(), time.Now()))
	ok := noerr.Get(slow.Claim(t.Context(), "key.1", time.Time{}))(t)
	assert.False(t, ok)
	files := noerr.Get(os.ReadDir(filepath.Dir(path)))(t)
	assert.Len(t, files, 1, "no marker is left next to the file")
}

// TestAFileIsClaimedOnceWhateverRemembersIt: of many that resume the same file at the same time, by different paths and
// with different state folders, one can. Control: claims that are only in the state folders all succeed.
func TestAFileIsClaimedOnceWhateverRemembersIt(t *testing.T) {
	batch, dir := waiting(t), t.TempDir()
	require.NoError(t, Folder("").At(filepath.Join(dir, "batch.json")).Keep(batch))
	content := noerr.Get(os.ReadFile(filepath.Join(dir, "batch.json")))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copy.json"), content, 0o600))
	paths := []string{filepath.Join(dir, "batch.json"), filepath.Join(dir, "copy.json"), filepath.Join(dir, "..", filepath.Base(dir), "batch.json")}
	if goruntime.GOOS != "windows" { // links require a privilege there
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(dir, link))
		require.NoError(t, os.Link(paths[0], filepath.Join(dir, "hard.json")))
		paths = append(paths, filepath.Join(link, "batch.json"), filepath.Join(dir, "hard.json"))
	}
	var claimed, alone atomic.Int32
	var group sync.WaitGroup
	for _, path := range append(paths, paths...) {
		state, none := In(t.TempDir()), rootOf(t, t.TempDir())
		group.Go(func() {
			if claim(t, state.At(path)) {
				claimed.Add(1)
			}
			if ok, err := take(none, "key"); ok && err == nil {
				alone.Add(1)
			}
		})
	}
	group.Wait()
	assert.Equal(t, int32(1), claimed.Load())
	assert.Equal(t, int32(2*len(paths)), alone.Load(), "control")
}

// TestAKeptBatchIsClaimedByItsFile: a batch in the state folder can be claimed once, whether by its id or
// by its file, and whatever the state folder.
func TestAKeptBatchIsClaimedByItsFile(t *testing.T) {
	folder, batch := In(t.TempDir()), waiting(t)
	path := keep(t, folder, batch).Path()
	named := noerr.Get(folder.Find(batch.State.ID()))(t)
	first := true
	for name, place := range map[string]*Place{"id": named, "file": folder.At(path), "elsewhere": In(t.TempDir()).At(path), "nowhere": Folder("").At(path)} {
		assert.Equal(t, first, claim(t, place), name)
		first = false
	}
}

// TestAFailedClaimCanBeTriedAgain: a claim that fails because of the state folder leaves no marker.
func TestAFailedClaimCanBeTriedAgain(t *testing.T) {
	batch, dir := waiting(t), t.TempDir()
	broken := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	require.NoError(t, Folder("").At(filepath.Join(dir, "batch.json")).Keep(batch))
	for _, folder := range []Folder{Folder(filepath.Join(broken, "batches")), In(t.TempDir())} {
		place := folder.At(filepath.Join(dir, "batch.json"))
		noerr.Get(place.Read())(t)
		ok, err := place.Claim(t.Context(), "key.1", time.Time{})
		assert.Equal(t, err == nil, ok)
		assert.Equal(t, !strings.HasPrefix(string(folder), broken), ok)
	}
}

// TestACopyIsClaimedWithItsOriginal: the state folder prevents resuming a copy of the file. Control:
// without a state folder the copy can be resumed.
func TestACopyIsClaimedWithItsOriginal(t *testing.T) {
	batch := waiting(t)
	for folder, again := range map[Folder]bool{In(t.TempDir()): false, "": true} {
		original, copied := folder.At(filepath.Join(t.TempDir(), "batch.json")), folder.At(filepath.Join(t.TempDir(), "copy.json"))
		for i, place := range []*Place{original, copied} {
			require.NoError(t, place.Keep(batch))
			assert.Equal(t, i == 0 || again, claim(t, place))
		}
	}
}

func TestRoomIsBounded(t *testing.T) {
	folder := In(t.TempDir())
	var places []*Place
	for range 4 {
		places = append(places, keep(t, folder, waiting(t)))
	}
	old := filepath.Join(string(folder), strings.Repeat("0", 64)+taken)
	fresh := filepath.Join(string(folder), strings.Repeat("1", 64)+taken)
	for _, path := range []string{old, fresh} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	long := time.Now().Add(-2 * retention)
	require.NoError(t, os.Chtimes(old, long, long))
	require.NoError(t, os.Chtimes(places[3].Path(), long, long))
	root := rootOf(t, string(folder))
	require.NoError(t, prune(root, 2, MaxBytes))
	assert.NoFileExists(t, places[0].Path(), "the oldest is removed")
	assert.FileExists(t, places[1].Path())
	assert.FileExists(t, places[2].Path())
	assert.NoFileExists(t, places[3].Path(), "it has expired")
	assert.NoFileExists(t, old)
	assert.FileExists(t, fresh)
	info := noerr.Get(os.Stat(places[2].Path()))(t)
	require.NoError(t, prune(root, 2, info.Size()+1))
	assert.NoFileExists(t, places[1].Path())
}

// TestWhatWaitsIsKeptLongest: ended batches are removed before paused ones.
func TestWhatWaitsIsKeptLongest(t *testing.T) {
	folder := In(t.TempDir())
	waits := keep(t, folder, waiting(t))
	var ended []*Place
	for range 3 {
		batch := waiting(t)
		ended = append(ended, keep(t, folder, batch))
		require.NoError(t, ended[len(ended)-1].End(batch.State.ID(), time.Now()))
	}
	root := rootOf(t, string(folder))
	require.NoError(t, prune(root, 2, MaxBytes))
	assert.FileExists(t, waits.Path())
	assert.NoFileExists(t, ended[0].Path())
	assert.NoFileExists(t, ended[1].Path())
	assert.FileExists(t, ended[2].Path(), "the newest of the ended ones is kept")
}

func TestDamagedFilesAreRefused(t *testing.T) {
	batch := waiting(t)
	whole := noerr.Get(encode(wireBatch{Batch: batch.State.ID(), State: &batch.State}))(t)
	other := noerr.Get(encode(wireBatch{Batch: waiting(t).State.ID(), State: &batch.State}))(t)
	for name, content := range map[string]string{
		"empty": "", "text": "hello", "list": "[]", "cut": string(whole[:len(whole)/2]), "two": string(whole) + string(whole),
		"another's": `{"schema":"caisson-config/v1"}`, "without state": `{"schema":"caisson-batch/v1","batch":"x"}`,
		"unknown member": strings.Replace(string(whole), `{"schema"`, `{"approved":true,"schema"`, 1), "another id": string(other),
		"a state of nothing": `{"schema":"caisson-batch/v1","batch":"","state":{}}`,
	} {
		assert.ErrorIs(t, noerr.Error(decode([]byte(content))), ErrDamaged, name)
	}
	decoded := noerr.Get(decode(whole))(t)
	assert.Equal(t, batch.State.Pending(), decoded.State.Pending())
}

// TestWhatIsNoFileIsNotRead: folders and links are rejected.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, noerr.Error(Folder("").At(filepath.Join(dir, "folder")).Read()))
	require.ErrorIs(t, func() error { _, err := Folder("").At(filepath.Join(dir, "missing")).Read(); return err }(), ErrNotFound)
	if goruntime.GOOS == "windows" {
		return // links require a privilege there
	}
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "link")))
	require.ErrorContains(t, noerr.Error(Folder("").At(filepath.Join(dir, "link")).Read()), "not a regular file")
}

// TestAttackLargeFile: rejecting a file that is too large allocates little. Control: reading it allocates
// its size.
func TestAttackLargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "batch.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"schema":"`), 0o600))
	require.NoError(t, os.Truncate(path, 60<<20))
	cost := func(read func() error) (uint64, error) {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		err := read()
		goruntime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	careful, err := cost(func() error { _, err := Folder("").At(path).Read(); return err })
	require.ErrorContains(t, err, fmt.Sprintf("the file is too large: it has more than %d bytes", MaxFileBytes))
	assert.Less(t, careful, uint64(1<<20))
	require.Error(t, Folder("").At(path).Check(), "it is not overwritten either")
	careless := noerr.Get(cost(func() error { _, err := os.ReadFile(path); return err }))(t)
	assert.Greater(t, careless, uint64(60<<20))
}

// FuzzDecode: a batch decoded from arbitrary content survives encoding unchanged.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":"caisson-batch/v1","batch":"0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47","ended":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"schema":"caisson-batch/v1","batch":"","state":{"schema":"caisson-state/v2"}}`))
	batch := waiting(f)
	whole := noerr.Get(encode(wireBatch{Batch: batch.State.ID(), Dialect: "openai", State: &batch.State}))(f)
	f.Add(whole)
	f.Fuzz(func(t *testing.T, content []byte) {
		batch, err := decode(content)
		if err != nil {
			assert.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrEnded), "%v", err)
			return
		}
		assert.NotEmpty(t, batch.State.ID())
		again := noerr.Get(encode(wireBatch{Batch: batch.State.ID(), Dialect: batch.Dialect, State: &batch.State}))(t)
		second := noerr.Get(decode(again))(t)
		one := noerr.Get(json.Marshal(batch.State))(t)
		two := noerr.Get(json.Marshal(second.State))(t)
		assert.JSONEq(t, string(one), string(two))
	})
}
