package runtime

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// These tests attack through a real guest that makes raw WASI calls. hostfuncs/files tests the
// operations themselves, with controls.

// step is a WASI call of the probe; see internal/guests/probe/raw.go.
type step map[string]any

type stepAnswer struct {
	Errno uint32   `json:"errno"`
	FD    int32    `json:"fd"`
	Text  string   `json:"text"`
	Count uint64   `json:"count"`
	Stat  []uint64 `json:"stat"`
}

// The descriptors of the virtual root and of /project, the rights, and the errnos.
const (
	rootFD, projectFD            = 3, 4
	reads, writes                = 1 << 1, 1 << 6
	creates, exclusive, truncate = 1, 4, 8
	eperm, erofs, enospc, emfile = 63, 69, 51, 33
	ebadf, enotsock              = 8, 57
)

// scene is a host directory tree with a project inside and secrets around it.
type scene struct{ outside, project string }

const secret = "TOP-SECRET"

func newScene(t testing.TB) scene {
	t.Helper()
	outside := t.TempDir()
	s := scene{outside, filepath.Join(outside, "workspaces", "alice")}
	for name, content := range map[string]string{
		"secret.txt": secret, "workspaces/bob/b.txt": secret,
		"workspaces/alice/a.txt": "hello", "workspaces/alice/docs/d.txt": "docs",
	} {
		path := filepath.Join(outside, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for link, target := range map[string]string{
		"relative": "../../secret.txt", "absolute": filepath.Join(outside, "secret.txt"),
		"up": "../..", "proc": "/proc/self", "inside": "a.txt",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(s.project, link)))
	}
	return s
}

// fingerprint is a digest of everything below a directory but the named part: names,
// types, sizes, times and contents.
func fingerprint(t testing.TB, dir, except string) string {
	t.Helper()
	hash := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if except != "" && path == except {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(hash, path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			hash.Write(content)
		}
		return nil
	}))
	return fmt.Sprintf("%x", hash.Sum(nil))
}

func (s scene) guest(t testing.TB, access manifests.Access, more string) *Tool {
	t.Helper()
	m := manifest(t, probe, fmt.Sprintf("permissions: {files: [{path: /project, access: %s}]}\n%s", access, more))
	return load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(s.outside, "workspaces", "{project_id}"), access)}})
}

func alice(t testing.TB, guest *Tool, steps ...step) ([]stepAnswer, tool.Outcome) {
	t.Helper()
	request := encode(t, map[string]any{"do": "raw", "calls": steps})
	start := time.Now()
	outcome, err := guest.Invoke(t.Context(), invocation(t, string(request), map[string]string{"project_id": "alice"}))
	require.NoError(t, err, outcome.Log)
	assert.Less(t, time.Since(start), 5*time.Second)
	return decode[[]stepAnswer](t, outcome.Result.Data), outcome
}

func open(path string, oflags, rights int) step {
	return step{"call": "path_open", "fd": projectFD, "path": path, "follow": 1, "oflags": oflags, "rights": rights}
}

func on(call, path string) step { return step{"call": call, "fd": projectFD, "path": path} }

