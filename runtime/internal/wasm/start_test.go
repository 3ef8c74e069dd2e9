package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExportStart(t *testing.T) {
	types, functions := []byte{1, 4, 1, 0x60, 0, 0}, []byte{3, 3, 2, 0, 0}
	exports := []byte{7, 5, 1, 1, 'f', 0, 0}
	custom := []byte{0, 2, 1, 'x'}
	start := []byte{8, 1, 1}
	code := []byte{10, 7, 2, 2, 0, 0x0b, 2, 0, 0x0b}
	build := func(sections ...[]byte) []byte {
		module := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
		for _, s := range sections {
			module = append(module, s...)
		}
		return module
	}
	for name, source := range map[string][]byte{
		"with exports":          build(types, functions, exports, start, code),
		"without exports":       build(types, functions, start, code),
		"custom sections there": build(types, functions, exports, custom, start, custom, code),
	} {
		m, err := Inspect(source)
		require.NoError(t, err)
		moved, err := ExportStart(source, m)
		require.NoError(t, err)
		again, err := Inspect(moved)
		require.NoError(t, err, name)
		assert.False(t, again.Start.Present, name)
		assert.Equal(t, append(append([]Export{}, m.Exports...), Export{StartName, ExternFunction, 1}), again.Exports, name)
		assert.Len(t, again.Custom, len(m.Custom), name)

		_, err = ExportStart(moved, again)
		require.ErrorIs(t, err, ErrUnsupported, "a module that has the name already")
	}
	without := build(types, functions, exports, code)
	m, err := Inspect(without)
	require.NoError(t, err)
	same, err := ExportStart(without, m)
	require.NoError(t, err)
	assert.Equal(t, without, same)
}
