package wasm

// Names of proposals that modules may not need, in [Error.Proposal].
const (
	Components         = "the component model"
	CustomPageSizes    = "custom page sizes"
	ExceptionHandling  = "exception handling"
	ExtendedConstants  = "extended constant expressions"
	FunctionReferences = "typed function references"
	GarbageCollection  = "garbage collection"
	Memory64           = "memory64"
	MemoryDiscarding   = "memory control"
	MultipleMemories   = "multiple memories"
	RelaxedVectors     = "relaxed SIMD"
	StackSwitching     = "stack switching"
	TailCalls          = "tail calls"
	Threads            = "threads"
	WideArithmetic     = "wide arithmetic"
)

// unsupported fails because the module needs a disabled proposal.
func (r *reader) unsupported(offset int, proposal, what string) {
	if r.err == nil {
		r.fail(ErrUnsupported, offset, "%s needs %s, which is not supported", what, proposal)
		r.err.Proposal = proposal
	}
}

// proposedType returns the proposal that defines a type code, or "".
func proposedType(code byte) string {
	switch code {
	case 0x69, 0x74: // exnref, noexn
		return ExceptionHandling
	case 0x63, 0x64: // (ref null ht), (ref ht)
		return FunctionReferences
	case 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, // abstract heap types
		0x77, 0x78, // packed types
		0x4e, 0x4f, 0x50, 0x5e, 0x5f: // recursive, sub, array and struct types
		return GarbageCollection
	}
	return ""
}

// proposedInstruction returns the proposal that defines an opcode, or "". If first is a prefix,
// number is the number after it.
func proposedInstruction(first byte, number uint32) string {
	switch first {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return ExceptionHandling
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return FunctionReferences
	case 0xd3, opGarbageCollected:
		return GarbageCollection
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6:
		return StackSwitching
	case opAtomic:
		return Threads
	case opNumbered:
		switch number {
		case 18:
			return MemoryDiscarding
		case 19, 20, 21, 22:
			return WideArithmetic
		}
	case opVector:
		if number >= 0x100 && number < 0x130 {
			return RelaxedVectors
		}
	}
	return ""
}
