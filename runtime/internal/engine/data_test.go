package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// trapUnless are instructions that trap unless a word of memory has this value.
func trapUnless(address, value int) []byte {
	return join([]byte{0x41}, signed(address), []byte{0x28, 2, 0, 0x41}, signed(value), []byte{0x47, 0x04, 0x40, 0x00, 0x0b})
}

// segmentLists are data segments for a memory of so many bytes.
func segmentLists(memory int) map[string][]wasm.Segment {
	random := rand.New(rand.NewPCG(1, 2))
	var scattered []wasm.Segment
	for range 300 {
		s := wasm.Segment{Bytes: make([]byte, random.IntN(3*imagePage))}
		for i := range s.Bytes {
			s.Bytes[i] = byte(random.IntN(3))
		}
		s.Offset = uint32(random.IntN(memory - len(s.Bytes)))
		scattered = append(scattered, s)
	}
	small := []wasm.Segment{{Offset: 5, Bytes: []byte("one")}, {Offset: imagePage - 1, Bytes: []byte("two")}, {Offset: 9 * imagePage, Bytes: []byte("three")}}
	descending := slices.Clone(small)
	slices.Reverse(descending)
	return map[string][]wasm.Segment{
		"ascending":                small,
		"descending":               descending,
		"one over another":         {{Offset: 4, Bytes: []byte("beneath")}, {Offset: 6, Bytes: []byte("above")}},
		"zeros over others":        {{Offset: 0, Bytes: bytes.Repeat([]byte{1}, 2*imagePage)}, {Offset: 0, Bytes: make([]byte, imagePage)}},
		"empty ones":               {{Offset: 0, Bytes: []byte{}}, {Offset: uint32(memory), Bytes: []byte{}}},
		"the end of the memory":    {{Offset: uint32(memory - 1), Bytes: []byte{1}}},
		"all of the memory":        {{Offset: 0, Bytes: bytes.Repeat([]byte{2}, memory)}},
		"scattered, over another":  scattered,
		"the whole, then scraps":   append([]wasm.Segment{{Offset: 0, Bytes: bytes.Repeat([]byte{9}, memory)}}, scattered...),
		"scraps in the same place": slices.Repeat([]wasm.Segment{{Offset: 77, Bytes: []byte{1}}, {Offset: 77, Bytes: []byte{2}}}, 500),
	}
}

// plainly returns the memory of an instance that wazero makes of a module.
func plainly(t *testing.T, source []byte) []byte {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	instance, err := r.InstantiateWithConfig(t.Context(), source, wazero.NewModuleConfig().WithStartFunctions())
	require.NoError(t, err)
	contents, ok := instance.Memory().Read(0, instance.Memory().Size())
	require.True(t, ok)
	return slices.Clone(contents)
}

// TestDataIsWhatInstantiationWrites: in the first instance and in later ones, which no longer
// have the segments, of modules that are reset and of modules that are not.
func TestDataIsWhatInstantiationWrites(t *testing.T) {
	const pages = 2
	for name, segments := range segmentLists(pages << 16) {
		for _, tables := range [][]byte{nil, {1, 0x70, 0, 1}} {
			p := program{body: nothing, memory: pages, data: segments, tables: tables}
			if tables != nil {
				p.body = growTable
			}
			module := compile(t, newEngine(t, Options{}, nil), p)
			require.False(t, module.rewritten.DataKept)
			require.Equal(t, tables != nil, module.rewritten.Unrestorable != "")
			want := plainly(t, p.bytes())
			for range 3 {
				i, err := module.instantiate(t.Context(), 16*mebibyte)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(want, i.memory.contents()), name)
				assert.Empty(t, module.data, "the image has it")
				i.memory.contents()[77]++ // no later instance has it
				i.close(t.Context())
			}
		}
	}
}

