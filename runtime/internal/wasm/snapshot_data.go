package wasm

import "fmt"

// Segment is a data segment that the host writes in place of instantiation.
type Segment struct {
	Offset uint32 // in the memory
	// Bytes are a part of the module's source, which must not change while they are used.
	Bytes []byte
}

// pageBytes is the size of a page of memory (§4.2.8).
const pageBytes = 1 << 16

// liftData leaves the data segments out, if the host can take them over: if each that is
// active has its place in the module's own memory whatever the host imports, and if no
// instruction asks for one later.
func (r *rewriting) liftData() error {
	at, present := r.module.section(SectionData)
	if !present || r.module.DataSegments == 0 {
		return nil
	}
	if r.analysis.bulk&(1<<opMemoryInit.number()|1<<opDataDrop.number()) != 0 {
		r.done.DataKept = "an instruction uses a data segment"
		return nil
	}
	l := &lifting{decoder: decoder{
		reader:   reader{source: r.source[:at.End], at: at.Content, section: at.ID.String()},
		features: r.analysis.features,
	}}
	if len(r.module.Memories) == 1 {
		l.own, l.memory = true, uint64(r.module.Memories[0].Min)*pageBytes
	}
	for n := range l.u32("the number of data segments") {
		reason := l.segment()
		if l.err != nil {
			return l.err
		}
		if reason != "" {
			r.done.DataKept = fmt.Sprintf("data segment %d %s", n, reason)
			return nil
		}
	}
	r.done.Data, r.lifted = l.segments, true
	return nil
}

// lifting reads a data section that is valid.
type lifting struct {
	decoder
	own      bool   // the memory is the module's own
	memory   uint64 // its size at first, in bytes
	segments []Segment
}

// segment reads a segment, and returns why it cannot be left out, or "". A passive one, which
// nothing uses, is as if it were not there.
func (l *lifting) segment() (reason string) {
	mode := l.u32("the mode of a data segment")
	if mode == 2 {
		l.u32("the memory of a data segment")
	}
	var s Segment
	if mode != 1 {
		s.Offset, reason = l.offset()
	}
	length := l.size("a data segment")
	begin := l.at
	l.skip(length, "a data segment")
	s.Bytes = l.source[begin:l.at:l.at]
	switch {
	case mode == 1 || l.err != nil:
		return ""
	case !l.own:
		return "is for a memory that is imported"
	case reason == "" && uint64(s.Offset)+uint64(len(s.Bytes)) > l.memory:
		return "reaches over the end of the memory"
	}
	l.segments = append(l.segments, s)
	return reason
}

// offset reads the constant expression of an offset, which is one instruction and the end.
func (l *lifting) offset() (offset uint32, reason string) {
	var in, end instruction
	l.next(&in)
	l.next(&end)
	if l.err != nil {
		return 0, ""
	}
	if in.opcode != opI32Const {
		return 0, "has its offset from a global that is imported"
	}
	return l.constant(&in), ""
}

// constant returns the number of i32.const, as an address.
func (l *lifting) constant(in *instruction) uint32 {
	number := reader{source: l.source[:in.end], at: in.at + 1, section: l.section}
	value := uint32(number.leb(32, true, "an offset"))
	// What the bytes have no room for are copies of the sign.
	if missing := 32 - 7*(in.end-in.at-1); missing > 0 {
		value = uint32(int32(value<<missing) >> missing)
	}
	return value
}
