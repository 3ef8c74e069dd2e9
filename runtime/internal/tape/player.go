package tape

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// errDamaged means that the steps are not what a [Recorder] makes.
var errDamaged = errors.New("its recorded inputs are damaged")

// Player replays one run: it answers the calls of host functions from a record, and calls none. It is used by the
// goroutine of the run.
type Player struct {
	// Outputs are the guest's, as the [Recorder] numbers them.
	Outputs []io.Writer
	// Charge charges fuel to the run that calls a host function with ctx.
	Charge func(ctx context.Context, fuel int64)

	log   []byte // from the next step on
	blobs [][]byte
	names []string
	step  int
	ended error // the first failure, with which all further calls end

	within bool // a call of a host function
	digest hash.Hash
}

// NewPlayer returns a player of the steps that a recorder has returned.
func NewPlayer(log []byte) (*Player, error) {
	p := &Player{log: log, digest: sha256.New()}
	if len(log) == 0 { // the guest called nothing
		return p, nil
	}
	blobs, err := p.bytes()
	if err != nil {
		return nil, err
	}
	rest := p.log
	for p.log = blobs; len(p.log) > 0; {
		blob, err := p.bytes()
		if err != nil {
			return nil, err
		}
		p.blobs = append(p.blobs, blob)
	}
	p.log = rest
	return p, nil
}

// Close returns a [*replay.Divergence] if the run has not made all calls that the record has, or the error with which
// the player has ended the run, or nil.
func (p *Player) Close() error {
	if p.ended != nil || len(p.log) == 0 {
		return p.ended
	}
	p.step++
	name, parameters, err := p.call()
	if err == nil {
		err = &replay.Divergence{Step: p.step, Recorded: shown(name, parameters)}
	}
	p.ended = err
	return err
}

// Charged implements [engine.Tape].
func (p *Player) Charged(int64) {}

