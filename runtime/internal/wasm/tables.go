package wasm

import "encoding/binary"

// BoundTables returns a copy of a module in which the tables can grow to most elements
// each, or to their minimums where those are larger: what a table holds lies outside of
// linear memory and its limit. Growing a table further fails, as it may at any time
// (§4.4.11, table.grow).
//
// The module m must be what [Inspect] returned for source.
func BoundTables(source []byte, m *Module, most uint32) []byte {
	at, found := m.section(SectionTable)
	if !found {
		return append([]byte(nil), source...)
	}
	content := binary.AppendUvarint(nil, uint64(len(m.Tables)))
	for _, table := range m.Tables {
		maximum := max(table.Limits.Min, most)
		if table.Limits.HasMax {
			maximum = max(table.Limits.Min, min(table.Limits.Max, most))
		}
		content = append(content, byte(table.Element), 1) // 1: a minimum and a maximum (§5.3.7)
		content = binary.AppendUvarint(content, uint64(table.Limits.Min))
		content = binary.AppendUvarint(content, uint64(maximum))
	}
	bounded := append(make([]byte, 0, len(source)+len(content)), source[:at.Offset]...)
	bounded = append(bounded, byte(SectionTable))
	bounded = binary.AppendUvarint(bounded, uint64(len(content)))
	bounded = append(bounded, content...)
	return append(bounded, source[at.End:]...)
}

// section returns the module's section of this kind, if it has one.
func (m *Module) section(id SectionID) (Section, bool) {
	for _, s := range m.Sections {
		if s.ID == id {
			return s, true
		}
	}
	return Section{}, false
}
