package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// keeping returns an engine that uses a cache directory as its store.
func keeping(t testing.TB, dir string, options Options) *Engine {
	t.Helper()
	options.CacheDir = dir
	return newEngine(t, options, nil)
}

// entries returns the entries of a store.
func entries(t testing.TB, dir string) []string {
	t.Helper()
	listed, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []string
	for _, item := range listed {
		if entryName.MatchString(item.Name()) {
			found = append(found, filepath.Join(dir, item.Name()))
		}
	}
	return found
}

func onlyEntry(t testing.TB, dir string) string {
	t.Helper()
	found := entries(t, dir)
	require.Len(t, found, 1)
	return found[0]
}

// everything is a module to which the passes that bound it do all they can.
func everything() program {
	return program{body: recurse, memory: 1, start: true, tables: []byte{1, 0x70, 0, 1}, data: []wasm.Segment{{Offset: 1 << 16, Bytes: []byte("x")}}}
}

// TestStoreKeepsAllOfARewriting: a later process finds exactly the module that the first one made.
func TestStoreKeepsAllOfARewriting(t *testing.T) {
	command := command(t, guests.C)
	set := map[string]bool{}
	unrestorable := program{body: growTable, memory: -1, tables: []byte{1, 0x70, 0, 1}}.bytes()
	outOfBounds := program{body: nothing, memory: 0, data: []wasm.Segment{{Bytes: []byte{1}}}}.bytes()
	for _, source := range [][]byte{everything().bytes(), unrestorable, outOfBounds, command} {
		dir := filepath.Join(t.TempDir(), "cache")
		cold := compileSource(t, keeping(t, dir, Options{}), source)
		_, kept, err := readEntry(onlyEntry(t, dir))
		require.NoError(t, err)
		want, err := rewrite(t.Context(), source, cold.description)
		require.NoError(t, err)
		taken, err := framesOf(machineCode(cold.compiled))
		require.NoError(t, err)
		if large := want.checkFrames(taken); large != nil {
			want, err = rewriteWithin(t.Context(), source, cold.description, wasm.Bounds{}, role{}, large.frames)
			require.NoError(t, err)
		}
		assert.Nil(t, kept.frames, "they are compared with the code before it is stored")
		kept.frames = want.frames
		assert.Equal(t, want, kept)
		fields := reflect.ValueOf(kept)
		for i := range fields.NumField() {
			set[fields.Type().Field(i).Name] = set[fields.Type().Field(i).Name] || !fields.Field(i).IsZero()
		}

		warm := compileSource(t, keeping(t, dir, Options{}), source)
		assert.Equal(t, cold.rewritten, warm.rewritten)
		assert.Equal(t, cold.description, warm.description)
	}
	for field, isSet := range set {
		assert.True(t, isSet, "the test must set the field %s", field)
	}
}

// TestKeptModulesAreNotMadeAgain: a later process neither validates nor rewrites a module,
// and starts no compiler. The control is another module, for which it needs one.
func TestKeptModulesAreNotMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	source := program{body: nothing, memory: 1}.bytes()
	compileSource(t, keeping(t, dir, Options{Compiler: child(t)}), source)
	before := listing(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	if goruntime.GOOS != "windows" {
		assert.EqualValues(t, 0o700, info.Mode().Perm(), "only this user may reach compiled code")
	}

	broken := Compiler{Executable: filepath.Join(t.TempDir(), "absent")}
	e := keeping(t, dir, Options{Compiler: broken})
	module := compileSource(t, e, source)
	mustRun(t, module, plain)
	_, err = e.Compile(t.Context(), program{body: nothing, memory: 2}.bytes())
	require.ErrorIs(t, err, ErrHost, "control: another module")
	require.NoError(t, e.Close(t.Context()))
	assert.Equal(t, before, listing(t, dir), "nothing but the entry stays")
}

