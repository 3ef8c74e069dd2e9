package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// privateDirectory creates a directory that only this user can use, or checks that an existing
// one is: whoever can write to it can run native code as this user.
func privateDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := ownPrivate(info); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// ownPrivate checks that something is a directory of this user and nobody else's. The error goes
// on a sentence about it.
func ownPrivate(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	return hostfile.Private(info)
}

// Budget is the fuel of the run that called a host function, for others that work on its
// behalf. It is for one goroutine at a time, until the host function returns.
type Budget struct{ run *runContext }

// BudgetOf returns the budget of the run in whose context a host function was called. It ends
// what binds the run to its thread: others that work on its behalf would gain nothing by it.
func BudgetOf(ctx context.Context) Budget {
	run := runOf(ctx)
	run.memory.leaveThread()
	return Budget{run}
}

// Left returns how much of the limit neither the run nor others for it have used, or false if
// there is no limit.
func (b Budget) Left() (fuel int64, limited bool) {
	m := b.run.meter
	return m.left(int64(b.run.counter.Get())), m.limit > 0
}

// Charge takes fuel that others used off the limit. It does not count as what the run itself
// used. If it is more than was left, the run ends as soon as it asks for more.
func (b Budget) Charge(fuel int64) {
	b.run.counter.Set(uint64(b.run.meter.charge(int64(b.run.counter.Get()), fuel)))
}
