package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
)

// selfTested is a program that traps unless its memory, its global and the size of its memory have the values from
// before its first run:
//
//	(module
//	  (import "wasi_snapshot_preview1" "fd_read" (func (param i32 i32 i32 i32) (result i32)))
//	  (memory 1)
//	  (global (mut i32) (i32.const 0))
//	  (func (export "_start")
//	    (drop (call 0 (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
//	    (if (i32.or (i32.or (global.get 0) (i32.load (i32.const 8))) (i32.ne (memory.size) (i32.const 1)))
//	      (then unreachable))
//	    (global.set 0 (i32.const 1))
//	    (i32.store (i32.const 8) (i32.const 1))
//	    (drop (memory.grow (i32.const 1)))))
var selfTested = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0c\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00" +
	"\x02\x22\x01\x16wasi_snapshot_preview1\x07fd_read\x00\x00" +
	"\x03\x02\x01\x01" +
	"\x05\x03\x01\x00\x01" +
	"\x06\x06\x01\x7f\x01\x41\x00\x0b" +
	"\x07\x0a\x01\x06_start\x00\x01" +
	"\x0a\x31\x01\x2f\x00" +
	"\x41\x00\x41\x00\x41\x00\x41\x00\x10\x00\x1a" +
	"\x23\x00\x41\x08\x28\x02\x00\x72\x3f\x00\x41\x01\x47\x72\x04\x40\x00\x0b" +
	"\x41\x01\x24\x00" +
	"\x41\x08\x41\x01\x36\x02\x00" +
	"\x41\x01\x40\x00\x1a\x0b")

// selfTest checks, once per engine, the behavior that pooled and resumed instances rely on and that
// wazero does not promise: memory can shrink, globals can be reset, and a saved stack can be
// restored more than once.
func (e *Engine) selfTest(ctx context.Context) error {
	tried, err := open(ctx, Options{})
	if err != nil {
		return err
	}
	return errors.Join(tried.trySelf(ctx, func(*instance) {}), tried.Close(ctx))
}

// testLater runs the self-test concurrently with the first compilation, which waits for it.
func (e *Engine) testLater() {
	e.tested = make(chan struct{})
	e.inFlight.Add(1)
	go func() {
		defer e.inFlight.Done()
		defer close(e.tested)
		if err := e.selfTest(e.base); err != nil {
			e.distrust(err)
		}
	}()
}

// distrust makes every run use a new instance.
func (e *Engine) distrust(err error) {
	e.unreliable = "wazero does not behave as reused instances require"
	e.logger.WarnContext(e.base, "each run gets a new instance: "+e.unreliable, "err", err)
}

// offerRead defines the fd_read that the program imports.
func (e *Engine) offerRead(ctx context.Context) error {
	read := hostfuncs.Function{
		Module: "wasi_snapshot_preview1", Name: "fd_read",
		Params:  []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32, hostfuncs.I32, hostfuncs.I32},
		Results: []hostfuncs.ValueType{hostfuncs.I32},
		Call:    func(context.Context, hostfuncs.Memory, []uint64) error { return nil },
	}
	return e.offer(ctx, []hostfuncs.Function{read}, guestMemory)
}

// trySelf runs the program in an engine that offers no functions. It calls between for each
// instance before the instance is reused.
func (e *Engine) trySelf(ctx context.Context, between func(*instance)) error {
	if err := e.offerRead(ctx); err != nil {
		return err
	}
	module, err := e.Compile(ctx, selfTested)
	if err != nil {
		return err
	}
	run := Run{Function: "_start", MemoryLimit: 4 << 16}
	program, err := module.Start(ctx, Start{
		Context: func(ctx context.Context) context.Context { return ctx }, MemoryLimit: run.MemoryLimit, Timeout: time.Minute,
		Fuel: 1 << 20,
	})
	if err != nil {
		return err
	}
	keys := []poolKey{{module, uint64(run.MemoryLimit)}, program.key()}
	for n := range 3 {
		if _, err := module.Run(ctx, run); err != nil {
			return fmt.Errorf("run %d of a pooled instance: %w", n, err)
		}
		if _, err := program.Run(ctx, run); err != nil {
			return fmt.Errorf("run %d of a program: %w", n, err)
		}
		for _, key := range keys {
			i := e.idle.take(key)
			if i == nil {
				return fmt.Errorf("run %d: no instance was reset", n)
			}
			between(i)
			e.idle.put(key, i)
		}
	}
	return nil
}