// TestRunsFindTheirData: each anew, whatever runs before it wrote over it.
func TestRunsFindTheirData(t *testing.T) {
	overwrite := []byte{0x41, 8, 0x41, 9, 0x36, 2, 0}           // i32.store 8 <- 9
	oneMore := []byte{0xd0, 0x70, 0x41, 1, 0xfc, 0x0f, 0, 0x1a} // table.grow 1
	for _, also := range [][]byte{nothing, oneMore} {
		p := program{body: join(trapUnless(8, 7), overwrite, also), memory: 1, tables: []byte{1, 0x70, 0, 1},
			data: []wasm.Segment{{Offset: 8, Bytes: []byte{7}}}}
		module := compile(t, newEngine(t, Options{}, nil), p)
		require.Equal(t, len(also) > 0, module.rewritten.Unrestorable != "")
		for range 3 {
			mustRun(t, module, plain)
		}
		i, err := module.instantiate(t.Context(), 16*mebibyte)
		require.NoError(t, err)
		defer i.close(t.Context())
		require.NoError(t, i.begin(i.context(t.Context()), Run{Function: "run"}))
		require.ErrorIs(t, i.begin(i.context(t.Context()), Run{Function: "run"}), ErrTrap, "control: written bytes stay without a reset")
	}
}

// TestSegmentsInUse: where an instruction uses segments, each run finds those that are passive, and finds active ones
// empty, as the specification says. Neither way does an instance copy active ones, which would take milliseconds.
func TestSegmentsInUse(t *testing.T) {
	initialize := func(segment byte) []byte { // the byte at 9, from the first of the segment
		return join(number(9), number(0), number(1), []byte{0xfc, 8, segment, 0})
	}
	build := func(code ...[]byte) []byte {
		return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(5, 1, 0, 1),
			section(7, join([]byte{1}, name("run"), []byte{0, 0})...), section(12, 2), section(10, join([]byte{1}, function(nil, code...))...),
			section(11, join([]byte{2, 0}, number(8), []byte{0x0b}, name("a"), []byte{1}, name("p"))...))
	}
	passive := compileSource(t, newEngine(t, Options{}, nil), build(
		trapUnless(8, 'a'), initialize(1), trapUnless(8, 'a'|'p'<<8), []byte{0xfc, 9, 0}))
	active := compileSource(t, newEngine(t, Options{}, nil), build(initialize(0)))
	for _, module := range []*Module{passive, active} {
		assert.False(t, module.rewritten.DataKept)
	}
	for range 3 {
		mustRun(t, passive, plain)
		_, err := active.Run(t.Context(), plain)
		assert.ErrorIs(t, err, ErrTrap)
	}
}

// TestDataOutOfBoundsTraps: as it does where the segments are not taken out, each time.
func TestDataOutOfBoundsTraps(t *testing.T) {
	for _, segments := range [][]wasm.Segment{
		{{Offset: 1<<16 - 1, Bytes: []byte("ab")}},
		{{Offset: 0, Bytes: []byte("in")}, {Offset: 1 << 31, Bytes: []byte{1}}},
		{{Offset: 1<<16 + 1, Bytes: []byte{}}},
	} {
		module := compile(t, newEngine(t, Options{}, nil), program{body: nothing, memory: 1, data: segments})
		assert.True(t, module.rewritten.DataKept)
		for range 2 {
			_, err := module.Run(t.Context(), plain)
			var failure *Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, "instantiate", failure.Op)
			require.ErrorIs(t, err, ErrModule)
		}
	}
}

// TestImagesAreMadeWithinTheLimit: a module that starts with more memory than a run may have
// costs nothing, and later runs with a higher limit find the data.
func TestImagesAreMadeWithinTheLimit(t *testing.T) {
	const pages, large = maxMemory >> 16, maxMemory
	end := wasm.Segment{Offset: large - 4, Bytes: []byte{7, 0, 0, 0}}
	module := compile(t, newEngine(t, Options{}, nil), program{body: trapUnless(large-4, 7), memory: pages, data: []wasm.Segment{end}})
	usage, err := module.Run(t.Context(), plain)
	require.ErrorIs(t, err, ErrMemory)
	assert.EqualValues(t, large, usage.MemoryRefused)
	assert.Nil(t, module.image)

	usage = mustRun(t, module, Run{Function: "run", MemoryLimit: large})
	assert.EqualValues(t, large, usage.MemoryBytes)
}

