package wasm

import (
	"encoding/binary"
	"fmt"
)

// StartName is the export that [ExportStart] adds.
const StartName = "caisson:start@1"

// ExportStart returns a copy of a module whose start function (§2.5.9), if it has one, is
// exported as [StartName] instead of running when the module is instantiated, where there
// is no instance yet to tell what became of it. Whoever instantiates the module has to call
// it first. A module that exports the name already is refused.
//
// The module m must be what [Inspect] returned for source.
func ExportStart(source []byte, m *Module) ([]byte, error) {
	at, exports := m.section(SectionExport)
	for _, export := range m.Exports {
		if export.Name == StartName {
			return nil, &Error{Kind: ErrUnsupported, Section: SectionExport.String(), Offset: at.Offset, Message: fmt.Sprintf("exports %q, which is reserved", StartName)}
		}
	}
	start, present := m.section(SectionStart)
	if !present {
		return append([]byte(nil), source...), nil
	}
	content := binary.AppendUvarint(nil, uint64(len(m.Exports)+1))
	if exports {
		_, counted := binary.Uvarint(source[at.Content:at.End])
		content = append(content, source[at.Content+counted:at.End]...)
	} else {
		at = Section{Offset: start.Offset, End: start.Offset} // right before it is its place (§5.5.2)
	}
	content = binary.AppendUvarint(content, uint64(len(StartName)))
	content = append(content, StartName...)
	content = append(content, byte(ExternFunction))
	content = binary.AppendUvarint(content, uint64(m.Start.Function))

	out := append(make([]byte, 0, len(source)+len(content)), source[:at.Offset]...)
	out = append(out, byte(SectionExport))
	out = binary.AppendUvarint(out, uint64(len(content)))
	out = append(out, content...)
	out = append(out, source[at.End:start.Offset]...)
	return append(out, source[start.End:]...), nil
}