// TestFilledStoreIsRead: a folder that was filled earlier and that this user may not change, such as one that is part
// of an image, serves its modules, and nothing is added to it. Entries that other users could have written are not
// used.
func TestFilledStoreIsRead(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // where access follows from the location
	}
	dir := filepath.Join(t.TempDir(), "cache")
	source, other := program{body: nothing, memory: 1}.bytes(), program{body: nothing, memory: 2}.bytes()
	compileSource(t, keeping(t, dir, Options{Compiler: child(t)}), source)
	entry := onlyEntry(t, dir)
	chmod := func(mode os.FileMode, names ...string) {
		t.Helper()
		for _, name := range names {
			require.NoError(t, os.Chmod(name, mode))
		}
	}
	chmod(0o755, dir, entry)
	chmod(0o644, filepath.Join(entry, indexFile), filepath.Join(entry, moduleFile), filepath.Join(entry, dataFile), filepath.Join(entry, codeFile))
	before := listing(t, dir)

	broken := Compiler{Executable: filepath.Join(t.TempDir(), "absent")}
	mustRun(t, compileSource(t, keeping(t, dir, Options{Compiler: broken}), source), plain)
	e := keeping(t, dir, Options{Compiler: child(t)})
	mustRun(t, compileSource(t, e, other), plain)
	require.NoError(t, e.Close(t.Context()))
	_, err := New(t.Context(), Options{CacheDir: dir, FillCache: true})
	assert.ErrorContains(t, err, "chmod 700")
	assert.Equal(t, before, listing(t, dir), "nothing is added")

	for name, mode := range map[string]os.FileMode{entry: 0o777, filepath.Join(entry, indexFile): 0o666, filepath.Join(entry, codeFile): 0o664} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		chmod(mode, name)
		_, err = keeping(t, dir, Options{Compiler: broken}).Compile(t.Context(), source)
		assert.ErrorIs(t, err, ErrHost, "%s with mode %v", name, mode)
		chmod(info.Mode(), name)
	}
	for _, directory := range []string{dir, filepath.Join(t.TempDir(), "empty")} {
		require.NoError(t, os.MkdirAll(directory, 0o755))
		chmod(map[bool]os.FileMode{true: 0o775, false: 0o755}[directory == dir], directory)
		_, err := New(t.Context(), Options{CacheDir: directory})
		assert.ErrorContains(t, err, "chmod 700", directory)
	}
}

// TestFilledStoreSaysWhatIsWrong: code that is there but cannot be used is reported once, with the reason;
// code that is not there is not.
func TestFilledStoreSaysWhatIsWrong(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // where access follows from the location
	}
	dir := filepath.Join(t.TempDir(), "cache")
	sources := [][]byte{program{body: nothing, memory: 1}.bytes(), program{body: nothing, memory: 2}.bytes()}
	filling := keeping(t, dir, Options{Compiler: child(t)})
	for _, source := range sources {
		compileSource(t, filling, source)
	}
	entries, err := filepath.Glob(filepath.Join(dir, "????????????????????????????????????????????????????????????????"))
	require.NoError(t, err)
	require.Len(t, entries, len(sources))
	require.NoError(t, os.Chmod(dir, 0o755))
	for name, c := range map[string]struct {
		wrong  func(entry string) error
		reason string // a regular expression
	}{
		"folder that others can write to": {func(entry string) error { return os.Chmod(entry, 0o770) }, `has mode .*\(chmod go-w\)$`},
		"file that others can write to":   {func(entry string) error { return os.Chmod(filepath.Join(entry, codeFile), 0o622) }, `code has mode .*\(chmod go-w\)$`},
		"link": {func(entry string) error {
			data := filepath.Join(entry, dataFile)
			return errors.Join(os.Rename(data, data+".old"), os.Symlink(data+".old", data))
		}, "data is not a regular file$"},
		"missing file":  {func(entry string) error { return os.Remove(filepath.Join(entry, dataFile)) }, "data: no such file or directory$"},
		"changed code":  {func(entry string) error { flip(t, filepath.Join(entry, codeFile), -200); return nil }, "no intact entry: .* has changed$"},
		"changed index": {func(entry string) error { flip(t, filepath.Join(entry, indexFile), -2); return nil }, "no intact entry: the index has changed$"},
		"nothing":       {os.RemoveAll, ""},
	} {
		t.Run(name, func(t *testing.T) {
			filled := filepath.Join(t.TempDir(), "filled")
			require.NoError(t, os.CopyFS(filled, os.DirFS(dir)))
			for _, entry := range entries {
				require.NoError(t, c.wrong(filepath.Join(filled, filepath.Base(entry))))
			}
			if name == "nothing" { // of these modules
				require.NoError(t, os.Mkdir(filepath.Join(filled, strings.Repeat("0", 64)), 0o755))
			}
			require.NoError(t, os.Chmod(filled, 0o755))
			var reasons []string
			e := keeping(t, filled, Options{Compiler: child(t), OnUncached: func(reason error) { reasons = append(reasons, reason.Error()) }})
			for _, source := range sources {
				mustRun(t, compileSource(t, e, source), plain)
			}
			if c.reason == "" {
				assert.Empty(t, reasons)
				return
			}
			require.Len(t, reasons, 1)
			assert.Regexp(t, c.reason, reasons[0])
		})
	}
}

