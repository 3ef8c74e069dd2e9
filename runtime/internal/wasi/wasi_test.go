package wasi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// flat is a guest's memory for tests that need no guest.
type flat []byte

func (m flat) View(offset, length uint32) ([]byte, bool) {
	if uint64(offset)+uint64(length) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length : offset+length], true
}

// guest calls WASI functions as a guest would.
type guest struct {
	t         testing.TB
	ctx       context.Context
	system    *System
	memory    flat
	functions map[string]hostfuncs.Function
}

func newGuest(t testing.TB, s *System) *guest {
	g := &guest{t: t, system: s, memory: make(flat, 1<<16), functions: map[string]hostfuncs.Function{}}
	g.ctx = With(t.Context(), s)
	g.use(ModuleName)
	return g
}

// use makes the guest call the functions of a module.
func (g *guest) use(module string) {
	for _, f := range Functions() {
		if f.Module == module {
			g.functions[f.Name] = f
		}
	}
}

// try calls a function and returns its errno and the error that would end the guest.
func (g *guest) try(name string, params ...uint64) (Errno, error) {
	f := g.functions[name]
	require.Len(g.t, params, len(f.Params), name)
	stack := make([]uint64, max(len(params), len(f.Results)))
	copy(stack, params)
	if err := f.Call(g.ctx, g.memory, stack); err != nil {
		return Success, err
	}
	return Errno(stack[0]), nil
}

func (g *guest) call(name string, params ...uint64) Errno {
	g.t.Helper()
	errno, err := g.try(name, params...)
	require.NoError(g.t, err, name)
	return errno
}

func (g *guest) put(at int, text string) (pointer, length uint64) {
	copy(g.memory[at:], text)
	return uint64(at), uint64(len(text))
}

func (g *guest) u32(at int) uint32 { return binary.LittleEndian.Uint32(g.memory[at:]) }
func (g *guest) u64(at int) uint64 { return binary.LittleEndian.Uint64(g.memory[at:]) }

// vector writes an iovec for [at, at+length) and returns where it is.
func (g *guest) vector(at, length int) uint64 {
	const where = 60000
	binary.LittleEndian.PutUint32(g.memory[where:], uint32(at))
	binary.LittleEndian.PutUint32(g.memory[where+4:], uint32(length))
	return where
}

func (g *guest) open(path string, oflags, rights uint64) (uint64, Errno) {
	pointer, length := g.put(1000, path)
	errno := g.call("path_open", 4, 1, pointer, length, oflags, rights, rights, 0, 900)
	return uint64(g.u32(900)), errno
}

// withProject gives the system one directory, /project, and returns its host side.
func withProject(t testing.TB, s *System, access manifests.Access) string {
	t.Helper()
	dir := t.TempDir()
	host, err := permission.ParseHostTemplate(dir)
	require.NoError(t, err)
	guest, err := permission.ParseGuestPath("/project")
	require.NoError(t, err)
	s.Files = viewOf(t, []files.Mount{{Guest: guest, Host: host, Access: access}}, nil, files.Limits{})
	return dir
}

// viewOf returns a call's view of mounts.
func viewOf(t testing.TB, mounts []files.Mount, values map[string]string, limits files.Limits) *files.View {
	t.Helper()
	outline, err := files.NewOutline(mounts, limits)
	require.NoError(t, err)
	view, err := files.NewStore(nil).Open(t.Context(), outline, values)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, view.Close()) })
	return view
}

func TestEveryFunctionOfPreview1IsThere(t *testing.T) {
	want := []string{
		"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get", "environ_sizes_get",
		"fd_advise", "fd_allocate", "fd_close", "fd_datasync", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_fdstat_set_rights",
		"fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pread", "fd_prestat_dir_name", "fd_prestat_get",
		"fd_pwrite", "fd_read", "fd_readdir", "fd_renumber", "fd_seek", "fd_sync", "fd_tell", "fd_write",
		"path_create_directory", "path_filestat_get", "path_filestat_set_times", "path_link", "path_open", "path_readlink",
		"path_remove_directory", "path_rename", "path_symlink", "path_unlink_file",
		"poll_oneoff", "proc_exit", "proc_raise", "random_get", "sched_yield",
		"sock_accept", "sock_recv", "sock_send", "sock_shutdown",
	}
	have := map[string][]string{}
	for _, f := range Functions() {
		have[f.Module] = append(have[f.Module], f.Name)
	}
	old := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name == "sock_accept" })
	assert.ElementsMatch(t, old, have[draftName], "preview 0 has them all but one")
	for _, f := range wasmEdgeFunctions {
		want = append(want, f.name)
	}
	assert.ElementsMatch(t, want, have[ModuleName])
	assert.Len(t, have, 2)
}

