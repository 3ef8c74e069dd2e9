//go:build unix

package files_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

const (
	processQuota = 1 << 20
	processChunk = 10_000
)

// asProcess is the environment variable that holds the task and the directory of a process of the test binary.
const asProcess = "CAISSON_TEST_FILES_PROCESS"

// process is another process that has a directory mounted.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts a process in which a test runs with a view of the world's directory, and waits until it is ready.
func startProcess(t *testing.T, w *world, test, name string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.v")}
	p.Env = append(os.Environ(), asProcess+"="+name+":"+w.project)
	var err error
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.Start())
	p.expect(t, "ready")
	return p
}

// expect reads until the process has said something.
func (p *process) expect(t *testing.T, said string) {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		require.NoError(t, err, "before %q", said)
		if strings.TrimSpace(line) == said {
			return
		}
	}
}

// inProcess reports whether this is a process of startProcess, with its name and its view.
func inProcess(t *testing.T) (name string, d *files.Dir, view *files.View, ok bool) {
	name, dir, ok := strings.Cut(os.Getenv(asProcess), ":")
	if !ok {
		return "", nil, nil, false
	}
	view, d = quotaView(t, &world{t: t, project: dir}, manifests.Quota{Bytes: processQuota}, files.Limits{})
	return name, d, view, true
}

// say tells the process that started this one.
func say(what string) { fmt.Println("\n" + what) }

// awaitEnd waits until the process that started this one closes standard input.
func awaitEnd() { _, _ = io.Copy(io.Discard, os.Stdin) }

// TestAttackQuotaOfSeveralProcesses: processes that write to one directory at once never exceed its quota together, and
// what fits is written. All keep the directory mounted until the end, so that none measures it only because it is the
// first.
func TestAttackQuotaOfSeveralProcesses(t *testing.T) {
	if name, d, _, ok := inProcess(t); ok {
		require.NoError(t, write(d, name, ""))
		say("ready")
		in := bufio.NewReader(os.Stdin)
		_, _ = in.ReadString('\n')
		fill(t, d, name)
		say("full")
		_, _ = in.ReadString('\n')
		if err := d.Unlink(name + "-0"); !errors.Is(err, errno.NotExist) { // it may be missing: other processes took all the room
			require.NoError(t, err)
		}
		fill(t, d, name+"-again")
		say("full again")
		awaitEnd()
		return
	}
	w := newWorld(t)
	var all []*process
	for i := range 6 {
		all = append(all, startProcess(t, w, t.Name(), fmt.Sprint("p", i)))
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for isOver := false; !isOver; {
			if bytes := bytesIn(t, w.project); !assert.LessOrEqual(t, bytes, processQuota, "files only grow, so that is a lower bound") {
				return
			}
			select {
			case <-ended:
				isOver = true
			case <-time.After(time.Millisecond):
			}
		}
	})
	for _, order := range []string{"full", "full again"} {
		for _, p := range all {
			_, err := io.WriteString(p.in, "go\n")
			require.NoError(t, err)
		}
		for _, p := range all {
			p.expect(t, order)
		}
		if order == "full" {
			close(ended)
			group.Wait()
		}
		assert.LessOrEqual(t, bytesIn(t, w.project), processQuota)
		assert.Greater(t, bytesIn(t, w.project), processQuota-processChunk, "what fits is written")
	}
	for _, p := range all {
		require.NoError(t, p.in.Close())
		rest, err := io.ReadAll(p.out)
		require.NoError(t, err)
		require.NoError(t, p.Wait(), "%s", rest)
	}
}

// fill writes files until there is no room.
func fill(t *testing.T, d *files.Dir, name string) {
	text := strings.Repeat("x", processChunk)
	for i := 0; ; i++ {
		err := write(d, fmt.Sprint(name, "-", i), text)
		if errors.Is(err, errno.NoSpace) {
			_ = d.Unlink(fmt.Sprint(name, "-", i)) // it is empty
			return
		}
		require.NoError(t, err)
	}
}

// bytesIn returns the bytes of the files in a directory, in which other processes may remove files.
func bytesIn(t *testing.T, dir string) (bytes int) {
	t.Helper()
	list, err := os.ReadDir(dir)
	assert.NoError(t, err)
	for _, entry := range list {
		if info, err := entry.Info(); err == nil {
			bytes += int(info.Size())
		}
	}
	return bytes
}

