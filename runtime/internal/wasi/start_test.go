package wasi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// made counts projects.
var made atomic.Int64

// layout holds a tool's mounts: directories of the host, which differ between calls, and constant files.
type layout struct {
	mounts []files.Mount
	limits files.Limits
}

func mountAt(t testing.TB, guest, host string, access manifests.Access) files.Mount {
	t.Helper()
	at, err := permission.ParseGuestPath(guest)
	require.NoError(t, err)
	template, err := permission.ParseHostTemplate(host)
	require.NoError(t, err)
	return files.Mount{Guest: at, Host: template, Access: access}
}

func treeAt(t testing.TB, guest string) files.Mount {
	t.Helper()
	at, err := permission.ParseGuestPath(guest)
	require.NoError(t, err)
	tree, err := guestfiles.NewTree(fstest.MapFS{"a.txt": {Data: []byte("constant content")}, "d/b.txt": {Data: []byte("below")}, "d/e/c": {}})
	require.NoError(t, err)
	return files.Mount{Guest: at, Tree: tree}
}

func layouts(t testing.TB) map[string]layout {
	dir, other := filepath.Join(t.TempDir(), "{project_id}"), filepath.Join(t.TempDir(), "{project_id}")
	read, write := manifests.AccessRead, manifests.AccessReadWrite
	return map[string]layout{
		"nothing":         {},
		"a directory":     {mounts: []files.Mount{mountAt(t, "/project", dir, read)}},
		"to write":        {mounts: []files.Mount{mountAt(t, "/project", dir, write)}},
		"deep":            {mounts: []files.Mount{mountAt(t, "/srv/data/project", dir, write), mountAt(t, "/srv/other", other, read)}},
		"all":             {mounts: []files.Mount{mountAt(t, "/", dir, read)}},
		"constants":       {mounts: []files.Mount{treeAt(t, "/tool")}},
		"both":            {mounts: []files.Mount{mountAt(t, "/project", dir, write), treeAt(t, "/tool"), treeAt(t, "/usr/lib")}, limits: files.Limits{OpenFiles: 3}},
		"only constants":  {mounts: []files.Mount{treeAt(t, "/")}},
		"beside, no room": {mounts: []files.Mount{treeAt(t, "/srv/data"), mountAt(t, "/srv/project", dir, read)}, limits: files.Limits{OpenFiles: 1}},
	}
}

// system is a call's, in a new project with the same files as every other.
func (l layout) system(t testing.TB) *System {
	t.Helper()
	project := fmt.Sprint("p", made.Add(1))
	for _, mount := range l.mounts {
		if mount.Tree == nil {
			dir := filepath.Join(mount.Host.Base(), project)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "d"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("of a project"), 0o600))
		}
	}
	view := viewOf(t, l.mounts, map[string]string{"project_id": project}, l.limits)
	return &System{Args: []string{"tool"}, Environment: []string{"A=b"}, Stdin: []byte("the input"), Stdout: &Output{Limit: 1 << 20}, Stderr: &Output{Limit: 1 << 20}, Files: view}
}

// starting is the system of a start.
func (l layout) starting(t testing.TB) *System {
	t.Helper()
	outline, err := files.NewOutline(l.mounts, l.limits)
	require.NoError(t, err)
	return &System{Args: []string{"tool"}, Environment: []string{"A=b"}, Starting: true, Files: outline.View(t.Context())}
}

func outlineOf(t testing.TB, access manifests.Access) *files.View {
	t.Helper()
	return layout{mounts: []files.Mount{mountAt(t, "/project", t.TempDir(), access)}}.starting(t).Files
}

// deed is one WASI call with its parameters. Paths are written to memory first.
type deed struct {
	function string
	path     string // at pathAt; the second path of those functions that take two is otherPath
	params   []uint64
}

const pathAt, otherAt, bufferAt, vectorAt, resultAt, usedMemory = 100, 5000, 10_000, 9000, 9500, 11_000