// TestFaultsOfTheCompiler: a module is not at fault if the compiler's files cannot be written.
func TestFaultsOfTheCompiler(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "code", Err: syscall.ENOSPC}
	assert.NotErrorIs(t, faultOf(fmt.Errorf("compile: %w", full)), errInvalid)
	assert.NotErrorIs(t, faultOf(&os.LinkError{Op: "rename", Err: syscall.ENOSPC}), errInvalid)
	assert.ErrorIs(t, faultOf(errors.New("invalid magic number")), errInvalid)
	for _, limit := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		err := compileError(&fs.PathError{Op: "write", Path: "code", Err: limit})
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorIs(t, err, ErrHost)
		assert.Equal(t, "compile: host failure: the module could not be compiled: write code: "+limit.Error(), err.Error())
	}
}

// TestKeysTellModulesApart: above all, an entry for an engine that trusts a module does not admit the module in other
// engines.
func TestKeysTellModulesApart(t *testing.T) {
	s := store{directory: "d"}
	one, other := DigestOf([]byte("1")), DigestOf([]byte("2"))
	keys := map[string]bool{}
	for _, wanted := range []Digest{one, other} {
		for _, trusted := range []bool{false, true} {
			entry := s.entry(wanted, role{trusted: trusted})
			assert.Regexp(t, entryName, filepath.Base(entry))
			assert.Equal(t, entry, s.entry(wanted, role{trusted: trusted}))
			keys[entry] = true
		}
	}
	assert.Len(t, keys, 4)
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	return found
}

