//go:build linux

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// taken returns the number of bytes that the system has for the file of an image.
func (i *image) taken(t *testing.T) int64 {
	t.Helper()
	info, err := i.file.file.Stat()
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// touching is a module that reads from each page of its memory and, if writes is set, writes the value back to the
// page. Then it calls the host. It has data in the middle and near the end.
func touching(pages int, writes bool) program {
	touch := []byte{0x20, 0, 0x28, 2, 0, 0x1a} // local.get 0, i32.load, drop
	if writes {
		touch = []byte{0x20, 0, 0x20, 0, 0x28, 2, 0, 0x36, 2, 4} // local.get 0, local.get 0, i32.load, i32.store
	}
	return program{memory: pages, locals: 1, importing: true,
		data: []wasm.Segment{{Offset: uint32(pages<<15 + 100), Bytes: []byte("middle")}, {Offset: uint32(pages<<16 - 5000), Bytes: []byte("end")}},
		body: join([]byte{0x03, 0x40}, touch, []byte{0x20, 0, 0x41}, sleb(4096), []byte{0x6a, 0x22, 0, 0x41}, sleb(int64(pages)<<16),
			[]byte{0x49, 0x0d, 0, 0x0b}, callImport)}
}

// TestAttackImageFills: guests touch the holes of the image that all instances of their module share. The system gives
// a hole of a file in memory a page when a private mapping of it is touched, and the page stays when the call has
// ended. The control maps a file with a hole.
func TestAttackImageFills(t *testing.T) {
	for _, pages := range []int{32, 1024} { // the instance keeps written pages, or returns them
		for _, writes := range []bool{false, true} {
			e := newEngine(t, Options{}, noHost)
			module := compile(t, e, touching(pages, writes))
			run := Run{Function: "run", MemoryLimit: 128 * mebibyte}
			first, err := module.instantiate(t.Context(), uint64(run.MemoryLimit))
			require.NoError(t, err)
			before := module.image.taken(t)
			assert.LessOrEqual(t, module.image.holding().bytes, int64(3*systemPage))
			assert.Positive(t, before)
			_, err = first.run(t.Context(), poolKey{module, uint64(run.MemoryLimit)}, run)
			require.NoError(t, err)
			for range 3 {
				mustRun(t, module, run)
			}
			i, err := module.instantiate(t.Context(), uint64(run.MemoryLimit))
			require.NoError(t, err)
			require.NoError(t, i.equals(t.Context(), module.image)) // the comparison at the start of a program
			i.close(t.Context())
			assert.Equal(t, before, module.image.taken(t), "%d pages, writes: %v", pages, writes)
		}
	}

	file, err := unix.MemfdCreate("control", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	control := image{file: imageFile{file: os.NewFile(uintptr(file), "control")}}
	require.NoError(t, control.file.file.Truncate(mebibyte))
	memory, err := unix.Mmap(file, 0, mebibyte, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer release(memory)
	memory[0] = memory[mebibyte/2] + 1
	assert.Positive(t, control.taken(t), "the control")
	require.NoError(t, control.close())
}

// TestAttackFilledHolesOfPrograms is TestAttackImageFills for the image of a started program, which replaces the
// module's.
func TestAttackFilledHolesOfPrograms(t *testing.T) {
	zeroed := []byte{0x41, 0x80, 0x80, 0x08, 0x41, 0, 0x36, 2, 0} // a word at 128 KiB becomes 0
	touched := touching(64, true)
	source := program{memory: 64, importing: true, locals: 1, data: []wasm.Segment{{Offset: 2 << 16, Bytes: []byte{1}}, {Offset: 12 << 16, Bytes: []byte{2}}},
		body: join([]byte{0x41, 0x80, 0x80, 0x08, 0x28, 2, 0, 0x04, 0x40}, zeroed, []byte{0x05}, touched.body, []byte{0x0b})} // if it is not 0 yet, else touch
	e := newEngine(t, Options{}, noHost)
	module := compile(t, e, source)
	p, err := module.Start(t.Context(), Start{MemoryLimit: 64 * mebibyte, Timeout: time.Minute, Fuel: 1 << 40, Initialize: []Initializer{{Function: "run"}},
		Context: func(ctx context.Context) context.Context { return ctx }})
	require.NoError(t, err)
	require.Len(t, module.image.file.spans, 2)
	require.Len(t, p.image.file.spans, 1, "where the program's image is zero, the module's is not mapped")
	started := e.idle.take(p.key())
	require.NoError(t, started.equals(t.Context(), p.image))
	e.idle.put(p.key(), started)
	before, beforeStart := p.image.taken(t), module.image.taken(t)
	for range 3 { // an instance from the start, and a copy of it
		mustRun(t, p, Run{Function: "run"})
		i, err := p.copy(t.Context())
		require.NoError(t, err)
		require.NoError(t, i.equals(t.Context(), p.image))
		_, err = i.run(t.Context(), p.key(), Run{Function: "run"})
		require.NoError(t, err)
	}
	assert.Equal(t, before, p.image.taken(t))
	assert.Equal(t, beforeStart, module.image.taken(t))
}

// mappings returns the part of /proc/self/smaps about mappings that lie in a memory, one entry for each.
func mappings(t *testing.T, memory []byte) (found []string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	inside := false
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			if inside = from < first+uintptr(len(memory)) && first < to; inside {
				found = append(found, "")
			}
		}
		if inside {
			found[len(found)-1] += line
		}
	}
	return found
}

// TestAttackManyMappings: tools whose data lies in many places would take all mappings that a process may have, 65,530
// as a rule, without which the Go runtime ends it.
func TestAttackManyMappings(t *testing.T) {
	const tools, places = 600, 16
	inProcess := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return bytes.Count(maps, []byte("\n"))
	}
	e := newEngine(t, Options{IdleTime: time.Hour}, nil)
	before := inProcess()
	for n := range tools {
		source := program{memory: 6 * places, body: nothing, filler: number(n)}
		for at := range places {
			source.data = append(source.data, wasm.Segment{Offset: uint32(at * 6 << 16), Bytes: []byte{1}})
		}
		module, run := compile(t, e, source), Run{Function: "run", MemoryLimit: 64 * mebibyte}
		key := poolKey{module, uint64(run.MemoryLimit)}
		i, err := module.instantiate(t.Context(), key.memory)
		require.NoError(t, err)
		mustRun(t, module, run)
		if n < mostMappings/(2*places+1) { // twice as many idle instances as images, which have all their places as yet
			_, err = i.run(t.Context(), key, run)
			require.NoError(t, err)
		} else {
			i.close(t.Context())
		}
	}
	e.settled()
	assert.LessOrEqual(t, e.idle.mapped, int64(mostMappings))
	assert.LessOrEqual(t, e.residents.taken.mappings, int64(mostMappings))
	const code = 4 // mappings of a module's code, and of the Go runtime meanwhile
	assert.InDelta(t, e.idle.mapped+e.residents.taken.mappings, inProcess()-before, code*tools, "that is what the process has")
	assert.Greater(t, tools*(2*places+1), mostMappings, "the control: the mappings of all instances")
}

