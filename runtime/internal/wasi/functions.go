package wasi

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/runtime/internal/inside"
)

// maxPath is the maximum length of a path in bytes, as on most systems.
const maxPath = 4096

type call struct {
	ctx    context.Context
	system *System
	memory hostfuncs.Memory
	stack  []uint64
	draft  bool // the guest uses the layouts of preview 0
}

// handler runs a function. The guest gets an [Errno]; any other error ends the guest.
type handler func(c *call) error

// onDescriptor returns a handler for a function about the descriptor that is parameter 0.
func onDescriptor(do func(c *call, d *descriptor) error) handler {
	return func(c *call) error {
		d, err := c.system.descriptor(c.u32(0))
		if err != nil {
			return err
		}
		return do(c, d)
	}
}

// onFile returns a handler for a function about the file whose descriptor is parameter 0.
func onFile(do func(c *call, file *files.File) error) handler {
	return func(c *call) error {
		file, err := c.system.file(c.u32(0))
		if err != nil {
			return err
		}
		return do(c, file)
	}
}

// function describes one function. In params, i means i32 and I means i64.
type function struct {
	name   string
	params string
	run    handler
}

// Functions returns all host functions of WASI preview 1, WasmEdge's sockets, and the functions of preview 0.
func Functions() []hostfuncs.Function {
	tables := [][]function{processFunctions, clockFunctions, descriptorFunctions, readWriteFunctions, pathFunctions,
		socketFunctions}
	var functions []hostfuncs.Function
	for _, table := range tables {
		for _, f := range table {
			functions = append(functions, f.hostFunction(ModuleName))
			if f.name != "sock_accept" { // which is new in preview 1
				functions = append(functions, f.hostFunction(draftName))
			}
		}
	}
	for _, f := range wasmEdgeFunctions {
		functions = append(functions, f.hostFunction(ModuleName))
	}
	return functions
}

func (f function) hostFunction(module string) hostfuncs.Function {
	params := make([]hostfuncs.ValueType, len(f.params))
	for i, letter := range f.params {
		params[i] = hostfuncs.I32
		if letter == 'I' {
			params[i] = hostfuncs.I64
		}
	}
	long := takesLong(f.name)
	result := []hostfuncs.ValueType{hostfuncs.I32}
	if f.name == "proc_exit" {
		result = nil
	}
	return hostfuncs.Function{
		Module: module, Name: f.name, Params: params, Results: result,
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			system, ok := inside.Of[System](ctx)
			if !ok {
				return errNoSystem
			}
			if system.Starting && neverAtStart[f.name] {
				return &StartError{Function: f.name}
			}
			if long && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			system.call = call{ctx, system, memory, stack, module == draftName}
			err := f.run(&system.call)
			errno, isErrno := err.(Errno)
			if err != nil && !isErrno {
				return err
			}
			if system.Starting {
				if err := system.startError(f.name); err != nil {
					return err
				}
			}
			if errno != Success && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if result != nil {
				stack[0] = uint64(errno)
			}
			return nil
		},
	}
}

// takesLong reports whether a function does work on host files that takes much longer than checking
// the deadline. Such functions check it at each call, since a slice of fuel pays for thousands of
// calls. Functions that move bytes check it themselves.
func takesLong(name string) bool {
	return strings.HasPrefix(name, "path_") || slices.Contains([]string{
		"fd_allocate", "fd_close", "fd_datasync", "fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times",
		"fd_readdir", "fd_renumber", "fd_sync",
	}, name)
}

func (c *call) u32(i int) uint32 { return uint32(c.stack[i]) }
func (c *call) u64(i int) uint64 { return c.stack[i] }

// path reads the path whose pointer and length are parameters i and i+1.
func (c *call) path(i int) (string, error) {
	if c.u32(i+1) > maxPath {
		return "", ENAMETOOLONG
	}
	bytes, ok := c.memory.View(c.u32(i), c.u32(i+1))
	if !ok {
		return "", EFAULT
	}
	if !utf8.Valid(bytes) {
		return "", EILSEQ
	}
	return string(bytes), nil
}

func (c *call) putU32(pointer, value uint32) error {
	bytes, ok := c.memory.View(pointer, 4)
	if !ok {
		return EFAULT
	}
	binary.LittleEndian.PutUint32(bytes, value)
	return nil
}

func (c *call) putU64(pointer uint32, value uint64) error {
	bytes, ok := c.memory.View(pointer, 8)
	if !ok {
		return EFAULT
	}
	binary.LittleEndian.PutUint64(bytes, value)
	return nil
}

// maxPiece is the number of bytes that are moved between checks of the deadline. Each buffer counts as bufferCost in
// addition to its bytes, and each access to a file as maxPiece.
const (
	maxPiece   = 1 << 20
	bufferCost = 1 << 10
)

// checkDeadline adds to the work done since the last check of the deadline. Once that reaches maxPiece, it
// checks the deadline and fails if it has passed. Most guests read and write only a few lines,
// which costs less than a check.
func (c *call) checkDeadline(work int) error {
	c.system.done += work
	if c.system.done < maxPiece {
		return nil
	}
	c.system.done = 0
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return nil
}

// vectors calls do for each piece of the buffers in the iovec array whose pointer and length are
// parameters 1 and 2, until do moves less than the whole piece. It returns how many bytes were
// moved.
//
// It checks the deadline, because many buffers may alias the same memory, and an array of a million
// empty buffers takes little memory.
func (c *call) vectors(isFile bool, do func(piece []byte) (n int, err error)) (total uint32, err error) {
	pointer, count := c.u32(1), c.u32(2)
	if uint64(count)*8 > math.MaxUint32 {
		return 0, EFAULT
	}
	array, ok := c.memory.View(pointer, count*8)
	if !ok {
		return 0, EFAULT
	}
	for i := range int(count) {
		if err := c.checkDeadline(bufferCost); err != nil {
			return total, err
		}
		offset := binary.LittleEndian.Uint32(array[i*8:])
		length := binary.LittleEndian.Uint32(array[i*8+4:])
		buffer, ok := c.memory.View(offset, length)
		if !ok {
			return total, EFAULT
		}
		if uint64(total)+uint64(length) > math.MaxUint32 {
			return total, EINVAL
		}
		for len(buffer) > 0 {
			piece := buffer[:min(len(buffer), maxPiece)]
			work := len(piece)
			if isFile {
				work = maxPiece
			}
			if err := c.checkDeadline(work); err != nil {
				return total, err
			}
			n, err := do(piece)
			total += uint32(n)
			if err != nil || n < len(piece) {
				return total, err
			}
			buffer = buffer[n:]
		}
	}
	return total, nil
}
