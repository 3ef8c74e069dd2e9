package wasm

import (
	"bytes"
	"fmt"
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
	f.Add(module(producersOf("Rust", "rustc")))
	f.Fuzz(func(t *testing.T, source []byte) {
		before := bytes.Clone(source)
		checkProducers(t, Producers(source))
		var m *Module
		var err error
		spent := allocated(func() { m, err = Inspect(source) })
		require.LessOrEqual(t, spent, budget(len(source)))
		require.Equal(t, before, source)
		if err != nil {
			require.Nil(t, m)
			checkFailure(t, source, err)
			return
		}
		checkModule(t, source, m)
	})
}

// checkFailure checks that a failure points into a module.
func checkFailure(t *testing.T, source []byte, err error) {
	t.Helper()
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.GreaterOrEqual(t, failure.Offset, 0)
	require.LessOrEqual(t, failure.Offset, len(source))
	require.NotContains(t, failure.Message, "%!")
}

// FuzzValidate holds Validate to its promises on any module that Inspect accepts: it does
// not panic, allocates within the budget, and fails with an *Error that points into the
// input. The verdict does not depend on custom sections.
func FuzzValidate(f *testing.F) {
	f.Add(fixture(), true)
	f.Add(everything(), false)
	f.Add(fixture(0x41, 7, 0x41, 0, 0x11, 1, 0, 0x1a), false)
	f.Add(fixture(0x02, 0x7f, 0x41, 1, 0x41, 0, 0x0e, 1, 0, 0, 0x0b, 0x1a), false)
	f.Add(fixture(0x00, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0, 0xfd, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), false)
	f.Add(fixture(0x03, 1, 0x20, 0, 0x1a, 0x0d, 0, 0x0b), true)
	f.Add(fixture(0x12, 1), true)
	f.Add(fixture(0x1c, 1, 0x70, 0xd0, 0x6f, 0xd2, 1, 0x25, 1), false)
	f.Add(oneBodied(noLocals, nested(11_000)), false)
	f.Add(oneBodied(noLocals, labelled(300)), false)
	f.Fuzz(func(t *testing.T, source []byte, tails bool) {
		m, err := Inspect(source)
		if err != nil {
			return
		}
		var a *Analysis
		spent := allocated(func() { a, err = ValidateWithin(t.Context(), source, m, Bounds{}, Features{TailCalls: tails}) })
		require.LessOrEqual(t, spent, validationBudget(len(source)))
		if err != nil {
			require.Nil(t, a)
			checkFailure(t, source, err)
			return
		}
		require.Len(t, a.Functions, len(m.Functions))
		again := checked(t, StripCustom(source, m, none), Features{TailCalls: tails})
		require.Equal(t, a.Functions, again.Functions)
	})
}

// FuzzRewrite holds Rewrite to its promises on any module that Validate accepts: the result is valid, equal each time,
// and has the exports that it lists.
func FuzzRewrite(f *testing.F) {
	f.Add(fixture(), byte(3))
	f.Add(fixture(0x03, 0x40, 0x41, 0, 0x0d, 0, 0x41, 0, 0x0e, 1, 0, 1, 0x0b, 0x10, 1), byte(3))
	f.Add(fixture(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0), byte(3))
	f.Add(fixture(0x00, 0x0b, 0x04, 0x40, 0x05, 0x0b, 0x0f, 0x12, 1), byte(3))
	f.Add(sample(raw(0x20, 0), raw(0x20, 0, 0x12, 2)), byte(3))
	f.Add(module(oneType, oneFunc, oneBody), byte(1))
	f.Add(module(), byte(3))
	f.Add(fixture(), byte(31))
	f.Add(forking(), byte(31))
	f.Add(stateful(), byte(31))
	f.Fuzz(func(t *testing.T, source []byte, passes byte) {
		a, err := check(source, Bounds{}, Features{TailCalls: true})
		if err != nil {
			return
		}
		p := Passes{Meter: passes&1 != 0, Depth: passes&2 != 0, Globals: passes&4 != 0, Data: passes&8 != 0, Fork: passes&16 != 0}
		if _, err := Rewrite(t.Context(), source, a, p); err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.True(t, failure.Kind == ErrLimit || failure.Kind == ErrUnsupported)
			return
		}
		checkRewritten(t, source, a, p)
	})
}

// checkModule checks the properties of every accepted module.
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
	again := inspected(t, stripped)
	assert.Empty(t, again.Custom)
	require.Equal(t, withoutPlaces(m), withoutPlaces(again))
	require.Equal(t, stripped, StripCustom(stripped, again, none))
}

// withoutPlaces returns the module without the parts that stripping changes: custom sections and offsets.
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

// The benchmarks run on a program of Go's distribution, of some 5 MB.

func BenchmarkInspect(b *testing.B) {
	source := goProgram(b)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		inspected(b, source)
	}
}

func BenchmarkValidate(b *testing.B) {
	source := goProgram(b)
	m := inspected(b, source)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := Validate(source, m)
		require.NoError(b, err)
	}
}

func BenchmarkRewrite(b *testing.B) {
	source := goProgram(b)
	a := checked(b, source, Features{})
	for _, passes := range []Passes{{Meter: true}, {Depth: true}, {Meter: true, Depth: true}} {
		b.Run(fmt.Sprintf("meter=%t,depth=%t", passes.Meter, passes.Depth), func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				rewrote(b, source, a, passes)
			}
		})
	}
}