// TestAttackLongComparisons: comparing the state after a start with the image ends with the call.
func TestAttackLongComparisons(t *testing.T) {
	e := newEngine(t, Options{}, noHost)
	module := compile(t, e, program{memory: 2 * comparedBytes >> 16, body: nothing, data: []wasm.Segment{{Offset: 1, Bytes: []byte{1}}}})
	i, err := module.instantiate(t.Context(), 64*mebibyte)
	require.NoError(t, err)
	defer i.close(t.Context())
	require.NoError(t, i.equals(t.Context(), module.image), "the control")
	ended, end := context.WithCancel(t.Context())
	end()
	err = i.equals(ended, module.image)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, ErrNotStarted)
}

// TestAttackLongImages: making an image of the state after a start ends with the start. It took seconds for a memory of
// gigabytes, for which the program counted as a runaway, and the server ended. The last 2 pages are not zero.
func TestAttackLongImages(t *testing.T) {
	e := newEngine(t, Options{}, noHost)
	module := compile(t, e, program{memory: 2 * comparedBytes >> 16, body: nothing, data: []wasm.Segment{{Offset: 2*comparedBytes - 1, Bytes: []byte{1}}}})
	i, err := module.instantiate(t.Context(), 64*mebibyte)
	require.NoError(t, err)
	defer i.close(t.Context())
	made, err := i.capture(t.Context())
	require.NoError(t, err, "the control")
	require.NoError(t, made.free())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = i.capture(ended)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = spansToMap(ended, i.memory.contents(), allOf(i.memory.contents()))
	assert.ErrorIs(t, err, context.Canceled)
}

