package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// privateDirectory creates a directory that only this user can use, or checks that an existing one
// is private. Anyone who can write to it can run native code as this user.
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

// ownPrivate checks that a file is a directory that only this user can use. The error text
// continues a sentence that starts with the path.
func ownPrivate(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	return hostfile.Private(info)
}

// Budget is the remaining fuel of the run that called a host function, for work done on its behalf.
// It must be used by one goroutine at a time, and only until the host function returns.
type Budget struct{ run *runContext }

// BudgetOf returns the budget of the run that called a host function with ctx. It unlocks the run
// from its thread, since work done on its behalf would not benefit from the lock.
func BudgetOf(ctx context.Context) Budget {
	run := runOf(ctx)
	run.memory.leaveThread()
	return Budget{run}
}

// Left returns the fuel that is left of the limit, or false if there is no limit.
func (b Budget) Left() (fuel int64, limited bool) {
	m := b.run.meter
	return m.left(int64(b.run.counter.Get())), m.limit > 0
}

// Charge deducts fuel from what is left. It does not count as fuel used by the run itself. If fuel
// is more than what is left, the run ends the next time it asks for more.
func (b Budget) Charge(fuel int64) {
	b.run.counter.Set(uint64(b.run.meter.charge(int64(b.run.counter.Get()), fuel)))
}
