package files_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
)

// crowd fills a directory with names.
func crowd(t *testing.T, dir string, names int) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for i := range names {
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/f%05d", dir, i), nil, 0o600))
	}
}

// TestOperationsEndWithTheirContext: an operation that would wait for other calls, look at many names or move many
// bytes fails once the context has ended, and works with the next context.
func TestOperationsEndWithTheirContext(t *testing.T) {
	w := newWorld(t, "a.txt = hello", "many/")
	crowd(t, w.path("many"), testsize.Of(1000, 3000))
	for name, operation := range map[string]func(d *files.Dir, many *files.Dir, f *files.File) error{
		"a walk before a change": func(d, _ *files.Dir, _ *files.File) error {
			defer func() { _ = d.RemoveDir("made") }()
			return d.Mkdir("made")
		},
		"a listing": func(_, many *files.Dir, _ *files.File) error {
			_, err := many.ReadDir()
			return err
		},
		"an open": func(d, _ *files.Dir, _ *files.File) error {
			f, _, err := d.Open("a.txt", guestfiles.OpenOptions{Read: true})
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"a write": func(_, _ *files.Dir, f *files.File) error {
			_, err := f.WriteAt(make([]byte, 4<<20), 0)
			return err
		},
		"a change of size": func(_, _ *files.Dir, f *files.File) error { return f.SetSize(10) },
		"a file's sync":    func(_, _ *files.Dir, f *files.File) error { return f.Sync() },
		"a removal":        func(d, _ *files.Dir, _ *files.File) error { return errors.Join(d.Mkdir("x"), d.RemoveDir("x")) },
		"a change of times": func(d, _ *files.Dir, _ *files.File) error {
			return d.SetTimes("a.txt", true, nil, new(time.Unix(1, 0)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := w.open(manifests.AccessReadWrite)
			d := preopen(t, view, "/project")
			_, many, err := d.Open("many", guestfiles.OpenOptions{Read: true, Directory: true})
			require.NoError(t, err)
			f, _, err := d.Open("a.txt", guestfiles.OpenOptions{Read: true, Write: true})
			require.NoError(t, err)

			ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
			defer cancel()
			view.SetContext(ended)
			err = operation(d, many, f)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var own *files.Error
			require.ErrorAs(t, err, &own)

			view.SetContext(t.Context())
			assert.NoError(t, operation(d, many, f), "the control")
		})
	}
}

// ending is a context that ends once it was asked so many times whether it has.
type ending struct {
	context.Context
	after, looks int
}

func (e *ending) Err() error {
	if e.looks++; e.looks <= e.after {
		return nil
	}
	return context.DeadlineExceeded
}

// TestAttackLongLooks: a context that ends while nearly as many names are looked at as there may be ends that, wherever
// it has got to. The control: with a context that does not end, all are looked at, and the context before each.
func TestAttackLongLooks(t *testing.T) {
	names := testsize.Of(2500, 9990)
	w := newWorld(t, "many/")
	crowd(t, w.path("many"), names)
	for name, look := range map[string]func(d, many *files.Dir) error{
		"a listing": func(_, many *files.Dir) error {
			entries, err := many.ReadDir()
			if err == nil {
				assert.Len(t, entries, names)
			}
			return err
		},
		"a walk before a change": func(d, _ *files.Dir) error {
			if err := d.Mkdir("made"); err != nil {
				return err
			}
			return d.RemoveDir("made")
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func(after int) (*ending, error) {
				view := w.open(manifests.AccessReadWrite) // which has walked nothing yet
				d := preopen(t, view, "/project")
				_, many, err := d.Open("many", guestfiles.OpenOptions{Read: true, Directory: true})
				require.NoError(t, err)
				ctx := &ending{Context: t.Context(), after: after}
				view.SetContext(ctx)
				return ctx, look(d, many)
			}
			whole, err := begin(math.MaxInt)
			require.NoError(t, err, "the control")
			require.Greater(t, whole.looks, names)
			for _, part := range []int{1, 2, 3} { // of four
				ended, err := begin(whole.looks * part / 4)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Less(t, ended.looks-ended.after, 5, "it looked at more names")
			}
		})
	}
}

// TestWaitingForOthersEnds: a call that waits for another's change leaves at its deadline.
func TestWaitingForOthersEnds(t *testing.T) {
	w := newWorld(t, "a.txt = hello")
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	give := files.TakeTurn(view, "/project")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	view.SetContext(ctx)
	require.ErrorIs(t, d.Mkdir("made"), context.DeadlineExceeded)

	view.SetContext(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Mkdir("made") }()
	select {
	case <-done:
		assert.Fail(t, "the change did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	give()
	require.NoError(t, <-done)
}

// TestSyncsThatNobodyWaitsFor end a call in time, and are bounded.
func TestSyncsThatNobodyWaitsFor(t *testing.T) {
	view := newWorld(t).open(manifests.AccessReadWrite)
	disk := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	view.SetContext(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	require.ErrorIs(t, files.Sync(view, func() error { <-disk; return nil }), context.Canceled)

	begun := make(chan struct{}, 100)
	for range 15 { // with the first, as many as there may be
		ctx, cancel := context.WithCancel(t.Context())
		view.SetContext(ctx)
		require.ErrorIs(t, files.Sync(view, func() error {
			begun <- struct{}{}
			cancel()
			<-disk
			return nil
		}), context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	view.SetContext(ctx)
	require.ErrorIs(t, files.Sync(view, func() error { begun <- struct{}{}; return nil }), context.DeadlineExceeded)
	assert.Len(t, begun, 15, "one more did not begin")
	close(disk)
	view.SetContext(t.Context())
	require.NoError(t, files.Sync(view, func() error { return nil }))
}

// TestQuotaIsHeldWhileNamesGo: a directory that holds more than it may takes nothing in, until so
// much was taken away that it may.
func TestQuotaIsHeldWhileNamesGo(t *testing.T) {
	for _, names := range []int{10, 11, 19, 20, 21, 35, 45} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			w := newWorld(t)
			crowd(t, w.project, names)
			mount := w.mount(manifests.AccessReadWrite)
			mount.Quota.Files = 10
			d := preopen(t, openView(t, files.NewStore(nil), files.Limits{}, mount), "/project")
			for left := names; left >= 10; left-- {
				require.ErrorIs(t, d.Mkdir("made"), errno.NoSpace, "%d left", left)
				require.NoError(t, d.Unlink(fmt.Sprintf("f%05d", left-1)))
			}
			require.NoError(t, d.Mkdir("made"))
			require.ErrorIs(t, d.Mkdir("another"), errno.NoSpace)
		})
	}
}

// TestBytesAreHeldWhileFilesGo: the same for bytes, with a file that is larger than the quota.
func TestBytesAreHeldWhileFilesGo(t *testing.T) {
	w := newWorld(t)
	for i, size := range []int{5000, 10, 800, 300, 150, 40} {
		require.NoError(t, os.WriteFile(w.path(fmt.Sprint(i)), make([]byte, size), 0o600))
	}
	mount := w.mount(manifests.AccessReadWrite)
	mount.Quota.Bytes = 1000
	d := preopen(t, openView(t, files.NewStore(nil), files.Limits{}, mount), "/project")
	writes := func() error {
		f, _, err := d.Open("1", guestfiles.OpenOptions{Write: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		_, err = f.WriteAt(make([]byte, 20), 0)
		return err
	}
	require.ErrorIs(t, writes(), errno.NoSpace)
	for _, name := range []string{"5", "4", "0"} { // 1,110 are left
		require.NoError(t, d.Unlink(name))
		require.ErrorIs(t, writes(), errno.NoSpace)
	}
	require.NoError(t, d.Unlink("3"))
	require.NoError(t, writes())
}

// TestRemovalsDoNotWalkAgain: in a directory of far more names than it may hold, a change after
// each removal costs nothing like another look at all of them.
func TestRemovalsDoNotWalkAgain(t *testing.T) {
	names, removed := testsize.Of(10_500, 25_000), testsize.Of(40, 300)
	w := newWorld(t)
	crowd(t, w.project, names)
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	began := time.Now()
	require.ErrorIs(t, d.Mkdir("made"), errno.NoSpace)
	once := time.Since(began)
	began = time.Now()
	for i := range removed {
		require.NoError(t, d.Unlink(fmt.Sprintf("f%05d", i)))
		require.ErrorIs(t, d.Mkdir("made"), errno.NoSpace)
	}
	assert.Less(t, time.Since(began), time.Duration(removed/4)*once, "a walk takes %s", once)
}

// deepen makes directories, one in the other, and returns the deepest.
func deepen(t *testing.T, dir string, levels int) string {
	t.Helper()
	for range levels {
		dir += "/d"
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

// TestTreesThatAreTooDeep take nothing in; once they are less deep, whether names were taken away or
// moved, they do again, in the same call.
func TestTreesThatAreTooDeep(t *testing.T) {
	for name, mend := range map[string]func(t *testing.T, d *files.Dir){
		"a name is moved":      func(t *testing.T, d *files.Dir) { require.NoError(t, d.Rename("d/d/d", d, "top")) },
		"a name is taken away": func(t *testing.T, d *files.Dir) { require.NoError(t, d.RemoveDir(strings.Repeat("d/", 128)+"d")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			deepen(t, w.project, 129)
			d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
			require.ErrorIs(t, d.Mkdir("made"), errno.NoSpace)
			mend(t, d)
			require.NoError(t, d.Mkdir("made"))
		})
	}
}

// TestOrphansCountInFullTrees: an open file without a name counts, also after a new count of the names.
func TestOrphansCountInFullTrees(t *testing.T) {
	w := newWorld(t)
	deepen(t, w.project, 129)
	require.NoError(t, os.WriteFile(w.path("held"), make([]byte, 900), 0o600))
	mount := w.mount(manifests.AccessReadWrite)
	mount.Quota.Bytes = 1000
	d := preopen(t, openView(t, files.NewStore(nil), files.Limits{}, mount), "/project")
	held, _, err := d.Open("held", guestfiles.OpenOptions{Read: true, Write: true})
	require.NoError(t, err)
	require.NoError(t, d.Unlink("held"))
	require.NoError(t, d.RemoveDir(strings.Repeat("d/", 128)+"d"))
	write := func() error {
		f, _, err := d.Open("new", guestfiles.OpenOptions{Create: true, Write: true})
		if err != nil {
			return err
		}
		defer func() { require.NoError(t, f.Close()) }()
		_, err = f.Write(make([]byte, 500))
		return err
	}
	require.ErrorIs(t, write(), errno.NoSpace)
	require.NoError(t, held.Close())
	require.NoError(t, write())
}