// TestDamagedDataIsRefused: damaged data is neither read nor written out of bounds.
func TestDamagedDataIsRefused(t *testing.T) {
	memory := make([]byte, 1<<16)
	good := packData([]wasm.Segment{{Offset: 1, Bytes: []byte("abc")}, {Offset: 1<<16 - 1, Bytes: []byte("d")}})
	spans, err := writeData(t.Context(), memory, good)
	require.NoError(t, err)
	assert.Equal(t, []pageSpan{{0, imagePage}, {15 * imagePage, 16 * imagePage}}, spans)
	whole := packedHead + len("abc")
	for n := range len(good) {
		_, err := writeData(t.Context(), memory, good[:n])
		assert.Equal(t, n != 0 && n != whole, err != nil, "%d bytes", n)
	}
	_, err = writeData(t.Context(), memory[:imagePage], good)
	assert.ErrorIs(t, err, errData)
}

// TestWritingDataEnds: writing data ends with the context, so that an instance is not late by the time that a hundred
// megabytes of data take.
func TestWritingDataEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	const length = 2 * comparedBytes
	memory := make([]byte, length)
	for name, segments := range map[string][]wasm.Segment{
		"one":  {{Offset: 0, Bytes: bytes.Repeat([]byte{1}, length)}},
		"many": slices.Repeat([]wasm.Segment{{Offset: 0, Bytes: []byte{1}}}, length/imagePage),
	} {
		_, err := writeData(t.Context(), memory, packData(segments))
		require.NoError(t, err, name)
		_, err = writeData(ended, memory, packData(segments))
		assert.ErrorIs(t, err, context.Canceled, name)
	}
}

// TestAttackCallsThatWaitForAnImage: a call whose deadline is over does not wait until other calls have made the image
// of its module, or tried to. The control waits for it.
func TestAttackCallsThatWaitForAnImage(t *testing.T) {
	module := compile(t, newEngine(t, Options{}, nil), program{body: nothing, memory: 1, data: []wasm.Segment{{Offset: 8, Bytes: []byte{7}}}})
	module.imaging <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	run := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := module.Run(ctx, plain)
			ended <- err
		}()
		return ended
	}
	short, long := run(ctx), run(t.Context())
	select {
	case err := <-short:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(5 * time.Second):
		assert.Fail(t, "it waits")
	}
	<-module.imaging
	require.NoError(t, <-long)
	assert.NotNil(t, module.image)
}

// TestDeclaredMaximum: a memory grows to the maximum that its module declares, although a larger one is compiled, and
// its instance is used again. That it grew no further does not depend on the limit of the run.
func TestDeclaredMaximum(t *testing.T) {
	grows := func(by, want byte) []byte { return []byte{0x41, by, 0x40, 0, 0x41, want, 0x47, 0x04, 0x40, 0x00, 0x0b} }
	source := program{body: join(grows(1, 1), grows(1, 0x7f), grows(0, 2)), memory: 1}.bytes()
	bounded := bytes.Replace(source, section(5, 1, 0, 1), section(5, 1, 1, 1, 2), 1)
	for _, limit := range []int64{2 * page, 3 * page} {
		module := compileSource(t, newEngine(t, Options{}, nil), bounded)
		for range 3 {
			usage := mustRun(t, module, Run{Function: "run", MemoryLimit: limit})
			assert.Equal(t, Usage{MemoryBytes: 2 * page, Fuel: usage.Fuel}, usage)
			idle := module.engine.idle
			idle.mu.Lock()
			shelf := idle.shelves[poolKey{module, uint64(limit)}]
			require.NotNil(t, shelf)
			assert.Len(t, shelf.waiting, 1)
			idle.mu.Unlock()
		}
	}
	_, err := compileSource(t, newEngine(t, Options{}, nil), source).Run(t.Context(), Run{Function: "run", MemoryLimit: 3 * page})
	require.ErrorIs(t, err, ErrTrap, "control: without a maximum it grows further")
}