// TestDamagedEntriesAreMadeAgain changes each part of an entry. The control shows that plain wazero refuses such a
// module forever.
func TestDamagedEntriesAreMadeAgain(t *testing.T) {
	withData := program{body: trapUnless(8, 7), memory: 1, data: []wasm.Segment{{Offset: 8, Bytes: []byte{7}}}}
	for name, damage := range map[string]func(t *testing.T, entry string){
		"a bit of the code":        func(t *testing.T, entry string) { flip(t, filepath.Join(entry, codeFile), -200) },
		"the code's header":        func(t *testing.T, entry string) { flip(t, filepath.Join(entry, codeFile), 0) },
		"the code is gone":         func(t *testing.T, entry string) { require.NoError(t, os.Remove(filepath.Join(entry, codeFile))) },
		"the code is cut":          func(t *testing.T, entry string) { require.NoError(t, os.Truncate(filepath.Join(entry, codeFile), 10)) },
		"a bit of the module":      func(t *testing.T, entry string) { flip(t, filepath.Join(entry, moduleFile), 20) },
		"the module is gone":       func(t *testing.T, entry string) { require.NoError(t, os.Remove(filepath.Join(entry, moduleFile))) },
		"a bit of the data":        func(t *testing.T, entry string) { flip(t, filepath.Join(entry, dataFile), -1) },
		"the data is cut":          func(t *testing.T, entry string) { require.NoError(t, os.Truncate(filepath.Join(entry, dataFile), 0)) },
		"the data is gone":         func(t *testing.T, entry string) { require.NoError(t, os.Remove(filepath.Join(entry, dataFile))) },
		"the index is gone":        func(t *testing.T, entry string) { require.NoError(t, os.Remove(filepath.Join(entry, indexFile))) },
		"the index is empty":       func(t *testing.T, entry string) { require.NoError(t, os.Truncate(filepath.Join(entry, indexFile), 0)) },
		"a bit of the index":       func(t *testing.T, entry string) { flip(t, filepath.Join(entry, indexFile), -20) },
		"a bit of the index's sum": func(t *testing.T, entry string) { flip(t, filepath.Join(entry, indexFile), 0) },
		"everything is gone":       func(t *testing.T, entry string) { require.NoError(t, os.RemoveAll(entry)) },
		"the folder alone is there": func(t *testing.T, entry string) {
			require.NoError(t, os.RemoveAll(entry))
			require.NoError(t, os.Mkdir(entry, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			run := func() {
				module := compile(t, keeping(t, dir, Options{}), withData)
				mustRun(t, module, plain)
			}
			run()
			entry := onlyEntry(t, dir)
			require.NoError(t, checkEntry(entry))
			damage(t, entry)
			require.ErrorIs(t, checkEntry(entry), errNoEntry)
			run()
			assert.NoError(t, checkEntry(entry), "it has been made again")
		})
	}

	t.Run("control", func(t *testing.T) {
		dir := t.TempDir()
		source := program{body: nothing, memory: 1}.bytes()
		require.NoError(t, compileInto(t.Context(), source, dir))
		entry, err := onlyFile(dir)
		require.NoError(t, err)
		flip(t, filepath.Join(dir, entry), 0)
		for range 2 {
			assert.Error(t, compileInto(t.Context(), source, dir))
		}
	})
}

func flip(t *testing.T, file string, at int) {
	t.Helper()
	content := read(t, file)
	if at < 0 {
		at = max(0, len(content)+at)
	}
	content[at] ^= 0x10
	require.NoError(t, os.WriteFile(file, content, 0o600))
}

// sized is a module whose entry takes some 100 KB.
func sized(n byte) program {
	return program{body: bytes.Repeat([]byte{0x41, n, 0x1a}, 30_000), memory: 1} // i32.const n, drop
}

// TestCacheIsBounded: the least recently used entry is evicted first.
func TestCacheIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	compile(t, keeping(t, dir, Options{}), sized(1))
	first := onlyEntry(t, dir)
	one, err := measure(first)
	require.NoError(t, err)
	limited := Options{CacheBytes: one.bytes*2 + one.bytes/2} // room for two

	second := compileAnother(t, dir, limited, sized(2))
	holds(t, dir, first, second)
	age(t, first, time.Hour)
	age(t, second, 2*time.Hour)
	third := compileAnother(t, dir, limited, sized(3))
	holds(t, dir, first, third)
	age(t, third, time.Minute)
	compile(t, keeping(t, dir, limited), sized(1)) // it is used
	fourth := compileAnother(t, dir, limited, sized(4))
	holds(t, dir, first, fourth)

	e := keeping(t, dir, Options{CacheBytes: 1})
	mustRun(t, compile(t, e, sized(5)), plain)
	assert.Empty(t, entries(t, dir))
	mustRun(t, compile(t, e, sized(5)), plain)
}

// compileAnother returns the entry of a module that the store did not hold before.
func compileAnother(t *testing.T, dir string, options Options, p program) string {
	t.Helper()
	e := keeping(t, dir, options)
	compile(t, e, p)
	entry := e.store.entry(DigestOf(p.bytes()), role{})
	require.DirExists(t, entry)
	return entry
}

func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	assert.ElementsMatch(t, want, entries(t, dir))
}

// age makes an entry look as if it had been used so long ago.
func age(t *testing.T, entry string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	require.NoError(t, os.Chtimes(filepath.Join(entry, indexFile), then, then))
}

// TestCompilerOfAnotherVersion: wazero would not find what another version has compiled,
// and compile it in this process.
func TestCompilerOfAnotherVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	e := keeping(t, dir, Options{})
	compile(t, e, program{body: nothing, memory: 1})
	i, _, err := readEntry(onlyEntry(t, dir))
	require.NoError(t, err)
	i.Folder = "wazero-v0.0.0"
	err = e.view.show(onlyEntry(t, dir), i, func() error { panic("it must not be read") })
	assert.ErrorContains(t, err, "another version")
}