// TestDraft: in preview 0, the order of the values of whence, a file's description, and a subscription differ.
func TestDraft(t *testing.T) {
	s := &System{Now: time.Now, Started: time.Now()}
	dir := withProject(t, s, manifests.AccessReadWrite)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content"), 0o600))
	g := newGuest(t, s)
	g.use(draftName)
	file, errno := g.open("a.txt", 0, rightFDRead)
	require.Equal(t, Success, errno)
	for _, seek := range []struct{ offset, whence, position uint64 }{{5, 2, 5}, {^uint64(0), 0, 4}, {^uint64(0), 1, 6}} {
		require.Equal(t, Success, g.call("fd_seek", file, seek.offset, seek.whence, 50))
		assert.Equal(t, seek.position, g.u64(50))
	}
	assert.Equal(t, EINVAL, g.call("fd_seek", file, 0, 3, 50))

	pointer, length := g.put(1000, "a.txt")
	for name, params := range map[string][]uint64{"fd_filestat_get": {file, 0}, "path_filestat_get": {4, 1, pointer, length, 0}} {
		copy(g.memory[56:], "behind")
		require.Equal(t, Success, g.call(name, params...))
		assert.Equal(t, fileRegular, g.memory[16], name)
		assert.EqualValues(t, 1, g.u32(20), name)
		assert.EqualValues(t, 7, g.u64(24), name)
		assert.InDelta(t, float64(time.Now().UnixNano()), float64(g.u64(40)), float64(time.Hour), name)
		assert.Equal(t, "behind", string(g.memory[56:62]), name)
		params[len(params)-1] = uint64(len(g.memory) - 56)
		assert.Equal(t, Success, g.call(name, params...), name)
		params[len(params)-1]++
		assert.Equal(t, EFAULT, g.call(name, params...), name)
	}

	clear(g.memory[:2*draftSize])
	for i, wait := range []time.Duration{time.Hour, 20 * time.Millisecond} {
		at := i * draftSize
		binary.LittleEndian.PutUint64(g.memory[at:], uint64(i))
		binary.LittleEndian.PutUint64(g.memory[at+16:], 99) // an identifier
		binary.LittleEndian.PutUint32(g.memory[at+24:], monotonic)
		binary.LittleEndian.PutUint64(g.memory[at+32:], uint64(wait))
	}
	begin := time.Now()
	require.Equal(t, Success, g.call("poll_oneoff", 0, 1000, 2, 500))
	assert.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
	assert.EqualValues(t, 1, g.u32(500))
	assert.EqualValues(t, 1, g.u64(1000))
	binary.LittleEndian.PutUint16(g.memory[48:], subscriptionAbsolute)
	binary.LittleEndian.PutUint64(g.memory[32:], 1)
	require.Equal(t, Success, g.call("poll_oneoff", 0, 1000, 1, 500), "it is long past")
	assert.Equal(t, EFAULT, g.call("poll_oneoff", uint64(len(g.memory)-draftSize+1), 1000, 1, 500))
}

// TestSocketsAreRefused: no socket is opened and no name looked up, and each attempt leaves a receipt. No
// descriptor is a socket.
func TestSocketsAreRefused(t *testing.T) {
	s := &System{Stdout: &Output{Limit: 10}}
	g := newGuest(t, s)
	for _, f := range append(slices.Clone(wasmEdgeFunctions), socketFunctions...) {
		for number, want := range map[uint64]Errno{1: ENOTSOCK, 99: EBADF} {
			params := make([]uint64, len(f.params))
			params[0] = number
			if f.name == "sock_open" || f.name == "sock_getaddrinfo" {
				want = EPERM
			}
			assert.Equal(t, want, g.call(f.name, params...), f.name)
		}
	}
	denials := s.Sockets.Denials()
	require.Len(t, denials, 2)
	assert.Equal(t, []string{"sock_open", "sock_getaddrinfo"}, []string{denials[0].Value, denials[1].Value})
}