// TestAttackKilledProcess: a process that is killed in the middle of a change leaves no lock, and its change counts.
func TestAttackKilledProcess(t *testing.T) {
	if _, d, view, ok := inProcess(t); ok {
		require.NoError(t, write(d, "counted", strings.Repeat("x", processQuota/2)))
		files.Enter(view, "/project")
		project := os.Getenv(asProcess)[strings.Index(os.Getenv(asProcess), ":")+1:]
		require.NoError(t, os.WriteFile(project+"/uncounted", make([]byte, processQuota/4), 0o600))
		say("ready")
		awaitEnd()
		return
	}
	w := newWorld(t)
	view, d := quotaView(t, w, manifests.Quota{Bytes: processQuota}, files.Limits{})
	require.NoError(t, write(d, "first", "x"), "the directory is measured before the other process comes")
	p := startProcess(t, w, t.Name(), "killed")
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	view.SetContext(short)
	assert.ErrorIs(t, write(d, "early", "x"), context.DeadlineExceeded, "control: the other process is in the middle of a change")
	view.SetContext(t.Context())
	require.NoError(t, p.Process.Kill())
	require.Error(t, p.Wait())
	assert.ErrorIs(t, write(d, "late", strings.Repeat("x", processQuota/4)), errno.NoSpace)
	assert.NoError(t, write(d, "late", strings.Repeat("x", processQuota/4-1)))
	bytes, _ := sizes(t, w.project)
	assert.EqualValues(t, processQuota, bytes)
}

// TestStoresShareADirectory: what one store changes counts in another one that has the directory mounted, too.
func TestStoresShareADirectory(t *testing.T) {
	w := newWorld(t)
	_, one := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	_, other := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	f := openFile(t, one, "f", guestfiles.OpenOptions{Write: true, Create: true})
	require.NoError(t, f.SetSize(80))
	assert.ErrorIs(t, write(other, "g", strings.Repeat("x", 21)), errno.NoSpace)
	require.NoError(t, other.Unlink("f"))
	assert.ErrorIs(t, write(one, "g", strings.Repeat("x", 21)), errno.NoSpace, "the file is still open, and counts where it is")
	require.NoError(t, f.SetSize(70))
	assert.NoError(t, write(one, "g", strings.Repeat("x", 30)))
	require.NoError(t, f.Close())
	assert.NoError(t, write(other, "h", strings.Repeat("x", 70)))
	assert.ErrorIs(t, write(one, "i", "x"), errno.NoSpace)
}

// TestMissingMarks: where a directory cannot have extended attributes, it is measured before each change.
func TestMissingMarks(t *testing.T) {
	w := newWorld(t)
	m := w.mount(manifests.AccessReadWrite)
	m.Quota = manifests.Quota{Bytes: 100}
	view := openView(t, files.NewStore(nil), files.Limits{}, m)
	d := preopen(t, view, "/project")
	require.NoError(t, write(d, "f", strings.Repeat("x", 60)))
	require.NoError(t, os.WriteFile(w.path("g"), make([]byte, 30), 0o600))
	assert.NoError(t, write(d, "h", strings.Repeat("x", 20)), "control: changes by other programs are not noticed")
	files.Unmark(view, "/project")
	assert.ErrorIs(t, write(d, "i", "x"), errno.NoSpace)
}

// TestAttackQuotaOfAStickyDirectory: where not every process that changes a directory can replace another's mark, the
// directory is measured before each change.
func TestAttackQuotaOfAStickyDirectory(t *testing.T) {
	for mode, noticed := range map[os.FileMode]bool{0o777 | os.ModeSticky: true, 0o777: false} {
		w := newWorld(t)
		require.NoError(t, os.Chmod(w.project, mode))
		m := w.mount(manifests.AccessReadWrite)
		m.Quota = manifests.Quota{Bytes: 100}
		d := preopen(t, openView(t, files.NewStore(nil), files.Limits{}, m), "/project")
		require.NoError(t, write(d, "f", strings.Repeat("x", 60)))
		// As a process of another user does that cannot replace the mark.
		require.NoError(t, os.WriteFile(w.path("g"), make([]byte, 30), 0o600))
		err := write(d, "h", strings.Repeat("x", 20))
		if noticed {
			assert.ErrorIs(t, err, errno.NoSpace)
		} else {
			assert.NoError(t, err, "control")
		}
	}
}