const otherPath = "tool/d"

var probedPaths = []string{
	".", "", "..", "/", "tool", "tool/", "tool/a.txt", "tool/d", "tool/d/../a.txt", "tool/none", "a.txt", "d", "d/b.txt", "none", "../a.txt", "usr", "usr/lib",
	"usr/lib/a.txt", "usr/lib/d/e", "usr/bin", "srv", "srv/data", "srv/data/a.txt", "srv/data/project", "srv/data/project/a.txt", "project", "project/", "project/a.txt",
	"project/none", "project/..", "project/../etc/passwd", "etc/passwd", "home/user/.config", "a\x00b", "a\xff", strings.Repeat("n", 300), strings.Repeat("n/", 2100), "/etc/passwd", "./tool/./a.txt",
}

// deeds returns random calls that a program may make.
func deeds(random *rand.Rand, count int) []deed {
	functions := slices.Concat(processFunctions, clockFunctions, descriptorFunctions, readWriteFunctions, pathFunctions, socketFunctions)
	functions = slices.DeleteFunc(functions, func(f function) bool {
		return slices.Contains([]string{"proc_exit", "proc_raise", "random_get", "clock_time_get", "clock_res_get", "poll_oneoff"}, f.name)
	})
	// The most frequent calls of programs.
	usual := []string{"path_open", "path_open", "path_open", "fd_read", "fd_seek", "fd_filestat_get", "fd_fdstat_get", "path_filestat_get", "fd_close", "fd_readdir", "fd_fdstat_set_flags", "fd_renumber"}
	var made []deed
	for range count {
		f := functions[random.IntN(len(functions))]
		if name := usual[random.IntN(len(usual))]; random.IntN(3) > 0 {
			f = functions[slices.IndexFunc(functions, func(f function) bool { return f.name == name })]
		}
		made = append(made, randomDeed(random, f))
	}
	return made
}

func randomDeed(random *rand.Rand, f function) deed {
	d := deed{function: f.name, path: probedPaths[random.IntN(len(probedPaths))], params: make([]uint64, len(f.params))}
	number := func() uint64 { return uint64(random.IntN(8)) }
	length := uint64(len(d.path))
	for i := range d.params {
		d.params[i] = uint64(random.IntN(40))
	}
	switch p := d.params; f.name {
	case "args_get", "environ_get":
		p[0], p[1] = resultAt, bufferAt
	case "args_sizes_get", "environ_sizes_get":
		p[0], p[1] = resultAt, resultAt+8
	case "fd_read", "fd_write":
		copy(p, []uint64{number(), vectorAt, 2, resultAt})
	case "fd_pread", "fd_pwrite":
		copy(p, []uint64{number(), vectorAt, 2, uint64(random.IntN(30)), resultAt})
	case "fd_seek":
		copy(p, []uint64{number(), uint64(random.IntN(30)), uint64(random.IntN(4)), resultAt})
	case "fd_readdir":
		copy(p, []uint64{number(), bufferAt, uint64(random.IntN(200)), uint64(random.IntN(3)), resultAt})
	case "fd_fdstat_get", "fd_filestat_get", "fd_prestat_get", "fd_tell":
		copy(p, []uint64{number(), bufferAt})
	case "fd_prestat_dir_name":
		copy(p, []uint64{number(), bufferAt, uint64(random.IntN(20))})
	case "fd_fdstat_set_flags":
		copy(p, []uint64{number(), uint64(random.IntN(33))})
	case "path_open":
		rights := []uint64{0, rightFDRead, rightFDRead, rightFDRead | rightFDReadDir, rightFDRead | rightFDWrite}[random.IntN(5)]
		flags := []uint64{0, 0, 0, uint64(openDirectory), uint64(openCreate), uint64(openTruncate), 15, 16}[random.IntN(8)]
		copy(p, []uint64{3 + number()/2, uint64(random.IntN(2)), pathAt, length, flags, rights, rights, uint64(random.IntN(3)), resultAt})
	case "path_filestat_get":
		copy(p, []uint64{3 + number()/2, uint64(random.IntN(2)), pathAt, length, bufferAt})
	case "path_filestat_set_times":
		copy(p, []uint64{3 + number()/2, 1, pathAt, length, 1, 2, 1})
	case "path_create_directory", "path_remove_directory", "path_unlink_file":
		copy(p, []uint64{3 + number()/2, pathAt, length})
	case "path_readlink":
		copy(p, []uint64{3 + number()/2, pathAt, length, bufferAt, 100, resultAt})
	case "path_link":
		copy(p, []uint64{3 + number()/2, 0, pathAt, length, 3 + number()/2, otherAt, uint64(len(otherPath))})
	case "path_rename":
		copy(p, []uint64{3 + number()/2, pathAt, length, 3 + number()/2, otherAt, uint64(len(otherPath))})
	case "path_symlink":
		copy(p, []uint64{otherAt, uint64(len(otherPath)), 3 + number()/2, pathAt, length})
	default:
		if len(p) > 0 {
			p[0] = number()
		}
	}
	return d
}

