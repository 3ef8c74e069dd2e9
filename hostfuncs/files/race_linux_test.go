package files_test

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// exchange swaps two names, atomically and as often as it can, until the returned function is called.
func exchange(t *testing.T, w *world, one, two string) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !stopped.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, w.path(one), unix.AT_FDCWD, w.path(two), unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		stopped.Store(true)
		require.NoError(t, <-done)
	}
}

// unblocked fails the test where a function does not return in time.
func unblocked(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		require.Fail(t, "blocked on a pipe")
	}
}

// What another program swaps with a pipe, between the check and the open, must not block the call.
func TestSwappedPipeDoesNotBlock(t *testing.T) {
	for name, o := range map[string]guestfiles.OpenOptions{
		"directory": {Directory: true}, "file": {Read: true}, "file to write": {Write: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "dir/", "file = text")
			require.NoError(t, syscall.Mkfifo(w.path("pipe"), 0o600))
			place := "file"
			if o.Directory {
				place = "dir"
			}
			d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
			stop := exchange(t, w, place, "pipe")
			opened := 0
			unblocked(t, func() {
				during(500*time.Millisecond, func() bool {
					f, dir, err := d.Open(place, o)
					switch {
					case err != nil:
						return false
					case f != nil:
						err = f.Close()
					default:
						err = dir.Close()
					}
					opened++
					return !assert.NoError(t, err)
				})
			})
			stop()
			assert.NotZero(t, opened, "it must have been opened at times")
		})
	}
}

// The control: a check before a plain open loses the race, and hangs.
func TestSwappedPipeDoesNotBlockControl(t *testing.T) {
	w := newWorld(t, "file = text")
	require.NoError(t, syscall.Mkfifo(w.path("pipe"), 0o600))
	stop := exchange(t, w, "file", "pipe")
	var tries atomic.Int64
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			tries.Add(1)
			if info, err := os.Lstat(w.path("file")); err != nil || !info.Mode().IsRegular() {
				continue
			}
			if f, err := os.Open(w.path("file")); err == nil {
				_ = f.Close()
			}
		}
	}()
	hung := during(10*time.Second, func() bool {
		before := tries.Load()
		time.Sleep(100 * time.Millisecond)
		return before == tries.Load()
	})
	over.Store(true)
	stop()
	assert.True(t, hung, "the open must hang sooner or later")
	for _, name := range []string{"file", "pipe"} { // whichever is the pipe now: a writer lets the open return
		f := must(os.OpenFile(w.path(name), os.O_RDWR, 0))
		defer f.Close()
	}
	<-done
}

// A file that is swapped with a link, between the check and the open, must not be
// followed by an open that follows no links.
func TestSwappedLinkIsNotFollowed(t *testing.T) {
	w := newWorld(t, "file = text", "other = another", "link => other")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	stop := exchange(t, w, "file", "link")
	opened := 0
	during(500*time.Millisecond, func() bool {
		text, err := readNoFollow(d, "file")
		if err != nil {
			return false
		}
		opened++
		return !assert.Equal(t, "text", text)
	})
	stop()
	assert.NotZero(t, opened, "it must have been opened at times")
}

func TestSwappedLinkIsNotFollowedControl(t *testing.T) {
	w := newWorld(t, "file = text", "other = another", "link => other")
	stop := exchange(t, w, "file", "link")
	defer stop()
	followed := during(10*time.Second, func() bool {
		if info, err := os.Lstat(w.path("file")); err != nil || !info.Mode().IsRegular() {
			return false
		}
		text, err := os.ReadFile(w.path("file"))
		return err == nil && string(text) == "another"
	})
	assert.True(t, followed, "a check before a plain open must lose the race")
}

func readNoFollow(d *files.Dir, name string) (string, error) {
	f, _, err := d.Open(name, guestfiles.OpenOptions{Read: true, NoFollow: true})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}
