package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

const (
	memoryCallers = 16 // that hold an instance at the same time
	memoryCalls   = 4  // of each caller
)

// resident returns the resident size of this process in bytes, without garbage. The error wraps
// fs.ErrNotExist if the system does not report it.
func resident() (int64, error) {
	goruntime.GC() // runs finalizers and cleanups, which create more garbage
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("benchmark: memory: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("benchmark: memory: /proc/self/statm says %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("benchmark: memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// growth returns by how many bytes the resident size grows when hold runs, then releases what hold
// returned. A negative difference is noise and counts as zero.
func growth(hold func() (release func() error, err error)) (bytes int64, err error) {
	before, err := resident()
	if err != nil {
		return 0, err
	}
	release, err := hold()
	if err != nil {
		return 0, err
	}
	after, err := resident()
	return max(after-before, 0), errors.Join(err, release())
}

// instanceMemory measures how much memory each of several callers keeps.
func instanceMemory(ctx context.Context, s session, in input) (int64, error) {
	hold := func() (func() error, error) { return holdCallers(ctx, s, in) }
	if plain, ok := s.(*wazeroSession); ok {
		hold = func() (func() error, error) { return holdWaiting(ctx, plain) }
	}
	total, err := growth(hold)
	return total / memoryCallers, err
}

// holdCallers runs callers concurrently and keeps them open.
func holdCallers(ctx context.Context, s session, in input) (func() error, error) {
	var callers []caller
	release := func() error { return closeAll(ctx, callers) }
	for range memoryCallers {
		c, err := s.caller(ctx)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		callers = append(callers, c)
	}
	err := together(callers, func(c caller) error {
		for range memoryCalls {
			if _, err := c.call(ctx, in); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// holdWaiting starts commands and keeps them waiting for their input.
func holdWaiting(ctx context.Context, s *wazeroSession) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	arrived := make(chan error, memoryCallers)
	for range memoryCallers {
		done.Go(func() {
			stdin := &waiting{arrived: arrived, end: ctx.Done()}
			_, err := s.run(ctx, stdin)
			// It fails because there is no input, as it should, unless it never reads any.
			stdin.once.Do(func() { arrived <- fmt.Errorf("benchmark: wazero: the tool reads no input: %w", err) })
		})
	}
	release := func() error {
		cancel()
		done.Wait()
		return nil
	}
	for range memoryCallers {
		select {
		case err := <-arrived:
			if err != nil {
				return nil, errors.Join(err, release())
			}
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), release())
		}
	}
	return release, nil
}

// waiting is an input that reports the first read and never provides data.
type waiting struct {
	arrived chan<- error
	end     <-chan struct{}
	once    sync.Once
}

func (w *waiting) Read([]byte) (int, error) {
	w.once.Do(func() { w.arrived <- nil })
	<-w.end
	return 0, io.EOF
}