func TestFunctionsNeedASystem(t *testing.T) {
	for _, f := range Functions() {
		err := f.Call(t.Context(), flat{}, make([]uint64, 16))
		assert.ErrorIs(t, err, errNoSystem, f.Name)
	}
}

func TestArgumentsAndEnvironment(t *testing.T) {
	g := newGuest(t, &System{Args: []string{"tool", "--ünïcode", ""}, Environment: []string{"LANG=C"}})
	require.Equal(t, Success, g.call("args_sizes_get", 0, 4))
	assert.EqualValues(t, 3, g.u32(0))
	assert.EqualValues(t, len("tool\x00--ünïcode\x00\x00"), g.u32(4))
	require.Equal(t, Success, g.call("args_get", 100, 200))
	assert.EqualValues(t, 200, g.u32(100))
	assert.EqualValues(t, 205, g.u32(104))
	assert.True(t, bytes.HasPrefix(g.memory[200:], []byte("tool\x00--ünïcode\x00\x00")))
	require.Equal(t, Success, g.call("environ_sizes_get", 0, 4))
	assert.EqualValues(t, 1, g.u32(0))
	require.Equal(t, Success, g.call("environ_get", 100, 200))
	assert.True(t, bytes.HasPrefix(g.memory[200:], []byte("LANG=C\x00")))
	assert.Equal(t, EFAULT, g.call("args_get", 65534, 200))
	assert.Equal(t, EFAULT, g.call("args_get", 100, 65530))
}

// TestOutputKeepsItsEnd: of a log that is too long, its beginning and its end are kept, however it is
// written.
func TestOutputKeepsItsEnd(t *testing.T) {
	const text = "0123456789abcdefghijklmnopqrstuvwxyz"
	for _, piece := range []int{1, 2, 3, 5, 7, 11, 40} {
		for length := range len(text) + 1 {
			o := Output{Limit: 8, Tail: 5}
			for rest := text[:length]; rest != ""; rest = rest[min(piece, len(rest)):] {
				_, err := o.Write([]byte(rest[:min(piece, len(rest))]))
				require.NoError(t, err)
			}
			end, missing := o.End()
			assert.Equal(t, text[:min(length, 8)], string(o.Bytes))
			assert.Equal(t, text[max(min(length, 8), length-5):length], string(end), "%d bytes, %d at a time", length, piece)
			assert.EqualValues(t, max(0, length-13), missing)
		}
	}
	o := Output{Limit: 4}
	_, err := o.Write([]byte(text))
	require.NoError(t, err)
	end, missing := o.End()
	assert.Empty(t, end)
	assert.EqualValues(t, len(text)-4, missing)
}

func TestStandardStreams(t *testing.T) {
	s := &System{Stdin: []byte("input"), Stdout: &Output{Limit: 8, Strict: true}, Stderr: &Output{Limit: 8}}
	g := newGuest(t, s)
	g.put(100, "0123456789")

	require.Equal(t, Success, g.call("fd_read", 0, g.vector(0, 3), 1, 50))
	assert.Equal(t, "inp", string(g.memory[:3]))
	require.Equal(t, Success, g.call("fd_read", 0, g.vector(0, 100), 1, 50))
	assert.EqualValues(t, 2, g.u32(50))
	require.Equal(t, Success, g.call("fd_read", 0, g.vector(0, 100), 1, 50))
	assert.Zero(t, g.u32(50), "the end of the input is not an error")

	require.Equal(t, Success, g.call("fd_write", 1, g.vector(100, 5), 1, 50))
	assert.EqualValues(t, 5, g.u32(50))
	_, err := g.try("fd_write", 1, g.vector(100, 5), 1, 50)
	var overflow *OutputError
	require.ErrorAs(t, err, &overflow)
	assert.EqualValues(t, 8, overflow.Limit)
	assert.Len(t, s.Stdout.Bytes, 8, "output over the limit is not held")

	for range 3 {
		require.Equal(t, Success, g.call("fd_write", 2, g.vector(100, 5), 1, 50), "a log that is full swallows")
	}
	assert.Equal(t, "01234012", string(s.Stderr.Bytes))
	end, missing := s.Stderr.End()
	assert.Empty(t, end)
	assert.EqualValues(t, 7, missing)

	assert.Equal(t, EBADF, g.call("fd_write", 0, g.vector(100, 5), 1, 50))
	assert.Equal(t, EBADF, g.call("fd_read", 1, g.vector(100, 5), 1, 50))
	assert.Equal(t, ESPIPE, g.call("fd_seek", 1, 0, 0, 50))
	assert.Equal(t, EFAULT, g.call("fd_write", 1, g.vector(65530, 10), 1, 50))
}

