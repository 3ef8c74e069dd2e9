package runtime

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// These are the rows of attacks on files that take a guest and are not in files_test.go.
// docs/attacks.md lists all; their controls are in
// internal/engine/attack_files_control_test.go.

// readOnlyAttacks are the escapes, and every combination of flags and rights on files inside, with all operations that
// can then be tried on a descriptor.
func readOnlyAttacks(t *testing.T, s scene) map[string][]step {
	attacks := escapes(s)
	add := func(name string, steps ...step) { attacks["inside: "+name] = steps }
	for _, path := range []string{"a.txt", "inside", "new.txt", "docs/d.txt", "docs", ".", "pipe", "linked.txt"} {
		for oflags := range 16 {
			for _, rights := range []int{0, reads, writes, reads | writes} {
				for fdflags := range 2 { // append
					add(fmt.Sprintf("open %s %d %d %d", path, oflags, rights, fdflags),
						step{"call": "path_open", "fd": projectFD, "path": path, "follow": 1, "oflags": oflags, "rights": rights, "fdflags": fdflags},
						step{"call": "fd_write", "fd": -1, "text": "overwritten"},
						step{"call": "fd_pwrite", "fd": -1, "text": "overwritten"},
						step{"call": "fd_filestat_set_size", "fd": -1},
						step{"call": "fd_filestat_set_size", "fd": -1, "size": uint64(1) << 40},
						step{"call": "fd_allocate", "fd": -1, "size": 1 << 30},
						step{"call": "fd_filestat_set_times", "fd": -1})
				}
			}
		}
		for _, call := range []string{"path_unlink_file", "path_create_directory", "path_remove_directory", "path_filestat_set_times"} {
			add(call+" "+path, on(call, path))
		}
		for _, call := range []string{"path_rename", "path_link"} {
			add(call+" "+path, step{"call": call, "fd": projectFD, "path": path, "fd2": projectFD, "path2": "other", "follow": 1})
			add(call+" onto "+path, step{"call": call, "fd": projectFD, "path": "a.txt", "fd2": projectFD, "path2": path})
		}
		add("symlink "+path, step{"call": "path_symlink", "fd": projectFD, "path": path, "text": "a.txt"})
	}
	require.NoError(t, os.Link(filepath.Join(s.outside, "secret.txt"), filepath.Join(s.project, "linked.txt")))
	if goruntime.GOOS != "windows" {
		require.NoError(t, makePipe(filepath.Join(s.project, "pipe")))
	}
	return attacks
}

// TestReadOnlyTreeSurvivesEveryAttack: after all of them the tree is the same, in names,
// modes, times and contents.
func TestReadOnlyTreeSurvivesEveryAttack(t *testing.T) {
	s := newScene(t)
	attacks := readOnlyAttacks(t, s)
	guest := s.guest(t, manifests.AccessRead, "limits: {output: 4MiB}")
	before := fingerprint(t, s.outside, "")
	// A guest may open 64 files, so each call makes few attacks.
	var steps []step
	made := 0
	flush := func() {
		answers, _ := alice(t, guest, steps...)
		require.Len(t, answers, len(steps))
		made, steps = made+len(steps), nil
	}
	for _, attack := range attacks {
		first := len(steps)
		for _, one := range attack {
			one = maps.Clone(one)
			for _, key := range []string{"fd", "fd2"} { // which count from the attack's own first step
				if fd, ok := one[key].(int); ok && fd < 0 {
					one[key] = fd - first
				}
			}
			steps = append(steps, one)
		}
		if len(steps) > 100 {
			flush()
		}
	}
	flush()
	t.Logf("%d calls in %d attacks", made, len(attacks))
	assert.Equal(t, before, fingerprint(t, s.outside, ""))

	// The control: with the right to write, one of them changes the tree.
	control := newScene(t)
	before = fingerprint(t, control.project, "")
	alice(t, control.guest(t, manifests.AccessReadWrite, ""), open("a.txt", truncate, reads))
	assert.NotEqual(t, before, fingerprint(t, control.project, ""))
}

// TestHardLinkFromBeforeIsTheFile: that is documented. Below a read-only grant it cannot
// be written.
func TestHardLinkFromBeforeIsTheFile(t *testing.T) {
	s := newScene(t)
	require.NoError(t, os.Link(filepath.Join(s.outside, "secret.txt"), filepath.Join(s.project, "linked.txt")))
	before := fingerprint(t, s.outside, "")
	answers, _ := alice(t, s.guest(t, manifests.AccessRead, ""),
		open("linked.txt", 0, reads), step{"call": "fd_read", "fd": -1, "size": 100}, open("linked.txt", 0, writes), open("linked.txt", truncate, reads))
	assert.Equal(t, secret, answers[1].Text)
	assert.EqualValues(t, erofs, answers[2].Errno)
	assert.EqualValues(t, erofs, answers[3].Errno)
	assert.Equal(t, before, fingerprint(t, s.outside, ""))
}

// TestListingShowsNoHostInode reads the first entry of a directory as WASI lays it out.
func TestListingShowsNoHostInode(t *testing.T) {
	s := newScene(t)
	answers, _ := alice(t, s.guest(t, manifests.AccessRead, ""), open("docs", 2, reads), step{"call": "fd_readdir", "fd": -1})
	require.Zero(t, answers[1].Errno)
	entry := []byte(answers[1].Text)
	require.Greater(t, len(entry), 16)
	assert.Less(t, binary.LittleEndian.Uint64(entry[8:]), uint64(100))
}

// TestTenantsOfOneToolNeverMeet has two tenants call one tool at once: each sees only its own files, and one that has
// filled its directory takes nothing from the other.
func TestTenantsOfOneToolNeverMeet(t *testing.T) {
	const callers, rounds = 4, 6
	s := newScene(t)
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{{
		Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(filepath.Join(s.outside, "workspaces", "{project_id}")), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: 20_000},
	}}})
	call := func(tenant, seenAs string) (crossed bool) {
		request, err := json.Marshal(map[string]any{"do": "raw", "calls": []step{
			open(tenant+"-file", creates, reads|writes), {"call": "fd_write", "fd": -1, "text": strings.Repeat(tenant, map[string]int{"greedy": 10_000, "modest": 10}[tenant])},
			open(".", 2, reads), {"call": "fd_readdir", "fd": -3}, {"call": "path_open", "fd": rootFD, "path": "project/" + tenant + "-file", "rights": reads},
			{"call": "fd_read", "fd": -5, "size": 60}, open("../"+tenant, 2, reads),
		}})
		require.NoError(t, err)
		outcome, err := guest.Invoke(t.Context(), invocation(t, string(request), map[string]string{"project_id": seenAs}))
		if !assert.NoError(t, err) {
			return false
		}
		answers := decode[[]stepAnswer](t, outcome.Result.Data)
		other := map[string]string{"greedy": "modest", "modest": "greedy"}[tenant]
		if tenant == "modest" {
			assert.EqualValues(t, 60, answers[1].Count, "the other's files take no room here")
		}
		assert.EqualValues(t, eperm, answers[6].Errno)
		return strings.Contains(answers[3].Text+answers[5].Text, other)
	}
	var group sync.WaitGroup
	for range callers {
		for _, tenant := range []string{"greedy", "modest"} {
			group.Go(func() {
				for range rounds {
					assert.False(t, call(tenant, tenant))
				}
			})
		}
	}
	group.Wait()
	assert.True(t, call("modest", "greedy"), "the control: in the other's directory, its files are seen")
}
