package wasi

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// rights returns the rights that a descriptor claims.
func (g *guest) rights(descriptor uint64) (base, inheriting uint64) {
	g.t.Helper()
	require.Equal(g.t, Success, g.call("fd_fdstat_get", descriptor, 0))
	return g.u64(8), g.u64(16)
}

// reopen opens a path below a descriptor with given rights.
func (g *guest) reopen(directory uint64, path string, oflags uint32, base, inheriting uint64) (uint64, Errno) {
	pointer, length := g.put(1000, path)
	errno := g.call("path_open", directory, 0, pointer, length, uint64(oflags), base, inheriting, 0, 900)
	return uint64(g.u32(900)), errno
}

// TestDirectoriesOpenAgainWithTheirRights: a guest that duplicates a directory opens it with the
// rights that it claims, so it must claim those of a directory, whether or not it may be written to.
func TestDirectoriesOpenAgainWithTheirRights(t *testing.T) {
	for _, access := range []manifests.Access{manifests.AccessRead, manifests.AccessReadWrite} {
		s := &System{Now: time.Now}
		dir := withProject(t, s, access)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content"), 0o600))
		g := newGuest(t, s)
		sub, errno := g.reopen(4, "sub", openDirectory, rightFDSeek, 0)
		require.Equal(t, Success, errno)
		for name, directory := range map[string]uint64{"the virtual root": 3, "a mount": 4, "a directory that was opened to be sought in": sub} {
			base, inheriting := g.rights(directory)
			assert.Equal(t, fileDirectory, g.memory[0], name)
			assert.Zero(t, base&(rightsFile&^rightsDirectory), "%s %s: rights of files", access, name)
			assert.NotZero(t, base&rightFDReadDir, "%s %s", access, name)
			assert.Equal(t, rightsDirectory|rightsFile, inheriting, "%s %s", access, name)
			for _, oflags := range []uint32{0, openDirectory} {
				again, errno := g.reopen(directory, ".", oflags, base, inheriting)
				require.Equal(t, Success, errno, "%s %s", access, name)
				same, below := g.rights(again)
				assert.Equal(t, base, same, name)
				assert.Equal(t, inheriting, below, name)
				require.Equal(t, Success, g.call("fd_close", again))
			}
		}

		// Control: files and directories are still told apart, and nothing was gained.
		_, errno = g.reopen(4, "sub", openDirectory, rightFDRead|rightFDWrite, 0)
		assert.NotEqual(t, Success, errno, "a directory to write to")
		_, errno = g.reopen(4, "a.txt", openDirectory, rightFDRead, 0)
		assert.Equal(t, ENOTDIR, errno)
		_, errno = g.reopen(4, "a.txt", 0, rightFDWrite, 0)
		want := Success
		if access == manifests.AccessRead {
			want = EROFS
		}
		assert.Equal(t, want, errno)
	}
}

// TestRightsSayHowAFileIsOpen: C libraries take the access mode from the rights (fcntl, F_GETFL): those to read and to
// list a directory mean reading.
func TestRightsSayHowAFileIsOpen(t *testing.T) {
	s := &System{Now: time.Now, Stdout: &Output{}, Stderr: &Output{}}
	dir := withProject(t, s, manifests.AccessReadWrite)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content"), 0o600))
	g := newGuest(t, s)
	const reads, writes = rightFDRead | rightFDReadDir, rightFDWrite
	for _, asked := range []uint64{0, rightFDRead, rightFDWrite, rightFDRead | rightFDWrite} {
		file, errno := g.reopen(4, "a.txt", 0, asked, 0)
		require.Equal(t, Success, errno)
		base, inheriting := g.rights(file)
		assert.Equal(t, asked, base&(reads|writes))
		assert.Zero(t, base&rightsDirectory&^rightsFile, "rights of directories")
		assert.Zero(t, inheriting, "nothing can be opened below a file")
		assert.Equal(t, asked&rightFDWrite != 0, base&rightFDFilestatSetSize != 0)
		assert.Equal(t, asked&rightFDWrite != 0, g.call("fd_filestat_set_size", file, 7) == Success, "a claimed right works")
		again, errno := g.reopen(4, "a.txt", 0, base, inheriting)
		require.Equal(t, Success, errno)
		same, _ := g.rights(again)
		assert.Equal(t, base, same)
	}
	for stream, want := range []uint64{rightFDRead, rightFDWrite, rightFDWrite} {
		base, inheriting := g.rights(uint64(stream))
		assert.Equal(t, want, base&(reads|writes), "stream %d", stream)
		assert.Zero(t, base&(rightFDSeek|rightFDTell), "stream %d", stream)
		assert.Zero(t, inheriting)
	}
}