// TestAttackCountsThatOverflow: the length in bytes of an array that a guest passes does not wrap around to a small
// number of 32 bits. The control is one element.
func TestAttackCountsThatOverflow(t *testing.T) {
	for _, module := range []string{ModuleName, draftName} {
		s := &System{Stdin: []byte("input"), Stdout: &Output{Limit: 100}, Now: time.Now}
		withProject(t, s, manifests.AccessReadWrite)
		g := newGuest(t, s)
		g.use(module)
		file, errno := g.open("file", uint64(openCreate), rightFDRead|rightFDWrite)
		require.Equal(t, Success, errno)
		clear(g.memory)
		size := map[string]uint64{ModuleName: subscriptionSize, draftName: draftSize}[module]
		for _, test := range []struct {
			name   string
			size   uint64 // of an element
			params func(count uint64) []uint64
		}{
			{"fd_write", 8, func(count uint64) []uint64 { return []uint64{1, 0, count, 50} }},
			{"fd_read", 8, func(count uint64) []uint64 { return []uint64{0, 0, count, 50} }},
			{"fd_pread", 8, func(count uint64) []uint64 { return []uint64{file, 0, count, 0, 50} }},
			{"fd_pwrite", 8, func(count uint64) []uint64 { return []uint64{file, 0, count, 0, 50} }},
			{"poll_oneoff", size, func(count uint64) []uint64 { return []uint64{0, 1000, count, 500} }},
			{"poll_oneoff", eventSize, func(count uint64) []uint64 { return []uint64{0, 1000, count, 500} }},
		} {
			assert.Equal(t, Success, g.call(test.name, test.params(1)...), test.name)
			for wrapped := uint64(1); wrapped < test.size; wrapped++ {
				for count := wrapped<<32/test.size - 1; count <= wrapped<<32/test.size+1; count++ {
					assert.NotPanics(t, func() {
						assert.Equal(t, EFAULT, g.call(test.name, test.params(count)...), "%s with %d", test.name, count)
					}, "%s with %d", test.name, count)
				}
			}
		}
	}
}

func TestClocksAndRandom(t *testing.T) {
	now := time.Unix(1000, 5)
	g := newGuest(t, &System{Now: func() time.Time { return now }, Started: now.Add(-time.Second), Random: bytes.NewReader([]byte("abcdefgh"))})
	require.Equal(t, Success, g.call("clock_time_get", 0, 1, 0))
	assert.EqualValues(t, 1000*1e9+5, g.u64(0))
	for clock := uint64(1); clock <= 3; clock++ {
		require.Equal(t, Success, g.call("clock_time_get", clock, 1, 0))
		assert.EqualValues(t, 1e9+1, g.u64(0))
		assert.Equal(t, Success, g.call("clock_res_get", clock, 0))
	}
	assert.Equal(t, EINVAL, g.call("clock_time_get", 4, 1, 0))
	assert.Equal(t, EFAULT, g.call("clock_time_get", 0, 1, 65533))
	assert.Equal(t, Success, g.call("random_get", 0, 8))
	assert.Equal(t, "abcdefgh", string(g.memory[:8]))
	assert.Equal(t, EIO, g.call("random_get", 0, 8), "an exhausted source does not return zeros")
	assert.Equal(t, EFAULT, g.call("random_get", 65530, 8))
	without := newGuest(t, &System{})
	assert.Equal(t, ENOTSUP, without.call("clock_time_get", 0, 1, 0))
	assert.Equal(t, EIO, without.call("random_get", 0, 8))
}