// done makes a call. It returns the errno, all of memory, and the error that would end the guest.
func (g *guest) done(d deed) (Errno, string, error) {
	clear(g.memory[:usedMemory])
	copy(g.memory[pathAt:], d.path)
	copy(g.memory[otherAt:], otherPath)
	for i, buffer := range [][2]uint32{{bufferAt, 5}, {bufferAt + 100, 30}} {
		binary.LittleEndian.PutUint32(g.memory[vectorAt+i*8:], buffer[0])
		binary.LittleEndian.PutUint32(g.memory[vectorAt+i*8+4:], buffer[1])
	}
	errno, err := g.try(d.function, d.params...)
	return errno, string(g.memory[:usedMemory]), err
}

// noted returns the record of the view without its times.
func noted(view *files.View) ([]tool.HostCall, []tool.Denial, int64) {
	calls := view.Journal.HostCalls()
	for i := range calls {
		calls[i].Began, calls[i].Duration = time.Time{}, 0
	}
	return calls, view.Journal.Denials(), view.Journal.Count()
}

// TestStartsAnswerAsCalls makes random WASI calls: as many as a start allows in a start, and the rest in a call that
// resumes it. Each answer, byte for byte, and the whole record of it, are the same as in a call that makes all of them
// itself.
func TestStartsAnswerAsCalls(t *testing.T) {
	rounds := testsize.Of(20, 80)
	inStarts, afterStarts := map[string]int{}, map[string]int{}
	for name, l := range layouts(t) {
		t.Run(name, func(t *testing.T) {
			for seed := range rounds {
				random := rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
				all := deeds(random, 4+random.IntN(40))
				start, whole := newGuest(t, l.starting(t)), newGuest(t, l.system(t))
				begun, ended := 0, len(all)/2+1
				for ; begun < ended; begun++ {
					errno, memory, err := start.done(all[begun])
					if err != nil {
						refused, ok := errors.AsType[*StartError](err)
						require.True(t, ok, err)
						require.Equal(t, all[begun].function, refused.Function)
						// As the engine does, begin again and stop before it.
						start = newGuest(t, l.starting(t))
						for _, again := range all[:begun] {
							_, _, err := start.done(again)
							require.NoError(t, err)
						}
						break
					}
					inStarts[all[begun].function]++
					wantErrno, want, err := whole.done(all[begun])
					require.NoError(t, err)
					require.Equal(t, wantErrno, errno, "%d: %+v", seed, all[:begun+1])
					require.Equal(t, want, memory, "%d: %+v", seed, all[:begun+1])
				}
				before := start.system.Start()
				for range 2 { // the second resumes a start that the first could have changed
					resumed := newGuest(t, l.system(t))
					resumed.system.Resume(before)
					if seed%3 == 0 { // it was not run, and is resumed again
						resumed.ctx = With(t.Context(), resumed.system)
						resumed.system.Resume(before)
					}
					unstarted := newGuest(t, l.system(t))
					for at, d := range all {
						wantErrno, want, wantErr := unstarted.done(d)
						if at < begun {
							continue
						}
						errno, memory, err := resumed.done(d)
						afterStarts[d.function]++
						require.Equal(t, wantErr, err)
						require.Equal(t, wantErrno, errno, "%d: %+v, of which %d in the start", seed, all[:at+1], begun)
						require.Equal(t, normal(want, d), normal(memory, d), "%d: %+v, of which %d in the start", seed, all[:at+1], begun)
					}
					require.Equal(t, unstarted.system.Stdout, resumed.system.Stdout)
					wantCalls, wantDenials, wantCount := noted(unstarted.system.Files)
					calls, denials, count := noted(resumed.system.Files)
					require.Equal(t, wantCalls, calls, seed)
					require.Equal(t, wantDenials, denials, seed)
					require.Equal(t, wantCount, count, seed)
				}
			}
		})
	}
	for _, function := range []string{"path_open", "fd_read", "fd_seek", "fd_readdir", "path_filestat_get", "fd_filestat_get", "fd_close", "fd_renumber", "fd_fdstat_set_flags"} {
		assert.Greater(t, inStarts[function], rounds, "%s is hardly ever allowed in a start", function)
		assert.Greater(t, afterStarts[function], rounds, "%s is hardly ever called after a start", function)
	}
}