// escapes are attempts to reach files outside of the project.
func escapes(s scene) map[string][]step {
	read := step{"call": "fd_read", "fd": -1, "size": 100}
	attacks := map[string][]step{
		"a link that the guest makes, absolute": {
			step{"call": "path_symlink", "fd": projectFD, "path": "mine", "text": filepath.Join(s.outside, "secret.txt")}, open("mine", 0, reads), step{"call": "fd_read", "fd": -2, "size": 100}},
		"a link that the guest makes, relative": {
			step{"call": "path_symlink", "fd": projectFD, "path": "mine", "text": "../../secret.txt"}, open("mine", 0, reads), step{"call": "fd_read", "fd": -2, "size": 100}},
		"a link moved deeper, then up": {
			step{"call": "path_symlink", "fd": projectFD, "path": "docs/mine", "text": "../../../secret.txt"}, open("docs/mine", 0, reads), step{"call": "fd_read", "fd": -2, "size": 100}},
		"a directory's handle": {
			open("docs", 2, reads), step{"call": "path_open", "fd": -1, "path": "../../../secret.txt", "rights": reads}, step{"call": "fd_read", "fd": -2, "size": 100}},
		"rename a secret in":         {step{"call": "path_rename", "fd": projectFD, "path": "up/secret.txt", "fd2": projectFD, "path2": "stolen"}},
		"rename out":                 {step{"call": "path_rename", "fd": projectFD, "path": "a.txt", "fd2": projectFD, "path2": "up/planted"}},
		"hard link to a secret":      {step{"call": "path_link", "fd": projectFD, "path": "up/secret.txt", "fd2": projectFD, "path2": "stolen"}, open("stolen", 0, reads), step{"call": "fd_read", "fd": -2, "size": 100}},
		"hard link through the root": {step{"call": "path_link", "fd": rootFD, "path": "secret.txt", "fd2": projectFD, "path2": "stolen"}},
		"the virtual root":           {step{"call": "path_open", "fd": rootFD, "path": "etc/passwd", "rights": reads}, read},
		"make a file in the root":    {step{"call": "path_open", "fd": rootFD, "path": "planted", "oflags": creates, "rights": writes}},
	}
	for _, path := range []string{"../bob/b.txt", "docs/../../bob/b.txt", "../../secret.txt", filepath.Join(s.outside, "secret.txt"), "/etc/passwd",
		"relative", "absolute", "up/secret.txt", "up/workspaces/bob/b.txt", "proc/environ", "proc/self/root" + s.outside + "/secret.txt"} {
		attacks["read "+path] = []step{open(path, 0, reads), read}
		attacks["write "+path] = []step{open(path, 0, reads|writes), step{"call": "fd_write", "fd": -1, "text": "overwritten"}}
		attacks["truncate "+path] = []step{open(path, truncate, reads)}
		attacks["stat "+path] = []step{step{"call": "path_filestat_get", "fd": projectFD, "path": path, "follow": 1}}
		for _, call := range []string{"path_unlink_file", "path_create_directory", "path_remove_directory", "path_filestat_set_times"} {
			if strings.Contains(path, "/") { // otherwise it is the link itself that is meant
				attacks[call+" "+path] = []step{on(call, path)}
			}
		}
		if strings.Contains(path, "/") {
			attacks["create beside "+path] = []step{open(path+"-new", creates, writes)}
		}
	}
	return attacks
}

func TestNoWayOutOfTheProject(t *testing.T) {
	for _, access := range []manifests.Access{manifests.AccessReadWrite, manifests.AccessRead} {
		s := newScene(t)
		guest := s.guest(t, access, "")
		before := fingerprint(t, s.outside, s.project)
		for name, steps := range escapes(s) {
			answers, outcome := alice(t, guest, steps...)
			assert.True(t, slices.ContainsFunc(answers, func(a stepAnswer) bool { return a.Errno != 0 }), "%s (%s): %+v", name, access, answers)
			assert.NotEmpty(t, outcome.Denials, "%s (%s): a refusal leaves a receipt", name, access)
			record := encode(t, outcome)
			assert.NotContains(t, string(record), secret, "%s (%s)", name, access)
			if !strings.Contains(name, s.outside) && !strings.Contains(name, "absolute") { // the guest knows no host path but those it was given
				assert.NotContains(t, string(record), s.outside, "%s (%s)", name, access)
			}
		}
		assert.Equal(t, before, fingerprint(t, s.outside, s.project), "nothing outside the project has changed")
	}

	// The control: the same calls, with paths inside, succeed.
	s := newScene(t)
	guest := s.guest(t, manifests.AccessReadWrite, "")
	answers, outcome := alice(t, guest,
		open("a.txt", 0, reads), step{"call": "fd_read", "fd": -1, "size": 100},
		open("inside", 0, reads), step{"call": "fd_read", "fd": -3, "size": 100},
		step{"call": "path_symlink", "fd": projectFD, "path": "mine", "text": "docs/d.txt"}, open("mine", 0, reads), step{"call": "fd_read", "fd": -6, "size": 100},
		step{"call": "path_open", "fd": rootFD, "path": "project/docs/d.txt", "rights": reads},
		step{"call": "path_rename", "fd": projectFD, "path": "docs/d.txt", "fd2": projectFD, "path2": "moved.txt"},
		step{"call": "path_link", "fd": projectFD, "path": "moved.txt", "fd2": projectFD, "path2": "linked.txt"},
		on("path_create_directory", "new"), on("path_remove_directory", "new"), on("path_unlink_file", "moved.txt"))
	for i, a := range answers {
		assert.Zero(t, a.Errno, "step %d", i)
	}
	assert.Equal(t, "hello", answers[1].Text)
	assert.Equal(t, "hello", answers[3].Text)
	assert.Equal(t, "docs", answers[6].Text)
	assert.Empty(t, outcome.Denials)
	assert.Positive(t, outcome.Usage.HostCalls)
}

