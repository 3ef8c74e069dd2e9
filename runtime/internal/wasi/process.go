package wasi

import (
	"context"
	"io"
)

var processFunctions = []function{
	{"args_get", "ii", func(c *call) (Errno, error) { return c.strings(c.system.Args), nil }},
	{"args_sizes_get", "ii", func(c *call) (Errno, error) { return c.stringSizes(c.system.Args), nil }},
	{"environ_get", "ii", func(c *call) (Errno, error) { return c.strings(c.system.Environment), nil }},
	{"environ_sizes_get", "ii", func(c *call) (Errno, error) { return c.stringSizes(c.system.Environment), nil }},
	{"proc_exit", "i", func(c *call) (Errno, error) { return Success, &ExitError{Code: c.u32(0)} }},
	{"proc_raise", "i", raise},
	{"sched_yield", "", func(c *call) (Errno, error) { return Success, context.Cause(c.ctx) }},
	{"random_get", "ii", random},
}

// strings writes NUL-terminated strings to the buffer at parameter 1, and their pointers to the
// array at parameter 0.
func (c *call) strings(values []string) Errno {
	array, next := c.u32(0), c.u32(1)
	for _, value := range values {
		if errno := c.putU32(array, next); errno != Success {
			return errno
		}
		bytes, ok := c.memory.View(next, uint32(len(value))+1)
		if !ok {
			return EFAULT
		}
		copy(bytes, value)
		bytes[len(value)] = 0
		array += 4
		next += uint32(len(value)) + 1
	}
	return Success
}

func (c *call) stringSizes(values []string) Errno {
	size := 0
	for _, value := range values {
		size += len(value) + 1
	}
	if errno := c.putU32(c.u32(0), uint32(len(values))); errno != Success {
		return errno
	}
	return c.putU32(c.u32(1), uint32(size))
}

// raise ends the guest as an unhandled signal ends a process: with exit code 128 plus the signal's
// number. Signal 0 does nothing.
func raise(c *call) (Errno, error) {
	signal := c.u32(0)
	switch {
	case signal == 0:
		return Success, nil
	case signal > 30: // the last is SIGSYS
		return EINVAL, nil
	}
	return Success, &ExitError{Code: 128 + signal}
}

// random fills the buffer in pieces and checks the deadline before each.
func random(c *call) (Errno, error) {
	const piece = 1 << 20
	buffer, ok := c.memory.View(c.u32(0), c.u32(1))
	if !ok {
		return EFAULT, nil
	}
	if c.system.Random == nil {
		return EIO, nil
	}
	for len(buffer) > 0 {
		if err := context.Cause(c.ctx); err != nil {
			return Success, err
		}
		n := min(piece, len(buffer))
		if _, err := io.ReadFull(c.system.Random, buffer[:n]); err != nil {
			return EIO, nil
		}
		buffer = buffer[n:]
	}
	return Success, nil
}
