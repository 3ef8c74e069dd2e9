package engine

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// workload is a kernel and what it is called with.
type workload struct {
	kernel string
	size   int32
}

// export is the name of the function that [withRuns] adds.
func (w workload) export() string { return fmt.Sprintf("run %s %d", w.kernel, w.size) }

// workloads are all kernels at two sizes, the smaller one first.
func workloads() (all []workload) {
	for _, kernel := range guests.AllKernels() {
		small, large := kernel.Size/16, kernel.Size/8
		if kernel.Name == "fannkuch" { // it takes the factorial of its size
			small, large = kernel.Size-3, kernel.Size-2
		}
		all = append(all, workload{kernel.Name, small}, workload{kernel.Name, large})
	}
	return all
}

// withRuns adds to a module of kernels a function for each workload, which takes and returns
// nothing, as the engine calls functions.
func withRuns(t *testing.T, source []byte, all []workload) []byte {
	t.Helper()
	description, err := wasm.Inspect(source)
	require.NoError(t, err)
	require.Empty(t, description.Imports)
	index := map[string]int{}
	for _, export := range description.Exports {
		index[export.Name] = int(export.Index)
	}
	added := map[wasm.SectionID][][]byte{wasm.SectionType: {{0x60, 0, 0}}}
	for i, w := range all {
		require.Contains(t, index, w.kernel)
		body := []byte{0} // no locals
		if initialize, found := index["_initialize"]; found {
			body = join(body, []byte{0x10}, leb(initialize))
		}
		body = join(body, []byte{0x41}, signed(int(w.size)), []byte{0x10}, leb(index[w.kernel]), []byte{0x1a, 0x0b})
		added[wasm.SectionFunction] = append(added[wasm.SectionFunction], leb(len(description.Types)))
		added[wasm.SectionExport] = append(added[wasm.SectionExport], join(name(w.export()), []byte{0}, leb(len(description.Functions)+i)))
		added[wasm.SectionCode] = append(added[wasm.SectionCode], join(leb(len(body)), body))
	}
	module := source[:8:8]
	for _, s := range description.Sections {
		content := source[s.Content:s.End]
		if more := added[s.ID]; len(more) > 0 {
			content = extended(content, more)
		}
		module = append(module, section(byte(s.ID), content...)...)
	}
	return module
}

// extended adds elements to a vector.
func extended(vector []byte, more [][]byte) []byte {
	count, length := 0, 0
	for shift := 0; ; shift += 7 {
		b := vector[length]
		count |= int(b&0x7f) << shift
		length++
		if b < 0x80 {
			break
		}
	}
	return join(leb(count+len(more)), vector[length:], join(more...))
}

// TestEqualCallsTakeEqualFuel: one after the other and side by side, in this engine and in
// another, and in one that found the code in a cache.
func TestEqualCallsTakeEqualFuel(t *testing.T) {
	all := workloads()
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		t.Run(string(language), func(t *testing.T) {
			kernels, err := guests.Kernels(t.Context(), language, t.TempDir())
			require.NoError(t, err)
			source := withRuns(t, kernels, all)
			cache := filepath.Join(t.TempDir(), "cache")
			var modules []*Module
			for _, options := range []Options{{}, {}, {CacheDir: cache, Compiler: child(t)}, {CacheDir: cache, Compiler: child(t)}} {
				module, err := newEngine(t, options, nil).Compile(t.Context(), source)
				require.NoError(t, err)
				modules = append(modules, module)
			}
			require.Len(t, entries(t, cache), 1, "the last engine found it")
			taken := map[workload]int64{}
			for _, w := range all {
				taken[w] = fuelOf(t, modules[0], w)
				for _, module := range modules {
					assertFuel(t, module, w, taken[w])
				}
			}
			for i := 0; i < len(all); i += 2 {
				assert.Less(t, taken[all[i]], taken[all[i+1]], "control: %s takes more for more", all[i].kernel)
			}
		})
	}
}

// assertFuel makes two calls in a row, and four at once.
func assertFuel(t *testing.T, module *Module, w workload, want int64) {
	t.Helper()
	for range 2 {
		assert.Equal(t, want, fuelOf(t, module, w), w)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { assert.Equal(t, want, fuelOf(t, module, w), w) })
	}
	group.Wait()
}

func fuelOf(t *testing.T, module *Module, w workload) int64 {
	usage, err := module.Run(t.Context(), Run{Function: w.export(), MemoryLimit: 256 * mebibyte})
	assert.NoError(t, err, w)
	return usage.Fuel
}