// normal leaves out the times of host files, which reading and writing change.
func normal(memory string, d deed) string {
	if strings.HasSuffix(d.function, "filestat_get") {
		return memory[:bufferAt+40] + memory[bufferAt+64:]
	}
	return memory
}

// TestStartsEndBeforeWhatDependsOnTheCall: a function that could distinguish calls, or that has an effect, ends the
// start, with the function's name and its path.
func TestStartsEndBeforeWhatDependsOnTheCall(t *testing.T) {
	l := layouts(t)["both"] // 3 is the root, 4 the project, 5 and 6 are constants
	for name, test := range map[string]struct {
		deed deed
		want string
	}{
		"input":               {deed{"fd_read", "", []uint64{0, vectorAt, 2, resultAt}}, "it calls fd_read before"},
		"output":              {deed{"fd_write", "", []uint64{1, vectorAt, 2, resultAt}}, "it calls fd_write before"},
		"log":                 {deed{"fd_write", "", []uint64{2, vectorAt, 2, resultAt}}, "it calls fd_write before"},
		"no output":           {deed{"fd_write", "", []uint64{1, vectorAt, 0, resultAt}}, "it calls fd_write before"},
		"how much input":      {deed{"poll_oneoff", "", []uint64{bufferAt, bufferAt, 1, resultAt}}, "it calls poll_oneoff before"},
		"exit":                {deed{"proc_exit", "", []uint64{0}}, "it calls proc_exit before"},
		"signal":              {deed{"proc_raise", "", []uint64{0}}, "it calls proc_raise before"},
		"a project's file":    {deed{"path_open", "a.txt", []uint64{4, 1, pathAt, 5, 0, rightFDRead, 0, 0, resultAt}}, "it calls path_open on /project/a.txt before"},
		"through the root":    {deed{"path_filestat_get", "project/a.txt", []uint64{3, 1, pathAt, 13, bufferAt}}, "it calls path_filestat_get on /project/a.txt before"},
		"no file":             {deed{"path_filestat_get", "none", []uint64{4, 1, pathAt, 4, bufferAt}}, "it calls path_filestat_get on /project/none before"},
		"a link's target":     {deed{"path_readlink", "a.txt", []uint64{4, pathAt, 5, bufferAt, 100, resultAt}}, "it calls path_readlink on /project/a.txt before"},
		"its own description": {deed{"fd_filestat_get", "", []uint64{4, bufferAt}}, "it calls fd_filestat_get on /project before"},
		"its own times":       {deed{"fd_filestat_set_times", "", []uint64{4, 0, 0, 0}}, "it calls fd_filestat_set_times on /project before"},
		"its own list":        {deed{"fd_readdir", "", []uint64{4, bufferAt, 100, 0, resultAt}}, "it calls fd_readdir on /project before"},
		"a new file":          {deed{"path_open", "new", []uint64{4, 1, pathAt, 3, uint64(openCreate), rightFDWrite, 0, 0, resultAt}}, "it calls path_open on /project/new before"},
		"a new directory":     {deed{"path_create_directory", "new", []uint64{4, pathAt, 3}}, "it calls path_create_directory on /project/new before"},
		"a removal":           {deed{"path_unlink_file", "a.txt", []uint64{4, pathAt, 5}}, "it calls path_unlink_file on /project/a.txt before"},
		"a removed directory": {deed{"path_remove_directory", "d", []uint64{4, pathAt, 1}}, "it calls path_remove_directory on /project/d before"},
		"times":               {deed{"path_filestat_set_times", "a.txt", []uint64{4, 1, pathAt, 5, 1, 1, 1}}, "it calls path_filestat_set_times on /project/a.txt before"},
		"a new name":          {deed{"path_rename", "a.txt", []uint64{4, pathAt, 5, 4, otherAt, 1}}, "it calls path_rename on /project/a.txt before"},
		"another name":        {deed{"path_link", "a.txt", []uint64{4, 0, pathAt, 5, 4, otherAt, 1}}, "it calls path_link on /project/a.txt before"},
		"a link":              {deed{"path_symlink", "new", []uint64{otherAt, 1, 4, pathAt, 3}}, "it calls path_symlink on /project/new before"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := newGuest(t, l.starting(t)).done(test.deed)
			assert.ErrorContains(t, err, test.want+" it reads its input")
		})
	}
	moved := newGuest(t, l.starting(t))
	require.Equal(t, Success, moved.call("fd_renumber", 0, 5))
	_, _, err := moved.done(deed{"fd_read", "", []uint64{5, vectorAt, 2, resultAt}})
	assert.EqualError(t, err, "it calls fd_read before it reads its input", "the input under another number")
	moved = newGuest(t, l.starting(t))
	require.Equal(t, Success, moved.call("fd_renumber", 1, 5))
	_, _, err = moved.done(deed{"fd_write", "", []uint64{5, vectorAt, 2, resultAt}})
	assert.EqualError(t, err, "it calls fd_write before it reads its input", "the output under another number")
}

