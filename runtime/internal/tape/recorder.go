// Package tape records what the host functions of a run do to its guest, and replays it without them. Both are an
// [engine.Tape].
//
// A step is one call of a host function: its name and parameters, a digest of all memory that the host looked at, and
// what the host did, in order: the bytes that it changed, the calls of the guest's kernel, the bytes that it passed to
// the guest's outputs (as places in memory), the fuel that it charged, and what it returned. Since WebAssembly is
// deterministic, a guest whose memory gets the same changes does the same.
package tape

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// The operations of a step, in the log. The last ones end it.
const (
	opView    = 1 + iota // offset, length: the host looks at memory
	opWrite              // offset, data: it has changed memory
	opKernel             // name, parameters: it calls the kernel
	opOutput             // number, offset, length: it passes memory to an output
	opText               // number, data: it passes its own text to an output
	opCharge             // fuel
	opReturn             // digest, results
	opExit               // digest, code: the guest has ended itself
	opTooLong            // digest: an output was too long
	opPlugin             // digest, JSON: an [extism.Error] ended the plug-in
)

// Bounds of what one step can have the host copy and compare.
const (
	maxViews  = 4096
	maxViewed = 32 << 20
)

// minBlob is the least number of bytes that are kept once for all places where the guest got them.
const minBlob = 32

// digestBytes is the length of the kept part of a digest. It detects mistakes; a collision gains an attacker nothing.
const digestBytes = 4

// Recorder records one run. It is used by the goroutine of the run.
type Recorder struct {
	// Mask masks secrets in what ends a plug-in.
	Mask func([]byte) []byte

	log   []byte
	names map[string]uint64
	blobs []byte
	known map[[sha256.Size]byte]uint64 // the numbers of blobs
	steps int
	why   string // the run cannot be replayed; empty if it can

	within bool // a call of a host function
	digest hash.Hash
	views  []view
	viewed int
}

// view is memory that the host has looked at during the step.
type view struct {
	offset uint32
	bytes  []byte
	before []byte // as far as the log knows
}

// NewRecorder returns an empty recorder.
func NewRecorder(mask func([]byte) []byte) *Recorder {
	return &Recorder{Mask: mask, names: map[string]uint64{}, known: map[[sha256.Size]byte]uint64{}, digest: sha256.New()}
}

// Result returns the steps, how many they are, and why the run cannot be replayed, or "" if it can.
func (r *Recorder) Result() (log []byte, steps int, why string) {
	if r.why != "" {
		return nil, r.steps, r.why
	}
	log = binary.AppendUvarint(nil, uint64(len(r.blobs)))
	return append(append(log, r.blobs...), r.log...), r.steps, ""
}

// Call implements [engine.Tape].
func (r *Recorder) Call(ctx context.Context, f *hostfuncs.Function, memory hostfuncs.Memory, stack []uint64) error {
	if r.why != "" || r.within { // the kernel calls a function for the host
		return f.Call(ctx, memory, stack)
	}
	r.begin(f, stack)
	err := f.Call(ctx, r.observed(memory), stack)
	r.flush()
	r.end(f, stack, err)
	r.views, r.within = r.views[:0], false
	return err
}

// Charged implements [engine.Tape].
func (r *Recorder) Charged(fuel int64) { r.put(opCharge, uint64(fuel)) }

// observed returns the memory of a host function, whose use the recorder learns.
func (r *Recorder) observed(memory hostfuncs.Memory) hostfuncs.Memory {
	if kernel, ok := memory.(engine.KernelMemory); ok {
		return kernel.Observed(r)
	}
	return observedMemory{memory, r}
}

type observedMemory struct {
	hostfuncs.Memory
	by engine.MemoryObserver
}

// View implements [hostfuncs.Memory].
func (m observedMemory) View(offset, length uint32) ([]byte, bool) {
	bytes, ok := m.Memory.View(offset, length)
	if ok {
		m.by.Viewed(offset, bytes)
	}
	return bytes, ok
}

func (r *Recorder) begin(f *hostfuncs.Function, stack []uint64) {
	r.within = true
	r.steps++
	r.viewed = 0
	r.digest.Reset()
	r.name(f.Module + "." + f.Name)
	r.numbers(parametersOf(f, stack))
}

// parametersOf returns the parameters of a function, without the bits that have no meaning.
func parametersOf(f *hostfuncs.Function, stack []uint64) []uint64 { return numbersOf(f.Params, stack) }

func numbersOf(types []hostfuncs.ValueType, stack []uint64) []uint64 {
	numbers := make([]uint64, len(types))
	for n, t := range types {
		numbers[n] = stack[n]
		if t == hostfuncs.I32 || t == hostfuncs.F32 {
			numbers[n] = uint64(uint32(stack[n]))
		}
	}
	return numbers
}

