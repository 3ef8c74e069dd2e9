package files

import (
	"context"
	"errors"
	"os"
)

// directoryLock does nothing: Windows cannot lock directories.
type directoryLock struct{}

var errNoLock = errors.New("Windows cannot lock directories")

func (*directoryLock) acquire(context.Context, *os.Root) (changed bool, err error) { return false, nil }

func (*directoryLock) release() {}

func (*directoryLock) close() {}
