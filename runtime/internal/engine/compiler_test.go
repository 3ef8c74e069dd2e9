package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// child is a compiler in a child process, which is this test binary: TestMain serves.
func child(t testing.TB) Compiler {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	return Compiler{Executable: executable}
}

// ifs is a module of functions with many sequential conditions, which take wazero's
// compiler time that grows with the square of their number.
func ifs(n, functions int) program {
	one := []byte{0x41, 0, 0x04, 0x40, 0x0b} // i32.const 0, if, end
	return program{body: bytes.Repeat(one, n), memory: -1, copies: functions - 1}
}

// slow is as slow to compile as the bounds on complexity let a module be: most of a
// minute. Those bounds refuse one that would take hours.
var slow = ifs(11_900, 14)

func TestComplexityIsBounded(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	for name, p := range map[string]program{"one function": ifs(100_000, 1), "all functions": ifs(11_900, 20)} {
		start := time.Now()
		_, err := e.Compile(t.Context(), p.bytes(), MeterSlices)
		require.ErrorIs(t, err, wasm.ErrLimit, name)
		assert.Less(t, time.Since(start), 10*time.Second, name)
	}
}

func TestChildCompiles(t *testing.T) {
	for name, dir := range map[string]string{"kept": filepath.Join(t.TempDir(), "cache"), "not kept": ""} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Compiler: child(t), CacheDir: dir}, nil)
			_, err := compile(t, e, program{body: nothing, memory: 1}).Run(t.Context(), plain)
			require.NoError(t, err)
			_, err = compile(t, e, program{body: unreachable, memory: 1}).Run(t.Context(), plain)
			require.ErrorIs(t, err, ErrTrap)
			_, err = e.Compile(t.Context(), program{body: []byte{0x6a}, memory: -1}.bytes(), MeterSlices)
			require.ErrorIs(t, err, ErrModule, "what the child refuses is the module's fault")
			assert.NotContains(t, err.Error(), "exit status")
			left, err := filepath.Glob(filepath.Join(e.store.directory, "compiling-*"))
			require.NoError(t, err)
			assert.Empty(t, left, "no staging directory stays")
		})
	}
}

// TestChildIsBounded: a module that takes too long to compile costs a child, and this
// process nothing.
func TestChildIsBounded(t *testing.T) {
	for name, limit := range map[string]func(*Compiler){
		"clock":     func(c *Compiler) { c.Wall = 4 * time.Second },
		"processor": func(c *Compiler) { c.CPU = 2 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			compiler := child(t)
			limit(&compiler)
			e := newEngine(t, Options{Compiler: compiler}, nil)
			start := time.Now()
			_, err := e.Compile(t.Context(), slow.bytes(), MeterSlices)
			require.ErrorIs(t, err, ErrModule)
			assert.ErrorContains(t, err, "compiling it takes")
			assert.Less(t, time.Since(start), time.Minute)

			_, err = compile(t, e, ifs(100, 1)).Run(t.Context(), plain)
			assert.NoError(t, err, "the control, within the limit")
		})
	}
}

