package wasm

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzInspect holds Inspect to its promises on any input: it does not panic, allocates
// within the budget, and fails with an *Error that points into the input. A module that
// it accepts is, without its custom sections, the same module.
func FuzzInspect(f *testing.F) {
	f.Add([]byte{})
	f.Add(module())
	f.Add(everything())
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	for _, l := range counts() {
		f.Add(l.source())
	}
	f.Add(module(oneType, oneFunc, section(SectionCode, vector(body(vector(concat(claim, raw(byte(I64)))))))))
	f.Add(module(section(SectionMemory, vector(raw(3, 1, 1)))))
	f.Add(module(section(sectionTag, vector(raw(0, 0)))))
	f.Fuzz(func(t *testing.T, source []byte) {
		before := bytes.Clone(source)
		var m *Module
		var err error
		spent := allocated(func() { m, err = Inspect(source) })
		require.LessOrEqual(t, spent, budget(len(source)))
		require.Equal(t, before, source)
		if err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.Nil(t, m)
			require.GreaterOrEqual(t, failure.Offset, 0)
			require.LessOrEqual(t, failure.Offset, len(source))
			require.NotContains(t, failure.Message, "%!")
			return
		}
		checkModule(t, source, m)
	})
}

// checkModule checks what holds for every module that is accepted.
func checkModule(t *testing.T, source []byte, m *Module) {
	t.Helper()
	for _, export := range m.Exports {
		_, found := m.ExportedFunction(export.Name)
		require.Equal(t, export.Kind == ExternFunction, found)
	}
	for _, f := range m.Functions {
		require.Equal(t, byte(opEnd), source[f.Offset+f.Size-1])
	}
	require.Equal(t, source, StripCustom(source, m, all))

	stripped := StripCustom(source, m, none)
	again, err := Inspect(stripped)
	require.NoError(t, err)
	assert.Empty(t, again.Custom)
	require.Equal(t, withoutPlaces(m), withoutPlaces(again))
	require.Equal(t, stripped, StripCustom(stripped, again, none))
}

// withoutPlaces is the module without what stripping custom sections changes: them, and
// where things stand.
func withoutPlaces(m *Module) Module {
	bare := *m
	bare.Custom, bare.Sections, bare.Functions = nil, nil, nil
	for _, s := range m.Sections {
		if s.ID != SectionCustom {
			bare.Sections = append(bare.Sections, Section{ID: s.ID, End: s.End - s.Offset, Content: s.Content - s.Offset})
		}
	}
	for _, f := range m.Functions {
		f.Offset = 0
		bare.Functions = append(bare.Functions, f)
	}
	return bare
}