// TestResumedDescriptorsAreOfTheCall: changes by a call to a descriptor that the start opened are gone in the next one.
func TestResumedDescriptorsAreOfTheCall(t *testing.T) {
	l := layouts(t)["both"]
	start := newGuest(t, l.starting(t))
	pointer, length := start.put(pathAt, "tool/a.txt")
	require.Equal(t, Success, start.call("path_open", 3, 1, pointer, length, 0, rightFDRead, 0, 0, resultAt))
	file := uint64(start.u32(resultAt))
	require.Equal(t, Success, start.call("fd_seek", file, 9, 0, resultAt))
	before := start.system.Start()
	for n := range 3 {
		call := newGuest(t, l.system(t))
		call.system.Resume(before)
		require.Equal(t, Success, call.call("fd_read", file, call.vector(bufferAt, 100), 1, resultAt), n)
		assert.Equal(t, "content", string(call.memory[bufferAt:bufferAt+int(call.u32(resultAt))]), fmt.Sprint("call ", n))
		require.Equal(t, Success, call.call("fd_fdstat_set_flags", 0, uint64(flagNonblock)))
		require.Equal(t, Success, call.call("fd_close", file))
		require.Equal(t, Success, call.call("fd_close", 0))
	}
}

// TestResumedDescriptorsCount: files that the start opened count in each call that resumes it.
func TestResumedDescriptorsCount(t *testing.T) {
	l := layouts(t)["both"]
	start := newGuest(t, l.starting(t))
	var errnos []Errno
	open := func(g *guest, path string) (uint64, Errno) {
		pointer, length := g.put(pathAt, path)
		errno := g.call("path_open", 3, 1, pointer, length, 0, rightFDRead, 0, 0, resultAt)
		errnos = append(errnos, errno)
		return uint64(g.u32(resultAt)), errno
	}
	_, _ = open(start, "usr")
	file, _ := open(start, "tool/a.txt")
	before := start.system.Start()
	call := newGuest(t, l.system(t))
	call.system.Resume(before)
	_, _ = open(call, "project/a.txt")
	_, _ = open(call, "project/a.txt")
	require.Equal(t, Success, call.call("fd_close", file))
	_, _ = open(call, "project/a.txt")
	assert.Equal(t, []Errno{Success, Success, Success, EMFILE, Success}, errnos, "there is room for three")
}

