package wasm

import "fmt"

// Estimates of the stack that a call uses, in bytes.
const (
	frameBytes = 64 // return address, saved registers
	valueBytes = 8
	vectorSize = 2 // slots per value in functions that use vectors

	// Functions of Go's compiler, which branches by a table to each place after a call, take up to 340 slots more than
	// their values need: the more, the more blocks they have that tables lead to. These numbers make the estimate at least
	// a third of the stack that each function of twelve programs takes. Other compilers' functions have few such blocks.
	blocksWithoutSlots = 24
	mostBlockSlots     = 128
)

// depthPass bounds recursion. Only functions on a cycle of the call graph can be on the stack more
// than once. Each of them adds its estimated frame to a global on entry, traps if the sum exceeds
// the budget, and subtracts the frame when it returns. The other functions are bounded by the
// longest chain of calls, for which the budget leaves room.
//
// The trap is in the else arm, which wazero places away from the code that usually runs.
//
// The frame is subtracted after the block that exitPass wraps around the body.
//
// The frame is estimated from the parameters, the locals, the operand stack and the values that a compiler may have to
// keep in memory: across calls, and where paths join. Where tables lead to many blocks, not all of them are found in
// the text, and the rest is estimated from the number of blocks. Measured with wazero v1.12.0, a small function uses 16
// bytes where 80 are estimated, and one that keeps 10,000 values across calls uses 65 KB where 81 KB are estimated. One
// in which 100 or 200 values join in 50 to 100 places uses 76 to 104 KB where 78 to 158 KB are estimated. For 99 of 100
// functions of the file tools, which Go compiles, the values kept in memory are estimated at 3.9 KB or less, and for
// the largest at 34 KB; for CPython the numbers are 0.4 KB and 83 KB. It remains an estimate, so an engine needs its
// own limit as well.
type depthPass struct {
	recursive bitSet
	frames    []int64
	budget    int64
	global    uint32
	leave     []byte // the code that subtracts the frame
}

// frame estimates the stack that a function uses, in bytes.
func (r *rewriting) frame(index int) int64 {
	f, found := r.module.Functions[index], r.analysis.Functions[index]
	values := int64(len(r.module.Types[f.Type].Params)) + int64(f.Locals) + int64(found.MaxStack) + int64(found.Spilled)
	dispatched := min(int64(found.Blocks), int64(found.BranchTargets)*4/3)
	values += min(max(0, dispatched-blocksWithoutSlots), mostBlockSlots)
	if r.counted(index) {
		values++
	}
	if found.Vectors {
		values *= vectorSize
	}
	return frameBytes + valueBytes*values
}

// addDepth adds the depth pass, or rejects a module that cannot run within the budget.
func (r *rewriting) addDepth() error {
	graph, failure := r.callGraph()
	if failure != nil {
		return failure
	}
	p := &depthPass{frames: make([]int64, len(r.module.Functions))}
	for index := range p.frames {
		p.frames[index] = r.frame(index)
		if index < len(r.passes.Frames) {
			p.frames[index] = max(p.frames[index], r.passes.Frames[index])
		}
	}
	found := graph.recursion(func(node uint32) int64 {
		if int(node) < len(p.frames) {
			return p.frames[node]
		}
		return 0 // a type
	})
	p.recursive, p.budget = found.recursive, r.passes.StackBytes-found.chain
	r.done.ChainBytes = found.chain
	if p.budget < 0 {
		code, _ := r.module.section(SectionCode)
		return r.tooDeep(code.Offset, "a chain of calls takes some %d bytes of stack, the limit is %d", found.chain,
			r.passes.StackBytes)
	}
	for index, f := range r.module.Functions {
		r.done.Frames = append(r.done.Frames, Frame{p.frames[index], p.recursive.has(uint32(index))})
		if !p.recursive.has(uint32(index)) {
			continue
		}
		if p.frames[index] > p.budget {
			return r.tooDeep(f.Offset, "a function takes some %d bytes of stack, chains of calls leave %d", p.frames[index],
				p.budget)
		}
		r.done.Recursive++
	}
	p.global = r.addGlobal(I32, depthName)
	r.done.DepthGlobal = depthName
	r.depth = p
	r.pipeline = append(r.pipeline, p)
	return nil
}

func (r *rewriting) tooDeep(offset int, format string, arguments ...any) error {
	return &Error{Kind: ErrLimit, Section: SectionCode.String(), Offset: offset,
		Message: fmt.Sprintf(format, arguments...)}
}

func (p *depthPass) enter(b *bodyRewriting) {
	p.leave = nil
	if !p.recursive.has(uint32(b.index)) {
		return
	}
	frame := p.frames[b.index]
	enter := &encoder{}
	enter.at(opGlobalGet, p.global).i32(int32(p.budget - frame)).do(opI32LeU).block(opIf).do(opElse)
	enter.i32(-1).at(opGlobalSet, p.global).do(opUnreachable, opEnd) // -1 is DepthExceeded
	enter.at(opGlobalGet, p.global).i32(int32(frame)).do(opI32Add).at(opGlobalSet, p.global)
	b.insert(b.entry, enter.bytes)

	leave := &encoder{}
	p.leave = leave.at(opGlobalGet, p.global).i32(int32(frame)).do(opI32Sub).at(opGlobalSet, p.global).bytes
	b.leave = append(b.leave, p.leave...)
}

func (p *depthPass) visit(b *bodyRewriting, in *instruction) {
	if p.leave != nil && (in.opcode == opReturnCall || in.opcode == opReturnCallIndirect) {
		b.insert(in.at, p.leave)
	}
}
