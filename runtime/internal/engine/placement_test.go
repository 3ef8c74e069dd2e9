package engine

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// placements is the number of addresses at which benchmarks of short loops place the machine code. A loop of a dozen
// cycles takes up to half again as long at one address as at another 16 bytes away, with and without metering, so one
// placement would compare addresses.
const placements = 9

// placed begins the first function of a module with n pieces of code that do nothing. They move the
// machine code after them.
func placed(tb testing.TB, source []byte, n int) []byte {
	before, code, after := codeSection(tb, source)
	count, at := binary.Uvarint(code)
	size, head := binary.Uvarint(code[at:])
	body := code[at+head:][:size]
	first := afterLocals(body)
	nothing := []byte{0x3f, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b} // if memory.size == -1 { unreachable }
	longer := slices.Concat(body[:first], slices.Repeat(nothing, n), body[first:])
	content := binary.AppendUvarint(nil, count)
	content = append(binary.AppendUvarint(content, uint64(len(longer))), longer...)
	return slices.Concat(before, section(10, append(content, code[at+head+int(size):]...)...), after)
}

// codeSection divides a module around the contents of its section of code.
func codeSection(tb testing.TB, source []byte) (before, code, after []byte) {
	for at := 8; at < len(source); {
		size, n := binary.Uvarint(source[at+1:])
		content := at + 1 + n
		if source[at] == 10 {
			return source[:at], source[content:][:size], source[content+int(size):]
		}
		at = content + int(size)
	}
	require.FailNow(tb, "the module has no code")
	return nil, nil, nil
}

// afterLocals returns where the instructions of a body begin.
func afterLocals(body []byte) int {
	groups, at := binary.Uvarint(body)
	for range groups {
		_, n := binary.Uvarint(body[at:])
		at += n + 1
	}
	return at
}