// TestAttackScatteredData: data in many places of memory would take a mapping for each in every instance, of which a
// process can have some 65,000. The control has data in two places.
func TestAttackScatteredData(t *testing.T) {
	const pages, every = 512, 6
	scattered := program{memory: pages, body: nothing}
	for at := 0; at < pages; at += every {
		scattered.data = append(scattered.data, wasm.Segment{Offset: uint32(at<<16 + 17), Bytes: []byte{byte(at), 1}})
	}
	e := newEngine(t, Options{}, noHost)
	few := compile(t, e, touching(pages, false))
	for _, c := range []struct {
		module *Module
		least  int
		most   int
	}{{compile(t, e, scattered), 1, 129}, {few, 4, 5}} {
		i, err := c.module.instantiate(t.Context(), 64*mebibyte)
		require.NoError(t, err)
		found := len(mappings(t, i.memory.reserved))
		assert.LessOrEqual(t, found, c.most)
		assert.GreaterOrEqual(t, found, c.least)
		assert.Equal(t, c.module.image.taken(t), c.module.image.holding().bytes, "gaps that are filled count")
		assert.LessOrEqual(t, found, int(i.mappings()))
		for _, s := range scattered.data {
			if c.module != few {
				require.Equal(t, s.Bytes, i.memory.contents()[s.Offset:][:len(s.Bytes)])
			}
		}
		i.close(t.Context())
	}
}

// TestAttackDataFarApart: a few bytes of data far apart would make an image as large as the memory, which takes the
// first call of a module seconds to write. The control has as many places as an image can.
func TestAttackDataFarApart(t *testing.T) {
	e := newEngine(t, Options{}, noHost)
	for _, places := range []int{mostSpans, mostSpans + 1} {
		source := program{memory: 17 * places, body: nothing}
		for at := range places {
			source.data = append(source.data, wasm.Segment{Offset: uint32(at * 17 << 16), Bytes: []byte{1}})
		}
		module := compile(t, e, source)
		_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 128 * mebibyte})
		if places == mostSpans {
			require.NoError(t, err)
			assert.LessOrEqual(t, module.image.holding().bytes, int64(places*systemPage))
			continue
		}
		assert.ErrorIs(t, err, ErrModule)
		assert.ErrorContains(t, err, fmt.Sprintf("data in more than %d places", mostSpans))
	}
}

// TestSpansToMap: pages that are not zero are mapped, with short gaps, in a bounded number of spans.
func TestSpansToMap(t *testing.T) {
	const size = 1024 * systemPage
	for _, c := range []struct {
		name    string
		written []int // pages
		want    []pageSpan
	}{
		{"nothing", nil, nil},
		{"one page", []int{3}, []pageSpan{{3, 4}}},
		{"neighbours", []int{3, 4, 5}, []pageSpan{{3, 6}}},
		{"the longest gap that is filled", []int{3, 68}, []pageSpan{{3, 69}}},
		{"a longer gap", []int{3, 69}, []pageSpan{{3, 4}, {69, 70}}},
		{"the ends", []int{0, 1023}, []pageSpan{{0, 1}, {1023, 1024}}},
	} {
		memory := make([]byte, size)
		for _, page := range c.written {
			memory[page*systemPage+systemPage-1] = 1
		}
		got, err := spansToMap(t.Context(), memory, allOf(memory))
		require.NoError(t, err)
		for n := range got {
			got[n].from, got[n].to = got[n].from/systemPage, got[n].to/systemPage
		}
		assert.Equal(t, c.want, got, c.name)
	}
}

// TestAttackLargePages: a store to a large page waits until the system has cleared two megabytes, for three units of
// fuel. So no memory of a guest has large pages, even where they are the system's default: neither the memory that it
// starts with nor the memory that it grows by, in any instance of a module or a program. The control is memory without
// advice about large pages.
func TestAttackLargePages(t *testing.T) {
	small := func(memory []byte) (all bool) {
		all = true
		for _, mapping := range mappings(t, memory) {
			_, flags, found := strings.Cut(mapping, "VmFlags:")
			require.True(t, found)
			assert.Contains(t, mapping, "AnonHugePages:         0 kB")
			all = all && strings.Contains(flags, " nh ")
		}
		return all
	}
	const size = 64 * mebibyte
	control, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer release(control)
	require.False(t, small(control), "the control")
	_, err = os.Stat("/sys/kernel/mm/transparent_hugepage")
	large := err == nil // otherwise there is nothing to say, and all pages are small

	e := newEngine(t, Options{}, noHost)
	module := compile(t, e, touching(32, true))
	i, err := module.instantiate(t.Context(), size)
	require.NoError(t, err)
	_, grown := i.wasm.Memory().Grow(size>>16 - 32)
	require.True(t, grown)
	clear(i.memory.contents())
	assert.Equal(t, large, small(i.memory.reserved))
	assert.Equal(t, large, small(module.image.memory))
	made, err := i.capture(t.Context())
	require.NoError(t, err)
	require.NoError(t, i.adopt(made))
	assert.Equal(t, large, small(i.memory.reserved), "with a program's image")
	i.survey()
	require.NoError(t, i.reset())
	assert.Equal(t, large, small(i.memory.reserved), "after a reset")
	i.close(t.Context())
	require.NoError(t, made.free())
}

