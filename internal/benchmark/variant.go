package benchmark

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
)

var errNoExports = errors.New("benchmark: the module has no section of exports")

const (
	preambleBytes = 8 // magic number and version
	exportSection = 7
	exportMemory  = 2
)

// variant returns a module that does the same and has other code to whoever compiles it:
// it exports its memory once more, under a name made of number. A custom section would not
// do, since runtimes may drop those and find two modules equal.
func variant(module []byte, number int) ([]byte, error) {
	for at := preambleBytes; at < len(module); {
		size, width := binary.Uvarint(module[at+1:])
		start := at + 1 + width
		if width <= 0 || size > uint64(len(module)-start) {
			return nil, errNoExports
		}
		end := start + int(size)
		if module[at] != exportSection {
			at = end
			continue
		}
		count, width := binary.Uvarint(module[start:end])
		if width <= 0 {
			return nil, errNoExports
		}
		section := binary.AppendUvarint(nil, count+1)
		section = append(section, module[start+width:end]...)
		name := "variant" + strconv.Itoa(number)
		section = append(binary.AppendUvarint(section, uint64(len(name))), name...)
		section = append(section, exportMemory, 0)
		head := binary.AppendUvarint(slices.Clone(module[:at+1]), uint64(len(section)))
		return slices.Concat(head, section, module[end:]), nil
	}
	return nil, errNoExports
}