func TestReadOnlyMeansByteIdentical(t *testing.T) {
	s := newScene(t)
	guest := s.guest(t, manifests.AccessRead, "")
	before := fingerprint(t, s.outside, "")
	for name, steps := range map[string][]step{
		"write":                         {open("a.txt", 0, writes)},
		"read and write":                {open("a.txt", 0, reads|writes)},
		"truncate with a reading right": {open("a.txt", truncate, reads)},
		"create with a reading right":   {open("new.txt", creates, reads)},
		"create what exists":            {open("a.txt", creates, reads)},
		"create exclusively":            {open("new.txt", creates|exclusive, reads)},
		"append":                        {step{"call": "path_open", "fd": projectFD, "path": "a.txt", "rights": reads, "fdflags": 1}},
		"truncate through a link":       {open("inside", truncate, reads)},
		"truncate an open file":         {open("a.txt", 0, reads), step{"call": "fd_filestat_set_size", "fd": -1}},
		"allocate":                      {open("a.txt", 0, reads), step{"call": "fd_allocate", "fd": -1, "size": 100}},
		"write to an open file":         {open("a.txt", 0, reads), step{"call": "fd_write", "fd": -1, "text": "x"}},
		"touch an open file":            {open("a.txt", 0, reads), step{"call": "fd_filestat_set_times", "fd": -1}},
		"touch":                         {on("path_filestat_set_times", "a.txt")},
		"unlink":                        {on("path_unlink_file", "a.txt")},
		"mkdir":                         {on("path_create_directory", "new")},
		"rmdir":                         {on("path_remove_directory", "docs")},
		"rename":                        {step{"call": "path_rename", "fd": projectFD, "path": "a.txt", "fd2": projectFD, "path2": "b.txt"}},
		"link":                          {step{"call": "path_link", "fd": projectFD, "path": "a.txt", "fd2": projectFD, "path2": "b.txt"}},
		"symlink":                       {step{"call": "path_symlink", "fd": projectFD, "path": "b.txt", "text": "a.txt"}},
	} {
		answers, _ := alice(t, guest, steps...)
		assert.NotZero(t, answers[len(answers)-1].Errno, name)
	}
	assert.Equal(t, before, fingerprint(t, s.outside, ""))
}

func TestPipesAndDevicesDoNotHang(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // has no such files
	}
	s := newScene(t)
	require.NoError(t, makePipe(filepath.Join(s.project, "pipe")))
	guest := s.guest(t, manifests.AccessReadWrite, "")
	for _, rights := range []int{reads, writes, reads | writes} {
		answers, _ := alice(t, guest, open("pipe", 0, rights))
		assert.EqualValues(t, eperm, answers[0].Errno)
	}
}

func TestDiskAndDescriptorsAreBounded(t *testing.T) {
	s := newScene(t)
	guest := s.guest(t, manifests.AccessReadWrite, "limits: {open_files: 20, disk_bytes: 512KiB}")
	for name, last := range map[string]step{
		"a hole of 1 TiB":       {"call": "fd_filestat_set_size", "fd": -1, "size": 1 << 40},
		"a write behind a hole": {"call": "fd_pwrite", "fd": -1, "text": "x", "offset": 1 << 40},
		"1 GiB allocated":       {"call": "fd_allocate", "fd": -1, "size": 1 << 30},
		"600 KiB written":       {"call": "fd_write", "fd": -1, "text": strings.Repeat("x", 200<<10)},
	} {
		steps := []step{open("big", creates, reads|writes), last}
		if name == "600 KiB written" {
			steps = append(steps, last, last)
		}
		answers, _ := alice(t, guest, steps...)
		final := answers[len(answers)-1]
		if final.Errno != enospc {
			assert.Less(t, final.Count, uint64(200<<10), "%s: %+v", name, answers) // a short write
		}
		info, err := os.Stat(filepath.Join(s.project, "big"))
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(512<<10), name)
		require.NoError(t, os.Remove(filepath.Join(s.project, "big")))
	}
	answers, _ := alice(t, guest, step{"call": "path_open", "fd": projectFD, "path": "a.txt", "rights": reads, "times": 20000})
	assert.EqualValues(t, emfile, answers[0].Errno)
	assert.EqualValues(t, 20, answers[0].Count)
	answers, _ = alice(t, guest, open("a.txt", 0, reads),
		step{"call": "fd_renumber", "fd": -1, "fd2": 2000000000}, step{"call": "sock_shutdown", "fd": -1})
	assert.EqualValues(t, ebadf, answers[1].Errno)
	assert.EqualValues(t, enotsock, answers[2].Errno)
}