// TestRightsWhileAProgramStarts: the rights that a program reads as it starts must hold in the calls that resume it.
func TestRightsWhileAProgramStarts(t *testing.T) {
	s := &System{Now: time.Now, Stdout: &Output{}, Stderr: &Output{}}
	withProject(t, s, manifests.AccessRead)
	call := newGuest(t, s)
	start := newGuest(t, &System{Starting: true, Files: outlineOf(t, manifests.AccessRead)})
	for descriptor := range uint64(5) {
		base, inheriting := call.rights(descriptor)
		startBase, startInheriting := start.rights(descriptor)
		assert.Equal(t, base, startBase, "descriptor %d", descriptor)
		assert.Equal(t, inheriting, startInheriting, "descriptor %d", descriptor)
	}
}

func TestTimesOfLinks(t *testing.T) {
	s := &System{Now: time.Now}
	dir := withProject(t, s, manifests.AccessReadWrite)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	g := newGuest(t, s)
	const modified, second = 1 << 2, 1_000_000_000
	modifiedOf := func(name string, follow uint64) uint64 {
		pointer, length := g.put(1000, name)
		require.Equal(t, Success, g.call("path_filestat_get", 4, follow, pointer, length, 0))
		return g.u64(48)
	}
	before := modifiedOf("file", 0)
	pointer, length := g.put(1000, "link")
	require.Equal(t, Success, g.call("path_filestat_set_times", 4, 0, pointer, length, 0, 5*second, modified))
	assert.EqualValues(t, 5*second, modifiedOf("link", 0))
	assert.Equal(t, before, modifiedOf("link", lookupFollow))
	pointer, length = g.put(1000, "link")
	require.Equal(t, Success, g.call("path_filestat_set_times", 4, lookupFollow, pointer, length, 0, 7*second, modified))
	assert.EqualValues(t, 5*second, modifiedOf("link", 0))
	assert.EqualValues(t, 7*second, modifiedOf("file", 0))
}

// TestTimesThatDoNotFit: a time that the host cannot store is refused rather than stored as another, and one that a
// timestamp cannot express is the nearest that it can.
func TestTimesThatDoNotFit(t *testing.T) {
	s := &System{Now: time.Now}
	dir := withProject(t, s, manifests.AccessReadWrite)
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	g := newGuest(t, s)
	const accessed, modified, second = 1, 4, 1_000_000_000
	pointer, length := g.put(1000, "file")
	open, errno := g.open("file", 0, rightFDRead|rightFDWrite)
	require.Equal(t, Success, errno)
	set := map[string]func(atime, mtime, flags uint64) Errno{
		"by path": func(a, m, flags uint64) Errno {
			return g.call("path_filestat_set_times", 4, 0, pointer, length, a, m, flags)
		},
		"by descriptor": func(a, m, flags uint64) Errno { return g.call("fd_filestat_set_times", open, a, m, flags) },
	}
	for name, set := range set {
		require.Equal(t, Success, set(5*second, 6*second, accessed|modified), name)
		for _, late := range []uint64{1 << 63, math.MaxUint64} {
			assert.Equal(t, EINVAL, set(late, 7*second, accessed|modified), name)
			assert.Equal(t, EINVAL, set(7*second, late, accessed|modified), name)
			assert.Equal(t, Success, set(late, late, 0), "%s: neither is used", name)
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.EqualValues(t, 6, info.ModTime().Unix(), name)
		require.Equal(t, Success, set(0, math.MaxInt32*second, modified), name)
	}
	for at, want := range map[time.Time]uint64{
		time.Unix(-1, 0): 0, {}: 0, time.Unix(0, 7): 7, time.Unix(1<<34, 5): 1<<34*second + 5, time.Unix(1<<40, 0): math.MaxUint64,
	} {
		assert.Equal(t, want, nanoseconds(at), at)
	}
	s.Now = func() time.Time { return time.Unix(-1, 0) }
	require.Equal(t, Success, g.call("clock_time_get", 0, 0, 0))
	assert.Zero(t, g.u64(0))
}