// settled waits until no instance is being retired in the background.
func (e *Engine) settled() {
	for range cap(e.retiring) {
		e.retiring <- struct{}{}
	}
	for range cap(e.retiring) {
		<-e.retiring
	}
}

// TestAttackMuchWritten: the system takes a quarter of a second to take back a gigabyte, so no call waits for that
// after its deadline. In this test an instance cannot enter the pool until the call has returned, so a call that waited
// would never return. The controls write little, or find that as many instances as allowed are being retired: their
// calls wait.
func TestAttackMuchWritten(t *testing.T) {
	const much = muchWritten >> 16
	for _, c := range []struct {
		name       string
		pages      int
		full       bool
		background bool
	}{{"much", much + 1, false, true}, {"little", 2, false, false}, {"much, while others are", much + 1, true, false}} {
		t.Run(c.name, func(t *testing.T) {
			var hold bool
			var used *instance
			var e *Engine
			e = newEngine(t, Options{}, func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
				used = runOf(ctx).instance
				if hold {
					e.idle.mu.Lock()
				}
				return nil
			})
			if c.full {
				for range cap(e.retiring) {
					e.retiring <- struct{}{}
				}
			}
			module := compile(t, e, touching(c.pages, true))
			run := Run{Function: "run", MemoryLimit: 256 * mebibyte}
			if hold = c.background; hold {
				mustRun(t, module, run)
				e.idle.mu.Unlock()
				e.settled()
			} else {
				mustRun(t, module, run)
			}
			require.Equal(t, 1, e.idle.count(), "the instance is kept")
			if c.full {
				for range cap(e.retiring) {
					<-e.retiring
				}
			}
			assert.NoError(t, used.equals(t.Context(), module.image), "it is as new")
			assert.Equal(t, used.place.bytes, e.idle.taken)
			assert.GreaterOrEqual(t, e.idle.taken, instanceBytes+int64(c.pages<<16>>9), "page tables stay, and count")
			again := used
			hold = false
			mustRun(t, module, run)
			e.settled()
			assert.Same(t, again, used)
		})
	}
}

// TestRetiredInTheBackground: closing the engine and dropping a program wait for instances that are being retired, also
// for those that cannot be kept.
func TestRetiredInTheBackground(t *testing.T) {
	var mu sync.Mutex
	var used []*instance
	fail := false
	host := func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
		mu.Lock()
		defer mu.Unlock()
		if i := runOf(ctx).instance; i.watched == nil {
			used = append(used, i)
		}
		if fail {
			panic("no instance is kept after that")
		}
		return nil
	}
	run := Run{Function: "run", MemoryLimit: 256 * mebibyte}
	source := touching(muchWritten>>16+1, true)
	closed := func(t *testing.T) {
		require.NotEmpty(t, used)
		for _, i := range used {
			assert.Nil(t, i.memory.reserved)
		}
		used, fail = nil, false
	}
	for _, failing := range []bool{false, true} {
		e, err := New(t.Context(), Options{Functions: []hostfuncs.Function{{Module: "test", Name: "host", Call: host}}})
		require.NoError(t, err)
		module := compile(t, e, source)
		var group sync.WaitGroup
		fail = failing
		for range 4 {
			group.Go(func() {
				_, err := module.Run(t.Context(), run)
				assert.Equal(t, failing, err != nil)
			})
		}
		group.Wait()
		require.NoError(t, e.Close(t.Context()))
		closed(t)
	}

	e := newEngine(t, Options{}, host)
	module := compile(t, e, source)
	for range 3 {
		p, err := module.Start(t.Context(), Start{MemoryLimit: run.MemoryLimit, Timeout: time.Minute, Fuel: 1 << 40, Initialize: []Initializer{{Function: "run"}},
			Context: func(ctx context.Context) context.Context { return ctx }})
		require.NoError(t, err)
		mustRun(t, p, run)
		require.NoError(t, p.Drop())
		e.settled()
		assert.Zero(t, e.idle.count())
	}
	closed(t)
}