// TestGuestSeesNoHostNumbers: inodes are the view's own, devices are 0.
func TestGuestSeesNoHostNumbers(t *testing.T) {
	s := newScene(t)
	answers, _ := alice(t, s.guest(t, manifests.AccessRead, ""), step{"call": "path_filestat_get", "fd": projectFD, "path": "a.txt"},
		step{"call": "path_filestat_get", "fd": projectFD, "path": "docs"}, step{"call": "path_readlink", "fd": projectFD, "path": "absolute"},
		step{"call": "path_filestat_get", "fd": projectFD, "path": "absolute"}, step{"call": "path_filestat_get", "fd": projectFD, "path": "inside"})
	assert.Zero(t, answers[0].Stat[0])
	assert.Less(t, answers[0].Stat[1], uint64(100))
	assert.NotEqual(t, answers[0].Stat[1], answers[1].Stat[1])
	assert.EqualValues(t, eperm, answers[2].Errno)
	assert.Empty(t, answers[2].Text)
	assert.Zero(t, answers[3].Stat[4], "nor the length of a host path")
	assert.EqualValues(t, len("a.txt"), answers[4].Stat[4])
}

// TestBulkCallsEndWithTheDeadline: a host function that a guest keeps busy looks at the
// clock.
func TestBulkCallsEndWithTheDeadline(t *testing.T) {
	guest := newScene(t).guest(t, manifests.AccessRead, "limits: {timeout: 500ms}")
	for _, s := range []step{
		{"call": "poll_oneoff", "size": uint64(time.Hour)},
		{"call": "poll_oneoff", "size": uint64(time.Hour), "times": 100000},
	} {
		request := encode(t, map[string]any{"do": "raw", "calls": []step{s}})
		start := time.Now()
		_, err := guest.Invoke(t.Context(), invocation(t, string(request), map[string]string{"project_id": "alice"}))
		assert.ErrorIs(t, err, tool.Deadline)
		assert.Less(t, time.Since(start), 5*time.Second)
	}
}

func TestContextValuesCannotClimb(t *testing.T) {
	s := newScene(t)
	require.NoError(t, os.Symlink(filepath.Join(s.outside, "workspaces", "bob"), filepath.Join(s.outside, "workspaces", "mallory")))
	guest := s.guest(t, manifests.AccessReadWrite, "")
	for _, value := range []string{"..", ".", "", "a/b", "../bob", `..\bob`, "a\x00b", "a\nb", strings.Repeat("x", 300), "mallory"} {
		outcome, err := guest.Invoke(t.Context(), invocation(t, `{"do":"echo"}`, map[string]string{"project_id": value}))
		assert.ErrorIs(t, err, tool.Denied, "%q", value)
		assert.NotEmpty(t, outcome.Denials, "%q", value)
		if len(value) > 2 {
			assert.NotContains(t, outcome.Result.Error+outcome.Denials[0].Value, value, "the value is not the model's to know")
		}
	}
	outcome, err := guest.Invoke(t.Context(), invocation(t, `{"do":"echo"}`, nil))
	require.ErrorIs(t, err, tool.Denied)
	assert.Equal(t, "context", outcome.Denials[0].Permission)
	_, err = guest.Invoke(t.Context(), invocation(t, `{"do":"echo"}`, map[string]string{"project_id": "new-project"}))
	assert.NoError(t, err, "the control; a project begins as an empty directory")
	assert.NoDirExists(t, filepath.Join(s.outside, "workspaces", "new-project"), "until something is written to it")
}

// TestNewProject: the first call of a project may be one that only reads.
func TestNewProject(t *testing.T) {
	s := newScene(t)
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read}]}")
	for access, want := range map[manifests.Access]error{manifests.AccessReadWrite: nil, manifests.AccessRead: tool.Denied} {
		guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(s.outside, "workspaces", "{project_id}"), access)}})
		outcome, err := guest.Invoke(t.Context(), invocation(t, `{}`, map[string]string{"project_id": "new-" + string(access)}))
		assert.ErrorIs(t, err, want, "a grant to %s", access)
		assert.Len(t, outcome.Denials, len(outcome.Result.Kind)/len(tool.Denied))
	}
}

func TestQuotaIsTheDirectorysNotTheCalls(t *testing.T) {
	s := newScene(t)
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{{
		Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(filepath.Join(s.outside, "workspaces", "{project_id}")), Access: manifests.AccessReadWrite,
		Quota: manifests.Quota{Bytes: 10_000},
	}}})
	for i := range 4 {
		answers, _ := alice(t, guest, open(fmt.Sprintf("f%d", i), creates, writes), step{"call": "fd_write", "fd": -1, "text": strings.Repeat("x", 3000)})
		if i < 3 {
			assert.Zero(t, answers[1].Errno, i)
		} else {
			assert.NotZero(t, answers[1].Errno+uint32(3000-answers[1].Count), "the fourth does not fit")
		}
	}
}
