package wasi

import (
	"context"
	"io"
)

var processFunctions = []function{
	{"args_get", "ii", func(c *call) error { return c.strings(c.system.Args) }},
	{"args_sizes_get", "ii", func(c *call) error { return c.stringSizes(c.system.Args) }},
	{"environ_get", "ii", func(c *call) error { return c.strings(c.system.Environment) }},
	{"environ_sizes_get", "ii", func(c *call) error { return c.stringSizes(c.system.Environment) }},
	{"proc_exit", "i", func(c *call) error { return &ExitError{Code: c.u32(0)} }},
	{"proc_raise", "i", raise},
	{"sched_yield", "", func(c *call) error { return context.Cause(c.ctx) }},
	{"random_get", "ii", random},
}

// strings writes NUL-terminated strings to the buffer at parameter 1, and their pointers to the
// array at parameter 0.
func (c *call) strings(values []string) error {
	array, next := c.u32(0), c.u32(1)
	for _, value := range values {
		if err := c.putU32(array, next); err != nil {
			return err
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
	return nil
}

func (c *call) stringSizes(values []string) error {
	size := 0
	for _, value := range values {
		size += len(value) + 1
	}
	if err := c.putU32(c.u32(0), uint32(len(values))); err != nil {
		return err
	}
	return c.putU32(c.u32(1), uint32(size))
}

// raise ends the guest as an unhandled signal ends a process: with exit code 128 plus the signal's
// number. Signal 0 does nothing.
func raise(c *call) error {
	signal := c.u32(0)
	switch {
	case signal == 0:
		return nil
	case signal > 30: // the last is SIGSYS
		return EINVAL
	}
	return &ExitError{Code: 128 + signal}
}

// random fills the buffer in pieces and checks the deadline before each.
func random(c *call) error {
	const piece = 1 << 20
	buffer, ok := c.memory.View(c.u32(0), c.u32(1))
	if !ok {
		return EFAULT
	}
	if c.system.Random == nil {
		return EIO
	}
	for len(buffer) > 0 {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		n := min(piece, len(buffer))
		if _, err := io.ReadFull(c.system.Random, buffer[:n]); err != nil {
			return EIO
		}
		buffer = buffer[n:]
	}
	return nil
}
