//go:build unix

package files_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// flip lets two names take the place of a third in turn, until the returned function is called.
func flip(t *testing.T, w *world, place, one, two string) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			for _, name := range []string{one, two} {
				_ = os.Rename(w.path(name), w.path(place))
				runtime.Gosched()
				_ = os.Rename(w.path(place), w.path(name))
			}
		}
	}()
	return func() { stopped.Store(true); <-done }
}

// during repeats a function for a while, or until it returns true.
func during(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if f() {
			return true
		}
	}
	return false
}

func TestLinkSwappedInBetweenCheckAndOpen(t *testing.T) {
	w := newWorld(t, "good = mine", "evil => ../outside/secret.txt")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	stop := flip(t, w, "x", "good", "evil")
	defer stop()
	won := 0
	during(400*time.Millisecond, func() bool {
		for _, noFollow := range []bool{true, false} {
			f, _, err := d.Open("x", guestfiles.OpenOptions{Read: true, Write: true, NoFollow: noFollow})
			if err != nil {
				continue
			}
			won++
			text := make([]byte, len(secret))
			n, _ := f.ReadAt(text, 0)
			assert.Equal(t, "mine", string(text[:n]))
			assert.NoError(t, f.Close())
		}
		return t.Failed()
	})
	stop()
	assert.NotZero(t, won, "the file must have been opened at times")
	assert.False(t, w.outsideChanged())
}

func TestLinkSwappedInBetweenCheckAndOpenControl(t *testing.T) {
	w := newWorld(t, "good = mine", "evil => ../outside/secret.txt")
	stop := flip(t, w, "x", "good", "evil")
	defer stop()
	lost := during(10*time.Second, func() bool {
		info, err := os.Lstat(w.path("x"))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		text, err := os.ReadFile(w.path("x"))
		return err == nil && string(text) == secret
	})
	assert.True(t, lost, "a check before a plain open must lose the race")
}

func TestDirectorySwappedWithLinkWhileItIsWalked(t *testing.T) {
	w := newWorld(t, "good/secret.txt = mine", "evil => ../outside")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	stop := flip(t, w, "x", "good", "evil")
	defer stop()
	during(400*time.Millisecond, func() bool {
		if text, err := read(d, "x/secret.txt"); err == nil {
			assert.Equal(t, "mine", text)
		}
		_ = write(d, "x/new.txt", "pwned")
		_ = d.Mkdir("x/new")
		_ = d.Unlink("x/secret.txt2")
		_ = d.Rename("x/dir", d, "stolen")
		_ = d.Link("x/secret.txt", d, "linked", false)
		_ = d.Unlink("linked")
		_ = d.SetTimes("x/secret.txt", true, nil, &time.Time{})
		return t.Failed()
	})
	stop()
	assert.False(t, w.outsideChanged())
}

func TestDirectorySwappedWithLinkControl(t *testing.T) {
	w := newWorld(t, "good/secret.txt = mine", "evil => ../outside")
	stop := flip(t, w, "x", "good", "evil")
	defer stop()
	lost := during(10*time.Second, func() bool {
		info, err := os.Lstat(w.path("x"))
		if err != nil || !info.IsDir() {
			return false
		}
		text, err := os.ReadFile(w.path("x/secret.txt"))
		return err == nil && string(text) == secret
	})
	assert.True(t, lost, "a check before a plain open must lose the race")
}