// subscribe writes a clock subscription and returns where the next one goes.
func (g *guest) subscribe(at int, userdata, clock, timeout uint64, flags uint16) int {
	s := g.memory[at : at+subscriptionSize]
	clear(s)
	binary.LittleEndian.PutUint64(s, userdata)
	binary.LittleEndian.PutUint32(s[16:], uint32(clock))
	binary.LittleEndian.PutUint64(s[24:], timeout)
	binary.LittleEndian.PutUint16(s[40:], flags)
	return at + subscriptionSize
}

func TestPoll(t *testing.T) {
	started := time.Now()
	system := &System{Now: time.Now, Started: started}
	g := newGuest(t, system)

	next := g.subscribe(0, 7, 1, uint64(20*time.Millisecond), 0)
	g.subscribe(next, 8, 1, uint64(time.Hour), 0)
	begin := time.Now()
	require.Equal(t, Success, g.call("poll_oneoff", 0, 1000, 2, 500))
	assert.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
	assert.EqualValues(t, 1, g.u32(500), "only the clock that is due")
	assert.EqualValues(t, 7, g.u64(1000))

	// Absolute times on the wall clock, one past, one far off.
	next = g.subscribe(0, 1, 0, uint64(time.Now().Add(-time.Second).UnixNano()), subscriptionAbsolute)
	g.subscribe(next, 2, 0, uint64(time.Now().Add(time.Hour).UnixNano()), subscriptionAbsolute)
	require.Equal(t, Success, g.call("poll_oneoff", 0, 1000, 2, 500))
	assert.EqualValues(t, 1, g.u32(500))
	assert.EqualValues(t, 1, g.u64(1000))

	// A stream is ready at once, and a descriptor that isn't open is a separate event.
	next = g.subscribe(0, 1, 1, uint64(time.Hour), 0)
	g.memory[next+8] = eventFDWrite
	binary.LittleEndian.PutUint32(g.memory[next+16:], 1)
	g.memory[next+48+8] = eventFDRead
	binary.LittleEndian.PutUint32(g.memory[next+48+16:], 99)
	require.Equal(t, Success, g.call("poll_oneoff", 0, 1000, 3, 500))
	assert.EqualValues(t, 2, g.u32(500))
	assert.EqualValues(t, EBADF, binary.LittleEndian.Uint16(g.memory[1000+eventSize+8:]))

	assert.Equal(t, EINVAL, g.call("poll_oneoff", 0, 1000, 0, 500))
	assert.Equal(t, EFAULT, g.call("poll_oneoff", 0, 1000, 1<<31, 500))
	g.memory[8] = 3
	assert.Equal(t, EINVAL, g.call("poll_oneoff", 0, 1000, 1, 500))
}

func TestSleepEndsWithTheCall(t *testing.T) {
	g := newGuest(t, &System{Now: time.Now, Started: time.Now()})
	ctx, cancel := context.WithTimeout(g.ctx, 30*time.Millisecond)
	defer cancel()
	g.ctx = ctx
	g.subscribe(0, 1, 1, uint64(time.Hour), 0)
	begin := time.Now()
	_, err := g.try("poll_oneoff", 0, 1000, 1, 500)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(begin), 5*time.Second)
	_, err = g.try("sched_yield")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestClosingEndsWithTheCall: functions that close files, which may take long, do nothing after the deadline.
func TestClosingEndsWithTheCall(t *testing.T) {
	s := &System{}
	withProject(t, s, manifests.AccessReadWrite)
	g := newGuest(t, s)
	from, errno := g.open("from", uint64(openCreate), rightFDRead)
	require.Equal(t, Success, errno)
	to, errno := g.open("to", uint64(openCreate), rightFDRead)
	require.Equal(t, Success, errno)
	ctx, cancel := context.WithCancel(g.ctx)
	running := g.ctx
	cancel()
	g.ctx = ctx
	_, err := g.try("fd_renumber", from, to)
	require.ErrorIs(t, err, context.Canceled)
	_, err = g.try("fd_close", from)
	require.ErrorIs(t, err, context.Canceled)
	g.ctx = running
	assert.Equal(t, Success, g.call("fd_renumber", from, to), "control")
	assert.Equal(t, EBADF, g.call("fd_close", from))
	assert.Equal(t, Success, g.call("fd_close", to))
}

