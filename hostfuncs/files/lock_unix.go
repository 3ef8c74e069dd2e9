//go:build unix

package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// markName is the extended attribute of a directory that names the tracker that changed it last. Guests cannot reach
// extended attributes.
const markName = "user.caisson.changed"

// A process waits for the lock by retrying. The delay grows within these bounds.
const (
	shortestWait = 50 * time.Microsecond
	longestWait  = 5 * time.Millisecond
)

// directoryLock is a lock on a directory that all trackers of it share, in all processes. The system releases it when a
// process ends. The zero value is not locked. The caller must hold the tracker's turn.
type directoryLock struct {
	file        *os.File // the directory; nil until the first change
	descriptor  int
	mark        [16]byte // of this tracker, random
	unsupported bool     // the file system has no locks
}

// errNoLock means that the file system cannot lock a directory.
var errNoLock = errors.New("the file system cannot lock the directory")

// acquire locks the directory. It reports whether another tracker may have changed the directory since the last call
// of acquire. If the file system has no locks, the first call fails with errNoLock, and later calls do nothing.
func (l *directoryLock) acquire(ctx context.Context, root *os.Root) (changed bool, err error) {
	if l.unsupported {
		return false, nil
	}
	if l.file == nil {
		if err := l.open(root); err != nil {
			return false, err
		}
	}
	for wait := shortestWait; ; wait = min(2*wait, longestWait) {
		err := unix.Flock(l.descriptor, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return l.take(), nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			l.unsupported = true
			return false, fmt.Errorf("%w: %w", errNoLock, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (l *directoryLock) open(root *os.Root) (err error) {
	if l.file, err = root.Open("."); err != nil {
		return err
	}
	l.descriptor = int(l.file.Fd())
	_, err = rand.Read(l.mark[:])
	return err
}

// take puts the tracker's mark on the directory. It reports whether the mark was another one. Where directories cannot
// have marks, it always was. So it was in a directory with the sticky bit, where only its owner can replace a mark.
func (l *directoryLock) take() (changed bool) {
	var found [len(l.mark)]byte
	sticky := l.isSticky()
	n, err := unix.Fgetxattr(l.descriptor, markName, found[:])
	if err == nil && n == len(found) && found == l.mark && !sticky {
		return false
	}
	if sticky || unix.Fsetxattr(l.descriptor, markName, l.mark[:], 0) != nil {
		_ = unix.Fremovexattr(l.descriptor, markName) // which needs no room on the disk
	}
	return true
}

func (l *directoryLock) isSticky() bool {
	var stat unix.Stat_t
	err := unix.Fstat(l.descriptor, &stat)
	return err != nil || stat.Mode&unix.S_ISVTX != 0
}

func (l *directoryLock) release() {
	if l.file != nil && !l.unsupported {
		_ = unix.Flock(l.descriptor, unix.LOCK_UN) // it fails only for a file that is not open
	}
}

func (l *directoryLock) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written
	}
}
