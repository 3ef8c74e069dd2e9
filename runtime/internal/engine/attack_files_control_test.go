//go:build unix && !race

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/testsize"
)

// These tests show that the attacks on files which hostfuncs/files and package runtime withstand work in plain wazero,
// with its own WASI and its own mounts, through the same guest. docs/attacks.md lists which belongs to which.

// wasiCall is a WASI call of the probe; see internal/guests/probe/raw.go.
type wasiCall map[string]any

type wasiAnswer struct {
	Errno uint32   `json:"errno"`
	Text  string   `json:"text"`
	Count uint64   `json:"count"`
	Stat  []uint64 `json:"stat"`
}

// The descriptor of a mount in wazero, rights and oflags.
const (
	mountFD                 = 3
	readRight, writeRight   = 1 << 1, 1 << 6
	oflagCreate, oflagTrunc = 1, 8
	hostSecret              = "of the host's"
)

// exposed is a mounted directory next to a secret.
type exposed struct{ outside, project string }

func newExposed(t *testing.T) exposed {
	t.Helper()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	e := exposed{outside, filepath.Join(outside, "project")}
	require.NoError(t, os.MkdirAll(filepath.Join(e.project, "docs"), 0o700))
	require.NoError(t, os.WriteFile(e.secret(), []byte(hostSecret), 0o600))
	require.NoError(t, os.WriteFile(e.path("a.txt"), []byte("hello"), 0o600))
	require.NoError(t, os.Link(e.secret(), e.path("hard")))
	for link, target := range map[string]string{
		"relative": "../secret.txt", "absolute": e.secret(), "up": "..", "new": "../new.txt", "esc": "/", "proc": "/proc/self",
	} {
		require.NoError(t, os.Symlink(target, e.path(link)))
	}
	return e
}

func (e exposed) path(name string) string { return filepath.Join(e.project, name) }
func (e exposed) secret() string          { return filepath.Join(e.outside, "secret.txt") }

// contents returns the contents of a file, or "absent" if there is none.
func contents(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return "absent"
	}
	return string(text)
}

// unguardedCode keeps the probe's code, so that each control need not compile it again.
var unguardedCode = sync.OnceValue(wazero.NewCompilationCache)

// unguarded is wazero with its own WASI and the probe.
type unguarded struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func newUnguarded(t *testing.T) unguarded {
	t.Helper()
	root, err := guests.Compile(t.Context(), "internal/guests/probe")
	require.NoError(t, err)
	binary, err := os.ReadFile(filepath.Join(root, "internal", "guests", "probe", "probe.wasm"))
	require.NoError(t, err)
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(unguardedCode()))
	t.Cleanup(func() { assert.NoError(t, r.Close(context.Background())) })
	wasi_snapshot_preview1.MustInstantiate(t.Context(), r)
	compiled, err := r.CompileModule(t.Context(), binary)
	require.NoError(t, err)
	return unguarded{r, compiled}
}

// call has the probe make WASI calls, with a mount.
func (u unguarded) call(t *testing.T, mounts wazero.FSConfig, calls ...wasiCall) []wasiAnswer {
	t.Helper()
	request, err := json.Marshal(map[string]any{"do": "raw", "calls": calls})
	require.NoError(t, err)
	var output bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithStdin(bytes.NewReader(request)).WithStdout(&output).WithFSConfig(mounts)
	instance, err := u.runtime.InstantiateModule(t.Context(), u.compiled, config)
	if err == nil {
		err = instance.Close(t.Context())
	}
	require.NoError(t, err)
	var answers []wasiAnswer
	require.NoError(t, json.Unmarshal(output.Bytes(), &answers), output.String())
	require.Len(t, answers, len(calls))
	return answers
}

func writable(dir string) wazero.FSConfig { return wazero.NewFSConfig().WithDirMount(dir, "/project") }
func readOnly(dir string) wazero.FSConfig {
	return wazero.NewFSConfig().WithReadOnlyDirMount(dir, "/project")
}

func opening(path string, oflags, rights int) wasiCall {
	return wasiCall{"call": "path_open", "fd": mountFD, "path": path, "follow": 1, "oflags": oflags, "rights": rights}
}