func TestExit(t *testing.T) {
	g := newGuest(t, &System{})
	var exit *ExitError
	_, err := g.try("proc_exit", 7)
	require.ErrorAs(t, err, &exit)
	assert.EqualValues(t, 7, exit.Code)
	_, err = g.try("proc_raise", 6)
	require.ErrorAs(t, err, &exit)
	assert.EqualValues(t, 134, exit.Code, "as a shell reports SIGABRT")
	assert.Equal(t, Success, g.call("proc_raise", 0))
	assert.Equal(t, EINVAL, g.call("proc_raise", 31))
}

func TestFiles(t *testing.T) {
	s := &System{Now: time.Now}
	dir := withProject(t, s, manifests.AccessReadWrite)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content"), 0o600))
	g := newGuest(t, s)

	for number, path := range map[uint64]string{3: "/", 4: "/project"} {
		require.Equal(t, Success, g.call("fd_prestat_get", number, 0))
		require.EqualValues(t, len(path), g.u32(4))
		require.Equal(t, Success, g.call("fd_prestat_dir_name", number, 0, uint64(len(path))))
		assert.Equal(t, path, string(g.memory[:len(path)]))
		assert.Equal(t, ENAMETOOLONG, g.call("fd_prestat_dir_name", number, 0, 0))
	}
	assert.Equal(t, EBADF, g.call("fd_prestat_get", 5, 0), "the end of the list of preopened directories")
	assert.Equal(t, EBADF, g.call("fd_prestat_get", 0, 0))

	file, errno := g.open("a.txt", 0, rightFDRead)
	require.Equal(t, Success, errno)
	require.Equal(t, Success, g.call("fd_pread", file, g.vector(0, 100), 1, 3, 50))
	assert.Equal(t, "tent", string(g.memory[:g.u32(50)]))
	require.Equal(t, Success, g.call("fd_seek", file, ^uint64(0), 2, 50), "one before the end")
	assert.EqualValues(t, 6, g.u64(50))
	require.Equal(t, Success, g.call("fd_tell", file, 50))
	assert.EqualValues(t, 6, g.u64(50))
	assert.Equal(t, EINVAL, g.call("fd_seek", file, 0, 3, 50))
	assert.Equal(t, EBADF, g.call("fd_write", file, g.vector(0, 1), 1, 50), "opened for reading")
	require.Equal(t, Success, g.call("fd_fdstat_get", file, 0))
	assert.Equal(t, fileRegular, g.memory[0])
	assert.Zero(t, g.u64(8)&rightFDWrite)
	require.Equal(t, Success, g.call("fd_filestat_get", file, 0))
	assert.Zero(t, g.u64(0), "no device number")
	assert.EqualValues(t, 7, g.u64(32))
	require.Equal(t, Success, g.call("fd_close", file))
	assert.Equal(t, EBADF, g.call("fd_close", file))

	file, errno = g.open("new.txt", uint64(openCreate|openExclusive), rightFDRead|rightFDWrite)
	require.Equal(t, Success, errno)
	g.put(100, "hello world")
	require.Equal(t, Success, g.call("fd_write", file, g.vector(100, 11), 1, 50))
	require.Equal(t, Success, g.call("fd_pwrite", file, g.vector(100, 5), 1, 6, 50))
	require.Equal(t, Success, g.call("fd_filestat_set_size", file, 8))
	require.Equal(t, Success, g.call("fd_fdstat_set_flags", file, uint64(flagAppend)))
	require.Equal(t, Success, g.call("fd_write", file, g.vector(100, 1), 1, 50))
	require.Equal(t, Success, g.call("fd_sync", file))
	content, err := os.ReadFile(filepath.Join(dir, "new.txt"))
	require.NoError(t, err)
	assert.Equal(t, "hello heh", string(content))
	_, errno = g.open("new.txt", uint64(openCreate|openExclusive), rightFDWrite)
	assert.Equal(t, EEXIST, errno)
	_, errno = g.open("missing.txt", 0, rightFDRead)
	assert.Equal(t, ENOENT, errno)
	_, errno = g.open("\xff", 0, rightFDRead)
	assert.Equal(t, EILSEQ, errno)
	_, errno = g.open("../a.txt", 0, rightFDRead)
	assert.Equal(t, EPERM, errno)
	pointer, length := g.put(1000, "etc/passwd")
	assert.Equal(t, EPERM, g.call("path_open", 3, 1, pointer, length, 0, rightFDRead, 0, 0, 900), "nothing but mounts below /")
	assert.Len(t, s.Files.Journal.Denials(), 2)
}