// TestCallThatIsNotResumedBeginsAnew: if a program cannot be resumed after all, the call starts it, and finds
// nothing of the other start.
func TestCallThatIsNotResumedBeginsAnew(t *testing.T) {
	for name, l := range layouts(t) {
		for seed := range uint64(40) {
			all := deeds(rand.New(rand.NewPCG(seed, 7)), 20)
			start := newGuest(t, l.starting(t))
			for _, d := range all {
				if _, _, err := start.done(d); err != nil {
					break
				}
			}
			if start.system.startError("") != nil {
				continue // the state of such a start is never resumed
			}
			call, unstarted := newGuest(t, l.system(t)), newGuest(t, l.system(t))
			call.system.Resume(start.system.Start())
			call.ctx = With(t.Context(), call.system)
			for at, d := range all {
				wantErrno, want, wantErr := unstarted.done(d)
				errno, memory, err := call.done(d)
				require.Equal(t, wantErr, err)
				require.Equal(t, wantErrno, errno, "%s %d: %+v", name, seed, all[:at+1])
				require.Equal(t, normal(want, d), normal(memory, d), "%s %d: %+v", name, seed, all[:at+1])
			}
			wantCalls, wantDenials, wantCount := noted(unstarted.system.Files)
			calls, denials, count := noted(call.system.Files)
			require.Equal(t, wantCalls, calls)
			require.Equal(t, wantDenials, denials)
			require.Equal(t, wantCount, count)
		}
	}
}

// TestResumedInodesAreOfTheCall: inode numbers are given in the order in which a call looks at files, so they would
// tell one call which files another has looked at.
func TestResumedInodesAreOfTheCall(t *testing.T) {
	l := layouts(t)["deep"]
	inode := func(g *guest, path string) uint64 {
		pointer, length := g.put(pathAt, path)
		require.Equal(t, Success, g.call("path_filestat_get", 3, 1, pointer, length, bufferAt))
		return g.u64(bufferAt + 8)
	}
	start := newGuest(t, l.starting(t))
	const first = 3 // 1 and 2 are the mounts'
	assert.EqualValues(t, first, inode(start, "srv"))
	before := start.system.Start()
	for _, path := range []string{"srv/data", ".", "srv/data/project/a.txt"} {
		call := newGuest(t, l.system(t))
		call.system.Resume(before)
		assert.EqualValues(t, first+1, inode(call, path))
		assert.EqualValues(t, first, inode(call, "srv"))
		if path == "." {
			assert.EqualValues(t, first+2, inode(call, "srv/data"), "another call has looked at it first")
		}
	}
	anew := newGuest(t, l.system(t))
	anew.system.Resume(before)
	anew.ctx = With(t.Context(), anew.system)
	assert.EqualValues(t, first, inode(anew, "."))
	assert.EqualValues(t, first+1, inode(anew, "srv"))
}