// fileAttack is an attack that works in wazero.
type fileAttack struct {
	name  string
	calls []wasiCall
	// harm reports whether the attack succeeded.
	harm   func(e exposed, answers []wasiAnswer) bool
	mounts []func(dir string) wazero.FSConfig
}

// twice is both kinds of mounts, for attacks that a read-only one does not stop either.
func twice() []func(string) wazero.FSConfig {
	return []func(string) wazero.FSConfig{writable, readOnly}
}

func onlyWritable() []func(string) wazero.FSConfig { return []func(string) wazero.FSConfig{writable} }
func onlyReadOnly() []func(string) wazero.FSConfig { return []func(string) wazero.FSConfig{readOnly} }

func fileAttacks() []fileAttack {
	reading := func(name, path string, before ...wasiCall) fileAttack {
		calls := append(before, opening(path, 0, readRight), wasiCall{"call": "fd_read", "fd": -1 - len(before), "size": 100})
		return fileAttack{name: name, calls: calls, mounts: twice(), harm: func(_ exposed, a []wasiAnswer) bool { return a[len(a)-1].Text == hostSecret }}
	}
	outside := func(e exposed, _ []wasiAnswer) bool { return contents(e.secret()) != hostSecret }
	made := func(e exposed, _ []wasiAnswer) bool { return contents(filepath.Join(e.outside, "new.txt")) != "absent" }
	own := reading("a link that the guest makes", "mine", wasiCall{"call": "path_symlink", "fd": mountFD, "path": "mine", "text": "../secret.txt"})
	own.mounts = onlyWritable()
	return []fileAttack{
		reading("read a link", "relative"),
		reading("read an absolute link", "absolute"),
		reading("read through a directory link", "up/secret.txt"),
		reading("read a hard link from before", "hard"),
		own,
		{"write through a link", []wasiCall{opening("relative", 0, writeRight), {"call": "fd_write", "fd": -1, "text": "x"}}, outside, onlyWritable()},
		{"create through a link", []wasiCall{opening("new", oflagCreate, writeRight)}, made, onlyWritable()},
		{"rename through a directory link", []wasiCall{{"call": "path_rename", "fd": mountFD, "path": "up/secret.txt", "fd2": mountFD, "path2": "mine"}}, outside, onlyWritable()},
		{"hard link through a directory link", []wasiCall{{"call": "path_link", "fd": mountFD, "path": "up/secret.txt", "fd2": mountFD, "path2": "mine"}},
			func(e exposed, _ []wasiAnswer) bool { return contents(e.path("mine")) == hostSecret }, onlyWritable()},
		{"unlink through a directory link", []wasiCall{{"call": "path_unlink_file", "fd": mountFD, "path": "up/secret.txt"}}, outside, onlyWritable()},
		{"read-only: O_TRUNC with the right to read", []wasiCall{opening("a.txt", oflagTrunc, readRight)},
			func(e exposed, _ []wasiAnswer) bool { return contents(e.path("a.txt")) == "" }, onlyReadOnly()},
		{"read-only: O_CREAT with the right to read", []wasiCall{opening("made", oflagCreate, readRight)},
			func(e exposed, _ []wasiAnswer) bool { return contents(e.path("made")) == "" }, onlyReadOnly()},
		{"read-only: O_TRUNC through a link", []wasiCall{opening("relative", oflagTrunc, readRight)}, outside, onlyReadOnly()},
		{"read-only: O_CREAT through a link", []wasiCall{opening("new", oflagCreate, readRight)}, made, onlyReadOnly()},
		{"readlink shows a host path", []wasiCall{{"call": "path_readlink", "fd": mountFD, "path": "absolute"}},
			func(e exposed, a []wasiAnswer) bool { return a[0].Text == e.secret() }, twice()},
		{"inode and device are the host's", []wasiCall{{"call": "path_filestat_get", "fd": mountFD, "path": "a.txt"}},
			func(e exposed, a []wasiAnswer) bool {
				var stat syscall.Stat_t
				return syscall.Stat(e.path("a.txt"), &stat) == nil && a[0].Stat[0] == uint64(stat.Dev) && a[0].Stat[1] == stat.Ino
			}, twice()},
		{"a hole of 64 GiB", []wasiCall{opening("big", oflagCreate, readRight|writeRight), {"call": "fd_filestat_set_size", "fd": -1, "size": 64 << 30}},
			func(e exposed, _ []wasiAnswer) bool {
				info, err := os.Stat(e.path("big"))
				return err == nil && info.Size() == 64<<30
			}, onlyWritable()},
		{"1 GiB allocated", []wasiCall{opening("big", oflagCreate, readRight|writeRight), {"call": "fd_allocate", "fd": -1, "size": 1 << 30}},
			func(e exposed, _ []wasiAnswer) bool {
				info, err := os.Stat(e.path("big"))
				return err == nil && info.Size() == 1<<30
			}, onlyWritable()},
		{"500 files open at once", []wasiCall{{"call": "path_open", "fd": mountFD, "path": "a.txt", "rights": readRight, "times": 500}},
			func(_ exposed, a []wasiAnswer) bool { return a[0].Errno == 0 && a[0].Count == 500 }, twice()},
	}
}