func TestReaddirContinuesAtItsCookie(t *testing.T) {
	s := &System{Now: time.Now}
	dir := withProject(t, s, manifests.AccessRead)
	want := map[string]bool{".": true, "..": true}
	for _, name := range []string{"one", "two", "three-with-a-longer-name"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		want[name] = true
	}
	for _, size := range []uint64{24, 27, 30, 60, 4096} {
		g := newGuest(t, s)
		have := map[string]bool{}
		cookie := uint64(0)
		for range 20 {
			asked := int(size)
			require.Equal(t, Success, g.call("fd_readdir", 4, 0, size, cookie, 5000))
			used := int(g.u32(5000))
			for at := 0; at+direntSize <= used; {
				end := at + direntSize + int(g.u32(at+16))
				if end > used { // cut off: the guest asks again
					if at == 0 {
						size *= 2 // and with a larger buffer where one entry does not fit
					}
					break
				}
				have[string(g.memory[at+direntSize:end])] = true
				cookie = g.u64(at)
				at = end
			}
			if used < asked {
				break
			}
		}
		assert.Equal(t, want, have, "with a buffer of %d bytes", size)
	}
}

// TestListingsDoNotPileUp: one listing is kept, and guests that read two directories at
// once still see all of both.
func TestListingsDoNotPileUp(t *testing.T) {
	s := &System{Now: time.Now}
	dir := withProject(t, s, manifests.AccessRead)
	for _, name := range []string{"a/1", "a/2", "b/3", "b/4"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700))
	}
	g := newGuest(t, s)
	a, errno := g.open("a", 0, rightFDRead)
	require.Equal(t, Success, errno)
	b, errno := g.open("b", 0, rightFDRead)
	require.Equal(t, Success, errno)
	var names []string
	for cookie := range uint64(4) {
		for _, directory := range []uint64{a, b} {
			require.Equal(t, Success, g.call("fd_readdir", directory, 0, direntSize+2, cookie, 5000))
			names = append(names, strings.Trim(string(g.memory[direntSize:direntSize+g.u32(16)]), "."))
		}
	}
	assert.Equal(t, []string{"", "", "", "", "1", "3", "2", "4"}, names)
}

// TestTransfersEndWithTheCall: a few buffers can name the same memory many times, and short ones
// come in thousands; the clock is looked at once in a mebibyte.
func TestTransfersEndWithTheCall(t *testing.T) {
	s := &System{Now: time.Now, Stdin: make([]byte, 1<<30), Stdout: &Output{Limit: 1 << 40}}
	withProject(t, s, manifests.AccessReadWrite)
	g := newGuest(t, s)
	file, errno := g.open("file", uint64(openCreate), rightFDRead|rightFDWrite)
	require.Equal(t, Success, errno)
	ctx, cancel := context.WithCancelCause(g.ctx)
	g.ctx = ctx
	errEnded := errors.New("the call has ended")
	cancel(errEnded)
	for name, params := range map[string][]uint64{
		"fd_read":   {0, g.vector(0, 100), 1, 50},
		"fd_write":  {1, g.vector(0, 100), 1, 50},
		"fd_pread":  {file, g.vector(0, 100), 1, 0, 50},
		"fd_pwrite": {file, g.vector(0, 100), 1, 0, 50},
	} {
		var err error
		for calls := 0; err == nil && calls <= maxPiece/bufferCost; calls++ {
			_, err = g.try(name, params...)
		}
		assert.ErrorIs(t, err, errEnded, name)
	}
}