// TestWazeroReadsWhatIsShown: if wazero compiled a module in spite of all, it would be
// noticed.
func TestWazeroReadsWhatIsShown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	e := keeping(t, dir, Options{})
	compile(t, e, program{body: nothing, memory: 1})
	entry := onlyEntry(t, dir)
	i, r, err := readEntry(entry)
	require.NoError(t, err)
	fresh := keeping(t, dir, Options{})
	shown := filepath.Join(fresh.view.directory, fresh.view.folder, i.Name)
	err = fresh.view.show(entry, i, func() error {
		require.NoError(t, os.Remove(shown))
		_, err := fresh.runtime.CompileModule(t.Context(), r.source)
		return err
	})
	assert.ErrorContains(t, err, "compiled the module again")
	assert.NoFileExists(t, shown)
}

// TestViewIsMadeAgain: folders of temporary files are emptied while programs run.
func TestViewIsMadeAgain(t *testing.T) {
	e := newEngine(t, Options{Compiler: child(t)}, nil)
	compile(t, e, program{body: nothing, memory: 1})
	require.NoError(t, os.RemoveAll(e.store.directory))
	mustRun(t, compile(t, e, program{body: nothing, memory: 2}), plain)
}

// TestCacheDirectoryStaysWhereItIs: wherever the program goes.
func TestCacheDirectoryStaysWhereItIs(t *testing.T) {
	t.Chdir(t.TempDir())
	e := keeping(t, "cache", Options{})
	before := entries(t, "cache")
	t.Chdir(t.TempDir())
	mustRun(t, compile(t, e, program{body: nothing, memory: 1}), plain)
	assert.Empty(t, before)
	assert.NoDirExists(t, "cache")
	assert.Len(t, entries(t, e.store.directory), 1)
}

// aged makes a directory with something in it that was last written to so long ago.
func aged(t *testing.T, directory string, age time.Duration) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "output"), 0o700))
	then := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(directory, then, then))
}

// TestLeftoversOfKilledProcessesGo: a process that is killed leaves its directories, which a later one removes once no
// process can be using them.
func TestLeftoversOfKilledProcessesGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache [1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, kind := range []string{"compiling-", "reading-", "removed-"} {
		aged(t, filepath.Join(dir, kind+"1"), 2*abandonedAge)
		aged(t, filepath.Join(dir, kind+"2"), abandonedAge/2)
	}
	keeping(t, dir, Options{})
	for _, kind := range []string{"compiling-", "reading-", "removed-"} {
		assert.NoDirExists(t, filepath.Join(dir, kind+"1"))
		assert.DirExists(t, filepath.Join(dir, kind+"2"))
	}
}

// TestScratchOfKilledProcessesGoes: in the folder for temporary files, which other programs use as well, only old
// entries that are surely ours are removed.
func TestScratchOfKilledProcessesGoes(t *testing.T) {
	folder := t.TempDir()
	old := func(name string) string {
		path := filepath.Join(folder, name)
		aged(t, path, 2*abandonedAge)
		return path
	}
	ours := old("caisson-compiled-123")
	kept := []string{old("caisson-compiled-"), old("caisson-compiled-notes"), old("my-caisson-compiled-1"), old("compiling-1")}
	aged(t, filepath.Join(folder, "caisson-compiled-4"), abandonedAge/2)
	kept = append(kept, filepath.Join(folder, "caisson-compiled-4"))

	require.NoError(t, sweepScratch(folder, time.Now()))
	assert.NoDirExists(t, ours)
	for _, path := range kept {
		assert.DirExists(t, path)
	}
}

// TestScratchIsSwept: an engine without a cache directory sweeps, and names its own so
// that a later one finds it.
func TestScratchIsSwept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("TMP", folder)
	left := filepath.Join(folder, "caisson-compiled-1")
	aged(t, left, 2*abandonedAge)
	e := newEngine(t, Options{Compiler: child(t)}, nil)
	assert.NoDirExists(t, left)
	assert.Equal(t, folder, filepath.Dir(e.store.directory))
	assert.Regexp(t, scratchName, filepath.Base(e.store.directory))
}