func TestAttackFilesControl(t *testing.T) {
	u := newUnguarded(t)
	for _, a := range testsize.Sample(fileAttacks(), 6) {
		for i, mount := range a.mounts {
			t.Run(a.name, func(t *testing.T) {
				e := newExposed(t)
				answers := u.call(t, mount(e.project), a.calls...)
				assert.True(t, a.harm(e, answers), "mount %d: in plain wazero the attack must work: %+v", i, answers)
			})
		}
	}
}

// TestAttackFilesSpellingsControl: of spellings of ways up, wazero stops the plain ones
// and follows a link to the root.
func TestAttackFilesSpellingsControl(t *testing.T) {
	passwd := contents("/etc/passwd")
	u, e := newUnguarded(t), newExposed(t)
	var calls []wasiCall
	for _, path := range []string{"etc/passwd", "../etc/passwd", "/etc/passwd", "./etc/./passwd", "etc//passwd", "etc/../etc/passwd", strings.Repeat("../", 8) + "etc/passwd"} {
		calls = append(calls, opening(path, 0, readRight), opening("esc/"+path, 0, readRight), wasiCall{"call": "fd_read", "fd": -2 - len(calls), "size": len(passwd)})
	}
	leaks := 0
	for i, a := range u.call(t, readOnly(e.project), calls...) {
		switch {
		case i%3 == 0:
			assert.NotZero(t, a.Errno, "%v", calls[i])
		case i%3 == 2 && a.Text == passwd:
			leaks++
		}
	}
	assert.GreaterOrEqual(t, leaks, 3)
}

// TestAttackFilesPipeControl: opening a pipe blocks until it is opened for writing.
func TestAttackFilesPipeControl(t *testing.T) {
	u, e := newUnguarded(t), newExposed(t)
	require.NoError(t, syscall.Mkfifo(e.path("pipe"), 0o600))
	const patience = time.Second
	released := make(chan *os.File, 1)
	start := time.Now()
	time.AfterFunc(patience, func() {
		writer, err := os.OpenFile(e.path("pipe"), os.O_RDWR, 0)
		assert.NoError(t, err)
		released <- writer
	})
	u.call(t, readOnly(e.project), opening("pipe", 0, readRight))
	assert.GreaterOrEqual(t, time.Since(start), patience, "in plain wazero the open hangs")
	assert.NoError(t, (<-released).Close())
}

// TestAttackFilesDeviceControl: a device is opened and read like a file.
func TestAttackFilesDeviceControl(t *testing.T) {
	answers := newUnguarded(t).call(t, readOnly("/dev"), opening("zero", 0, readRight), wasiCall{"call": "fd_read", "fd": -1, "size": 16})
	assert.Zero(t, answers[0].Errno)
	assert.EqualValues(t, 16, answers[1].Count)
}

// TestAttackFilesProcControl: through a link to /proc, a guest reads with what its host was started.
func TestAttackFilesProcControl(t *testing.T) {
	if goruntime.GOOS != "linux" {
		return // has no such folder
	}
	answers := newUnguarded(t).call(t, readOnly(newExposed(t).project),
		opening("proc/cmdline", 0, readRight), wasiCall{"call": "fd_read", "fd": -1, "size": 4096})
	assert.Zero(t, answers[0].Errno)
	assert.Contains(t, answers[1].Text, filepath.Base(os.Args[0]))
}