// end records how the function ended.
func (r *Recorder) end(f *hostfuncs.Function, stack []uint64, err error) {
	digest := binary.LittleEndian.Uint32(r.digest.Sum(nil)[:digestBytes])
	var exit *wasi.ExitError
	var long *wasi.OutputError
	var plugin *extism.Error
	switch {
	case err == nil:
		r.put(opReturn, uint64(digest))
		r.numbers(numbersOf(f.Results, stack))
	case errors.As(err, &exit):
		r.put(opExit, uint64(digest), uint64(exit.Code))
	case errors.As(err, &long):
		r.put(opTooLong, uint64(digest))
	case errors.As(err, &plugin):
		masked := *plugin
		masked.Message = r.masked(masked.Message)
		if plugin.Denial != nil {
			denial := *plugin.Denial
			denial.Value, denial.Rule = r.masked(denial.Value), r.masked(denial.Rule)
			masked.Denial = &denial
		}
		text, encodeErr := json.Marshal(masked)
		if encodeErr != nil {
			r.fail("the error with which %s ended it cannot be kept", f.Name)
		}
		r.put(opPlugin, uint64(digest))
		r.data(text)
	default:
		r.fail("the host ended it in %s, which a replay does not repeat", f.Name)
	}
}

func (r *Recorder) masked(text string) string { return string(r.Mask([]byte(text))) }

// Viewed implements [engine.MemoryObserver].
func (r *Recorder) Viewed(offset uint32, seen []byte) {
	if r.why != "" || len(seen) == 0 {
		return
	}
	end, overlaps := uint64(offset)+uint64(len(seen)), false
	for _, v := range r.views {
		from, to := uint64(v.offset), uint64(v.offset)+uint64(len(v.bytes))
		if from <= uint64(offset) && end <= to {
			return
		}
		overlaps = overlaps || from < end && uint64(offset) < to
	}
	if overlaps { // the host may have changed a part of it
		r.flush()
	}
	if r.viewed += len(seen); r.viewed > maxViewed || len(r.views) == maxViews {
		r.fail("one of its calls of the host was about more than %d MiB or %d places of its memory, which is not recorded",
			maxViewed>>20, maxViews)
		return
	}
	r.put(opView, uint64(offset), uint64(len(seen)))
	r.digest.Write(seen)
	r.views = append(r.views, view{offset, seen, bytes.Clone(seen)})
}

// Calling implements [engine.MemoryObserver].
func (r *Recorder) Calling(name string, parameters []uint64) {
	r.flush()
	r.put(opKernel)
	r.name(name)
	r.numbers(parameters)
}

// Output records that the host passes bytes to one of the guest's outputs, which the two sides number alike.
func (r *Recorder) Output(number int, written []byte) {
	if len(written) == 0 || r.why != "" || !r.within {
		return
	}
	for _, v := range r.views { // a part of a slice has the same end
		at := cap(v.bytes) - cap(written)
		if at >= 0 && at+len(written) <= len(v.bytes) && &v.bytes[at] == &written[0] {
			r.put(opOutput, uint64(number), uint64(v.offset)+uint64(at), uint64(len(written)))
			return
		}
	}
	r.put(opText, uint64(number))
	r.data(written)
}

// flush records the changes of memory since the last one.
func (r *Recorder) flush() {
	for _, v := range r.views {
		if n := changed(v.before, v.bytes); n > 0 {
			r.put(opWrite, uint64(v.offset))
			r.data(v.bytes[:n])
			copy(v.before, v.bytes)
		}
	}
}

// changed returns the number of bytes up to the last one that differs.
func changed(before, after []byte) int {
	const piece = 4 << 10
	n := len(after)
	for n > 0 && bytes.Equal(before[max(0, n-piece):n], after[max(0, n-piece):n]) {
		n = max(0, n-piece)
	}
	for n > 0 && before[n-1] == after[n-1] {
		n--
	}
	return n
}

func (r *Recorder) name(name string) {
	number, found := r.names[name]
	if !found {
		number = uint64(len(r.names))
		r.names[name] = number
	}
	r.put(number)
	if !found {
		r.data([]byte(name))
	}
}

// data adds bytes, or the number of equal ones that are kept.
func (r *Recorder) data(content []byte) {
	if len(content) < minBlob {
		r.put(uint64(len(content)))
		r.log = append(r.log, content...)
		return
	}
	digest := sha256.Sum256(content)
	number, found := r.known[digest]
	if !found && r.why == "" {
		number = uint64(len(r.known))
		r.known[digest] = number
		r.blobs = append(binary.AppendUvarint(r.blobs, uint64(len(content))), content...)
	}
	r.put(minBlob + number)
}

func (r *Recorder) numbers(numbers []uint64) {
	r.put(uint64(len(numbers)))
	r.put(numbers...)
}

func (r *Recorder) put(numbers ...uint64) {
	if r.why != "" {
		return
	}
	for _, n := range numbers {
		r.log = binary.AppendUvarint(r.log, n)
	}
	if len(r.log)+len(r.blobs) > replay.MaxBytes {
		r.fail("the host's answers have more than %d MiB, which are not recorded", replay.MaxBytes>>20)
	}
}

// fail frees what was recorded, and keeps the reason.
func (r *Recorder) fail(format string, arguments ...any) {
	if r.why == "" {
		r.why = fmt.Sprintf(format, arguments...)
	}
	r.log, r.blobs, r.known, r.views = nil, nil, nil, nil
}