func TestRenumber(t *testing.T) {
	s := &System{Now: time.Now}
	withProject(t, s, manifests.AccessReadWrite)
	g := newGuest(t, s)
	one, errno := g.open("one", uint64(openCreate), rightFDWrite)
	require.Equal(t, Success, errno)
	two, errno := g.open("two", uint64(openCreate), rightFDWrite)
	require.Equal(t, Success, errno)
	require.Equal(t, Success, g.call("fd_renumber", one, two))
	assert.Equal(t, EBADF, g.call("fd_close", one))
	assert.Equal(t, Success, g.call("fd_renumber", two, two))
	assert.Equal(t, EBADF, g.call("fd_renumber", two, 1<<31))
	assert.Equal(t, Success, g.call("fd_close", two))
	three, errno := g.open("three", uint64(openCreate), rightFDWrite)
	require.Equal(t, Success, errno)
	assert.Equal(t, one, three, "the lowest free number")

	// Preopened directories are replaced and moved like any other, and stay usable.
	require.Equal(t, Success, g.call("fd_renumber", 4, three))
	assert.Equal(t, EBADF, g.call("fd_prestat_get", 4, 0))
	require.Equal(t, Success, g.call("fd_prestat_get", three, 0))
	_, errno = g.reopen(three, "three", 0, rightFDRead, 0)
	assert.Equal(t, Success, errno)
	directory, errno := g.reopen(three, ".", openDirectory, 0, 0)
	require.Equal(t, Success, errno)
	require.Equal(t, Success, g.call("fd_renumber", directory, 3))
	assert.Equal(t, EBADF, g.call("fd_prestat_get", 3, 0), "what replaced it is not preopened")
	_, errno = g.reopen(3, "three", 0, rightFDRead, 0)
	assert.Equal(t, Success, errno)
	assert.Equal(t, Success, g.call("fd_close", 3))
	assert.Equal(t, Success, g.call("fd_close", three))
}

// FuzzCalls calls every function with arbitrary parameters over arbitrary memory: the
// host neither panics nor hangs, and the guest ends only where it may.
func FuzzCalls(f *testing.F) {
	f.Add(uint64(1), []byte("project"))
	f.Add(uint64(2), bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, seed uint64, contents []byte) {
		source := rand.New(rand.NewPCG(seed, 1))
		s := &System{
			Args: []string{"tool"}, Stdin: contents, Stdout: &Output{Limit: 1 << 10}, Stderr: &Output{Limit: 1 << 10},
			Random: zeros{}, Now: time.Now, Started: time.Now(),
		}
		withProject(t, s, manifests.AccessReadWrite)
		g := newGuest(t, s)
		ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
		defer cancel()
		g.ctx = ctx
		copy(g.memory, contents)
		for range 50 {
			for name, function := range g.functions {
				params := make([]uint64, len(function.Params))
				for i := range params {
					params[i] = interesting[source.IntN(len(interesting))]
					if source.IntN(3) == 0 {
						params[i] = uint64(source.IntN(1 << 16))
					}
				}
				if name == "poll_oneoff" && g.wouldSleep(params) {
					continue
				}
				_, err := g.try(name, params...)
				if name != "proc_exit" && name != "proc_raise" {
					assert.NoError(t, err, "%s%v", name, params)
				}
			}
		}
	})
}

var interesting = []uint64{0, 1, 2, 3, 4, 5, 8, 16, 100, 4096, 65535, 65536, 1 << 29, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1}

// wouldSleep keeps the fuzzer from waiting for clocks.
func (g *guest) wouldSleep(params []uint64) bool {
	return uint32(params[2]) > 0 && uint64(uint32(params[2]))*subscriptionSize < 1<<16
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestVirtualRoot: these are the two answers that WASI's own suite does not expect; see ABI.md.
func TestVirtualRoot(t *testing.T) {
	s := &System{Now: time.Now}
	withProject(t, s, manifests.AccessReadWrite)
	g := newGuest(t, s)
	const virtual, project = 3, 4
	opening := func(directory uint64, path string, oflags, rights uint64) Errno {
		pointer, length := g.put(1000, path)
		return g.call("path_open", directory, 0, pointer, length, oflags, rights, rights, 0, 900)
	}
	assert.Equal(t, EPERM, opening(virtual, "fs-tests.dir/file", 0, rightFDRead), "a path that no permission covers reaches the host")
	assert.Contains(t, s.Files.Journal.Denials()[0].Value, "/fs-tests.dir/file")
	both := rightFDRead | rightFDWrite
	assert.Equal(t, EISDIR, opening(project, ".", uint64(openDirectory), both))
	assert.Equal(t, EPERM, opening(virtual, ".", uint64(openDirectory), both))
	assert.Equal(t, Success, opening(virtual, ".", uint64(openDirectory), rightFDRead))
}