// TestDamagedCodeIsCompiledAgain changes each part of what the store holds. The control
// shows that wazero alone refuses such a module for ever.
func TestDamagedCodeIsCompiledAgain(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, s store, entry string){
		"a bit of the code":    func(t *testing.T, _ store, entry string) { flip(t, entry, -200) },
		"the code's header":    func(t *testing.T, _ store, entry string) { flip(t, entry, 0) },
		"the code is gone":     func(t *testing.T, _ store, entry string) { require.NoError(t, os.Remove(entry)) },
		"the code is cut":      func(t *testing.T, _ store, entry string) { require.NoError(t, os.Truncate(entry, 10)) },
		"the index is no JSON": func(t *testing.T, s store, _ string) { overwrite(t, s, "{") },
		"the index of another module": func(t *testing.T, s store, _ string) {
			overwrite(t, s, `{"module":"`+DigestOf(nil).String()+`","entry":"x","sha256":"00"}`)
		},
		"the index leads out": func(t *testing.T, s store, entry string) {
			overwrite(t, s, `{"entry":"../../etc/passwd","sha256":"00"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			p := program{body: nothing, memory: 1}
			run := func() error {
				e := newEngine(t, Options{CacheDir: dir}, nil)
				module, err := e.Compile(t.Context(), p.bytes(), MeterSlices)
				if err != nil {
					return err
				}
				_, err = module.Run(t.Context(), plain)
				return err
			}
			require.NoError(t, run())
			s := store{dir}
			indexes, err := filepath.Glob(filepath.Join(dir, "*.json"))
			require.NoError(t, err)
			require.Len(t, indexes, 1)
			text, err := os.ReadFile(indexes[0])
			require.NoError(t, err)
			var index indexed
			require.NoError(t, json.Unmarshal(text, &index))
			damage(t, s, filepath.Join(dir, filepath.FromSlash(index.Entry)))
			require.NoError(t, run())
			again, err := os.ReadFile(indexes[0])
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(again, &index))
			sum, err := fileDigest(filepath.Join(dir, filepath.FromSlash(index.Entry)))
			require.NoError(t, err)
			assert.Equal(t, index.SHA256, sum, "it has been compiled again")
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
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	if at < 0 {
		at = max(0, len(content)+at)
	}
	content[at] ^= 0x10
	require.NoError(t, os.WriteFile(file, content, 0o600))
}

func overwrite(t *testing.T, s store, text string) {
	t.Helper()
	indexes, err := filepath.Glob(filepath.Join(s.directory, "*.json"))
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	require.NoError(t, os.WriteFile(indexes[0], []byte(text), 0o600))
}

// TestStoreIsShared: engines of several processes, here several engines, compile the
// same modules into one directory at the same time.
func TestStoreIsShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var group sync.WaitGroup
	for range 8 {
		e := newEngine(t, Options{CacheDir: dir}, nil)
		group.Go(func() {
			for i := range 8 {
				module, err := e.Compile(t.Context(), program{body: nothing, memory: i}.bytes(), MeterSlices)
				if assert.NoError(t, err) {
					_, err = module.Run(t.Context(), plain)
					assert.NoError(t, err)
				}
			}
		})
	}
	group.Wait()
}

func TestServeCompilerOnlyWhenAsked(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, serving := ServeCompiler(t.Context(), none, strings.NewReader(""), &tail{})
	assert.False(t, serving)
}

func TestCompilerThatIsNotThere(t *testing.T) {
	e := newEngine(t, Options{Compiler: Compiler{Executable: filepath.Join(t.TempDir(), "absent")}}, nil)
	_, err := e.Compile(t.Context(), program{body: nothing, memory: 1}.bytes(), MeterSlices)
	assert.ErrorIs(t, err, ErrHost)
}

func TestTailKeepsTheEnd(t *testing.T) {
	end := &tail{limit: 4}
	for range 3 {
		_, err := end.Write([]byte("abcdef"))
		require.NoError(t, err)
	}
	assert.Equal(t, "cdef", end.String())
}

func TestCompilationCanBeCancelled(t *testing.T) {
	e := newEngine(t, Options{Compiler: Compiler{Executable: child(t).Executable, Wall: 2 * time.Second}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err := e.Compile(ctx, slow.bytes(), MeterSlices)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(start), time.Second, "the caller does not wait for the compilation")
}

func TestCloseEndsTheChild(t *testing.T) {
	e := newEngine(t, Options{Compiler: child(t)}, nil)
	failed := make(chan error)
	go func() {
		_, err := e.Compile(t.Context(), slow.bytes(), MeterSlices)
		failed <- err
	}()
	require.Eventually(t, func() bool {
		staged, err := filepath.Glob(filepath.Join(e.store.directory, "compiling-*"))
		return err == nil && len(staged) == 1
	}, 10*time.Second, time.Millisecond)
	start := time.Now()
	require.NoError(t, e.Close(t.Context()))
	assert.Less(t, time.Since(start), 5*time.Second)
	assert.ErrorIs(t, <-failed, ErrClosed)
	assert.NoDirExists(t, e.scratch)
}

// TestStagingOfKilledProcessesGoes: a process that is killed while it compiles leaves its
// staging directory, which a later one removes once nobody can be using it.
func TestStagingOfKilledProcessesGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	old, fresh := filepath.Join(dir, "compiling-1"), filepath.Join(dir, "compiling-2")
	for _, staging := range []string{old, fresh} {
		require.NoError(t, os.MkdirAll(staging, 0o700))
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	long := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(old, long, long))
	newEngine(t, Options{CacheDir: dir}, nil)
	assert.NoDirExists(t, old)
	assert.DirExists(t, fresh)
}