// Call implements [engine.Tape].
func (p *Player) Call(ctx context.Context, f *hostfuncs.Function, memory hostfuncs.Memory, stack []uint64) error {
	if p.within { // the kernel calls a function for the host
		return f.Call(ctx, memory, stack)
	}
	if p.ended != nil {
		return p.ended
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	p.within = true
	defer func() { p.within = false }()
	err := p.answer(ctx, f, memory, stack)
	if _, differs := errors.AsType[*replay.Divergence](err); differs || errors.Is(err, errDamaged) {
		p.ended = err
	}
	return err
}

// answer answers the next call.
func (p *Player) answer(ctx context.Context, f *hostfuncs.Function, memory hostfuncs.Memory, stack []uint64) error {
	p.step++
	p.digest.Reset()
	called := shown(f.Module+"."+f.Name, parametersOf(f, stack))
	if len(p.log) == 0 {
		return &replay.Divergence{Step: p.step, Called: called}
	}
	name, parameters, err := p.call()
	if err != nil {
		return err
	}
	differs := func(what string) error {
		return &replay.Divergence{Step: p.step, Called: called, Recorded: shown(name, parameters), What: what}
	}
	if recorded := shown(name, parameters); name != f.Module+"."+f.Name || recorded != called {
		return differs("")
	}
	var tooLong error // the first error of an output
	for {
		op, err := p.number()
		if err != nil {
			return err
		}
		if op >= opReturn {
			digest, err := p.number()
			if err != nil {
				return err
			}
			if uint32(digest) != binary.LittleEndian.Uint32(p.digest.Sum(nil)[:digestBytes]) {
				return differs("with other bytes in its memory")
			}
			return p.end(f, op, tooLong, stack)
		}
		err = p.do(ctx, op, memory)
		if _, long := errors.AsType[*wasi.OutputError](err); long {
			tooLong, err = err, nil
		}
		if errors.Is(err, errOutside) {
			return differs("with other bytes in its memory")
		}
		if err != nil {
			return err
		}
	}
}

// call reads the name of the next function, and its parameters.
func (p *Player) call() (name string, parameters []uint64, err error) {
	if name, err = p.name(); err != nil {
		return "", nil, err
	}
	parameters, err = p.numbers()
	return name, parameters, err
}

// shown returns a call as people read it.
func shown(name string, parameters []uint64) string {
	words := make([]string, len(parameters))
	for n, value := range parameters {
		words[n] = fmt.Sprint(value)
	}
	return strings.TrimPrefix(name, wasi.ModuleName+".") + "(" + strings.Join(words, ", ") + ")"
}

// errOutside means that an operation is about bytes that the guest's memory does not have.
var errOutside = errors.New("outside the memory")

// do does what the host did in one operation.
func (p *Player) do(ctx context.Context, op uint64, memory hostfuncs.Memory) error {
	switch op {
	case opView:
		bytes, err := p.place(memory)
		if err != nil {
			return err
		}
		p.digest.Write(bytes)
		return nil
	case opWrite:
		offset, err := p.number()
		if err != nil {
			return err
		}
		data, err := p.data()
		if err != nil {
			return err
		}
		bytes, ok := viewOf(memory, offset, uint64(len(data)))
		if !ok {
			return errOutside
		}
		copy(bytes, data)
		return nil
	case opKernel:
		name, parameters, err := p.call()
		if err != nil {
			return err
		}
		kernel, ok := memory.(engine.KernelMemory)
		if !ok {
			return errDamaged
		}
		_, err = kernel.Call(ctx, name, parameters...)
		return err
	case opOutput, opText:
		number, err := p.number()
		if err != nil || number >= uint64(len(p.Outputs)) {
			return errors.Join(errDamaged, err)
		}
		var bytes []byte
		if op == opText {
			bytes, err = p.data()
		} else {
			bytes, err = p.place(memory)
		}
		if err == nil {
			_, err = p.Outputs[number].Write(bytes)
		}
		return err
	case opCharge:
		fuel, err := p.number()
		if err != nil || int64(fuel) < 0 {
			return errors.Join(errDamaged, err)
		}
		p.Charge(ctx, int64(fuel))
		return nil
	}
	return errDamaged
}

// end ends the step as the host function did.
func (p *Player) end(f *hostfuncs.Function, op uint64, tooLong error, stack []uint64) error {
	switch op {
	case opReturn:
		results, err := p.numbers()
		if err != nil || len(results) != len(f.Results) {
			return errors.Join(errDamaged, err)
		}
		copy(stack, results)
		return tooLong
	case opExit:
		code, err := p.number()
		if err != nil {
			return err
		}
		return &wasi.ExitError{Code: uint32(code)}
	case opTooLong:
		if tooLong == nil {
			return errDamaged
		}
		return tooLong
	case opPlugin:
		text, err := p.data()
		if err != nil {
			return err
		}
		var ended extism.Error
		if err := json.Unmarshal(text, &ended); err != nil {
			return errors.Join(errDamaged, err)
		}
		return &ended
	}
	return errDamaged
}

// place reads the place of bytes in memory and returns them.
func (p *Player) place(memory hostfuncs.Memory) ([]byte, error) {
	offset, err := p.number()
	if err != nil {
		return nil, err
	}
	length, err := p.number()
	if err != nil {
		return nil, err
	}
	bytes, ok := viewOf(memory, offset, length)
	if !ok {
		return nil, errOutside
	}
	return bytes, nil
}

func viewOf(memory hostfuncs.Memory, offset, length uint64) ([]byte, bool) {
	if offset != uint64(uint32(offset)) || length != uint64(uint32(length)) {
		return nil, false
	}
	return memory.View(uint32(offset), uint32(length))
}

func (p *Player) name() (string, error) {
	number, err := p.number()
	switch {
	case err != nil || number > uint64(len(p.names)):
		return "", errors.Join(errDamaged, err)
	case number < uint64(len(p.names)):
		return p.names[number], nil
	}
	name, err := p.data()
	if err == nil {
		p.names = append(p.names, string(name))
	}
	return string(name), err
}

// data reads bytes or the number of kept ones.
func (p *Player) data() ([]byte, error) {
	number, err := p.number()
	switch {
	case err != nil:
		return nil, err
	case number < minBlob:
		return p.take(number)
	case number-minBlob < uint64(len(p.blobs)):
		return p.blobs[number-minBlob], nil
	}
	return nil, errDamaged
}

// bytes reads a number and as many bytes.
func (p *Player) bytes() ([]byte, error) {
	length, err := p.number()
	if err != nil {
		return nil, err
	}
	return p.take(length)
}

func (p *Player) take(length uint64) ([]byte, error) {
	if length > uint64(len(p.log)) {
		return nil, errDamaged
	}
	taken := p.log[:length]
	p.log = p.log[length:]
	return taken, nil
}

// numbers reads a number and as many numbers.
func (p *Player) numbers() ([]uint64, error) {
	count, err := p.number()
	if err != nil || count > uint64(len(p.log)) {
		return nil, errors.Join(errDamaged, err)
	}
	numbers := make([]uint64, count)
	for n := range numbers {
		if numbers[n], err = p.number(); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

func (p *Player) number() (uint64, error) {
	number, length := binary.Uvarint(p.log)
	if length <= 0 {
		return 0, errDamaged
	}
	p.log = p.log[length:]
	return number, nil
}