// Calls that share a directory write, rename, truncate and remove at once. Whatever they do, the directory never holds
// more than its quota, and the store's final count equals the directory's content.
func TestConcurrentCallsShareOneQuota(t *testing.T) {
	const calls, quotaBytes, quotaFiles = 8, 30_000, 10
	w := newWorld(t, "old = text")
	store := files.NewStore(nil)
	m := w.mount(manifests.AccessReadWrite)
	m.Quota = manifests.Quota{Bytes: quotaBytes, Files: quotaFiles}
	keeper := openView(t, store, files.Limits{}, m) // so that nothing is measured anew
	var group sync.WaitGroup
	for call := range calls {
		view := openView(t, store, files.Limits{}, m)
		d := preopen(t, view, "/project")
		group.Go(func() {
			for round := range 150 {
				churn(d, call, round)
			}
		})
	}
	group.Wait()
	bytes, entries := sizes(t, w.project)
	assert.LessOrEqual(t, bytes, int64(quotaBytes))
	assert.LessOrEqual(t, entries, quotaFiles)

	// The keeper's count must equal the directory's content: exactly the rest fits.
	d := preopen(t, keeper, "/project")
	require.NoError(t, d.Unlink("old"), "no call has touched this file")
	f := openFile(t, d, "old", guestfiles.OpenOptions{Write: true, Create: true})
	rest := int64(quotaBytes) - bytes + int64(len("text"))
	assert.ErrorIs(t, f.SetSize(rest+1), errno.NoSpace)
	assert.NoError(t, f.SetSize(rest))
	for i := range quotaFiles - entries {
		assert.NoError(t, d.Mkdir(fmt.Sprintf("fill%d", i)))
	}
	assert.ErrorIs(t, d.Mkdir("one-too-many"), errno.NoSpace)
}

// churn makes one round of changes. Names are shared between calls, so most steps can fail; only bad failures matter.
func churn(d *files.Dir, call, round int) {
	name := func(i int) string { return fmt.Sprintf("f%d", (call+round+i)%12) }
	f, _, err := d.Open(name(0), guestfiles.OpenOptions{Read: true, Write: true, Create: true})
	if err == nil && f != nil {
		_, _ = f.WriteAt(make([]byte, 3000), int64(round%7)*1000)
		_ = f.SetSize(int64(round%5) * 1500)
		_ = d.Unlink(name(0))
		_, _ = f.Write(make([]byte, 500))
		_ = f.Close()
	}
	_ = write(d, name(1), "some text")
	_ = d.Rename(name(1), d, name(2))
	_ = d.Link(name(2), d, name(3), false)
	_ = d.Symlink("x", name(4))
	_ = d.Mkdir(name(5))
	_ = d.Rename(name(5), d, name(6))
	_ = d.RemoveDir(name(6))
	_ = d.Unlink(name(7))
}

// sizes adds up a directory; files with several names count once.
func sizes(t *testing.T, dir string) (bytes int64, entries int) {
	t.Helper()
	var seen []os.FileInfo
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range list {
		info := must(entry.Info())
		entries++
		if info.IsDir() {
			continue
		}
		known := false
		for _, s := range seen {
			known = known || os.SameFile(s, info)
		}
		if !known {
			bytes += info.Size()
			seen = append(seen, info)
		}
	}
	return bytes, entries
}

// Views of a few directories come and go at once: the trackers they share are made and dropped meanwhile, and so are
// the directories that values name.
func TestViewsComeAndGoAtOnce(t *testing.T) {
	w := newWorld(t)
	store := files.NewStore(nil)
	m := files.Mount{Guest: guestPath("/project"), Host: template(t, w.project+"/{id}/data"), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: 1000}}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for round := range 60 {
				values := map[string]string{"id": fmt.Sprintf("p%d", (worker+round)%3)}
				view, err := openIn(context.Background(), store, []files.Mount{m}, values, files.Limits{})
				if !assert.NoError(t, err) {
					return
				}
				d := view.Preopens()[1].Dir
				name := fmt.Sprintf("f%d", worker)
				assert.NoError(t, write(d, name, "0123456789"))
				text, err := read(d, name)
				assert.NoError(t, err)
				assert.Equal(t, "0123456789", text)
				if round%2 == 0 {
					assert.NoError(t, d.Unlink(name))
				}
				assert.NoError(t, view.Close())
			}
		})
	}
	group.Wait()
	assert.Zero(t, files.Trackers(store), "nothing is remembered of directories that no call holds")
}
