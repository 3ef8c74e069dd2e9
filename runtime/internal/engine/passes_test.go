package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// passesOutput has a line for each PassesVersion: the digest of the passes' output for the specification's modules. Add
// lines; a line that is there belongs to a version that people have in their caches.
var passesOutput = []string{
	1:  "2a1513b81054cd94cd48262f867c03370db2a69963419406b408024c76fc2ef3",
	2:  "93079ce393ba74f565e020066a1a7b24d13103bcdeede9ed64fe5bef40b868ed",
	3:  "6c71231a06b010308a68c08ba93a36cc6945844615e90fdca9209aa2e78c4266",
	4:  "fd617f6246daaa10bda926b7d5b8b439977d8ff312359762a24dab2a0194d8dc",
	5:  "749266dbf343b0460b552adb65bc2d0bd18dae475902334edb6b09b0c18c5d3f",
	6:  "28a6ba3a3bc8a905cb1810fabe516f16391fb29fab3c70b12eb0baaa3d55c015",
	7:  "a156f3247c0953541bbbe278a106607b35e04de23466cd8e7ce9971cc31aa409",
	8:  "a156f3247c0953541bbbe278a106607b35e04de23466cd8e7ce9971cc31aa409",
	9:  "da2ee01f2f88ff502d793c473cb2bf4d38a89093d255f2803a02099d1e38dd29",
	10: "da2ee01f2f88ff502d793c473cb2bf4d38a89093d255f2803a02099d1e38dd29",
	11: "1075edce9c42ed35807b4b9dd18399af8e47719ad3e36e96acfdc325bc968f0c",
	12: "c0629bb9d2e5749ca9a75047d33a9b6d6135ea00a10c543f51745c5e1d2543d6",
	13: "a95eae9a2e50e6c9faf9c8e96b1b9c0431927dc15681c7b923655590819a2b1c",
	14: "5099bb872d508e51010fb7df90a16a11347b2fd54a89fa725c5cd15e39510806",
	15: "203ca8be6bfbb03d83dcf14ea9676d64001d497c548b73c611e2927a0060a154",
	16: "e12d92dbb0a36a21e8ad25143b7af8df209be9ed1efb5159be93141e096220d5",
	17: "15f34da016c8a67e2660f54d006e734de7f5be89ab8733a41890cf518dade9a9",
	18: "603ced89d6f8caadf67946ada2fb0ccab1e47c0fdbfacf0f5dc3aa299818568a",
	19: "4a14734a62eda29d619cfdeadc0fa9c661bdb14c5e5cba53f17f3cff48c1ca03",
}

// TestPassesVersion: a version of the passes does not use modules that another one rewrote.
func TestPassesVersion(t *testing.T) {
	out := moduleFolder(t, "github.com/tetratelabs/wazero")
	folder := filepath.Join(out, "internal", "integration_test", "spectest", "v2", "testdata")
	modules, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
	require.NoError(t, err)
	require.Greater(t, len(modules), 3000)
	sum := sha256.New()
	for _, module := range modules {
		source := read(t, module)
		addPasses(sum, filepath.Base(module), source)
	}
	addPasses(sum, "everything", everything().bytes())
	addPasses(sum, "a program", selfTested)
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		source, err := guests.KernelCommand(t.Context(), language, "")
		require.NoError(t, err)
		addPasses(sum, string(language), source)
	}
	addPasses(sum, "a dispatch", machine{table: []int{0, 1, 2}, places: []site{{calls: true, leave: sometimes, to: 2}, {}, {leave: always}}, steps: 9}.program(0).bytes())
	require.Len(t, passesOutput, PassesVersion+1, "one line a version")
	assert.Equal(t, passesOutput[PassesVersion], hex.EncodeToString(sum.Sum(nil)),
		"the passes make something else of a module: add one to PassesVersion, and a line to passesOutput")
}

// digested is a rewritten module in the form that passesOutput has the digests of.
type digested struct {
	source       []byte
	meter, depth string
	shift        int
	start        bool
	globals      []string
	unrestorable string
	forks        bool
	data         []byte
	dataKept     bool
	frames       []wasm.Frame
}

// addPasses adds the passes' output for a module to a digest, or the fact that they refuse it.
func addPasses(sum hash.Hash, name string, source []byte) {
	for _, in := range []role{{}, {trusted: true}, {linked: true}} {
		bounds := wasm.Bounds{}
		if in.trusted {
			bounds = unbounded()
		}
		fmt.Fprintf(sum, "%s %+v ", name, in)
		description, err := wasm.Inspect(source)
		if err != nil {
			fmt.Fprintln(sum, "refused")
			continue
		}
		r, err := rewriteWithin(context.Background(), source, description, bounds, in, nil)
		fmt.Fprintf(sum, "%t %+v\n", err == nil, digested{r.source, r.Meter, r.Depth, r.Shift, r.Start, r.Globals, r.Unrestorable, r.Forks, r.data, r.DataKept, r.frames})
	}
}

// Bulk operations of more than this many bytes are done in pieces.
const pieceBytes = 64 << 10

// TestLongBulkOperations: memory.copy and memory.fill in pieces have the same results as Go's copy and a plain loop, in
// both directions, overlapping by any amount and up to the memory's last byte. One byte further they trap, and nothing
// is written.
func TestLongBulkOperations(t *testing.T) {
	const pages = 24 // 1.5 MiB
	memory := bulkInstance(t, pages)
	size := memory.size
	lengths := []uint32{pieceBytes - 1, pieceBytes, pieceBytes + 1, 2*pieceBytes - 1, 2 * pieceBytes, 2*pieceBytes + 1, 3*pieceBytes + 12345}
	distances := []uint32{0, 1, 7, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes}
	for _, n := range lengths {
		for _, d := range distances {
			for _, low := range []uint32{0, 3, size - n - d} {
				if low+n+d > size {
					continue
				}
				memory.copies(t, low, low+d, n) // towards the front
				memory.copies(t, low+d, low, n) // and the back
			}
		}
		for _, to := range []uint32{0, 5, size - n} {
			memory.fills(t, to, 0x1a7, n)
		}
		for _, beyond := range [][2]uint32{{size - n + 1, 0}, {0, size - n + 1}, {^uint32(0), 0}, {0, ^uint32(0) - n}, {size, size}} {
			memory.traps(t, "copy", beyond[0], beyond[1], n)
		}
		memory.traps(t, "fill", size-n+1, 1, n)
		memory.traps(t, "fill", ^uint32(0), 1, n)
	}
	memory.traps(t, "copy", 0, 1, ^uint32(0))
	memory.traps(t, "fill", 1, 0, ^uint32(0))
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := random.Uint32N(size)
		memory.copies(t, random.Uint32N(size-n+1), random.Uint32N(size-n+1), n)
	}
}

// bulk is an instance that copies and fills, and the expected contents of its memory.
type bulk struct {
	instance api.Module
	size     uint32
	want     []byte
	random   *rand.ChaCha8
}

// fresh fills the memory with bytes that were not there before.
func (b *bulk) fresh(t *testing.T) {
	t.Helper()
	_, _ = b.random.Read(b.want)
	require.True(t, b.instance.Memory().Write(0, b.want))
}

func bulkInstance(t *testing.T, pages int) *bulk {
	t.Helper()
	operands := []byte{0x20, 0, 0x20, 1, 0x20, 2}
	source := join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 1, 0x60, 3, 0x7f, 0x7f, 0x7f, 0), section(3, 2, 0, 0), section(5, join([]byte{1, 0}, leb(pages))...),
		section(7, join([]byte{3}, name("copy"), []byte{0, 0}, name("fill"), []byte{0, 1}, name("memory"), []byte{2, 0})...),
		section(10, join([]byte{2}, function(nil, operands, []byte{0xfc, 10, 0, 0}), function(nil, operands, []byte{0xfc, 11, 0}))...))
	b := &bulk{instance: rewrittenInstance(t, source), size: uint32(pages) << 16}
	b.want = make([]byte, b.size)
	b.random = rand.NewChaCha8([32]byte{})
	b.fresh(t)
	return b
}

// rewrittenInstance runs a module as the engine rewrites it.
func rewrittenInstance(t *testing.T, source []byte) api.Module {
	t.Helper()
	ctx := new(meter).with(t.Context())
	runtime := wazero.NewRuntime(ctx)
	t.Cleanup(func() { require.NoError(t, runtime.Close(ctx)) })
	require.NoError(t, offerPasses(ctx, runtime))
	done, err := rewriteAll(source)
	require.NoError(t, err)
	instance, err := runtime.Instantiate(ctx, done)
	require.NoError(t, err)
	return instance
}

func (b *bulk) call(t *testing.T, function string, a, c, n uint32) error {
	_, err := b.instance.ExportedFunction(function).Call(new(meter).with(t.Context()), uint64(a), uint64(c), uint64(n))
	return err
}

func (b *bulk) check(t *testing.T, what string, a, c, n uint32) {
	t.Helper()
	got, ok := b.instance.Memory().Read(0, b.size)
	require.True(t, ok)
	require.True(t, bytes.Equal(b.want, got), "%s %d %d %d", what, a, c, n)
}

func (b *bulk) copies(t *testing.T, to, from, n uint32) {
	t.Helper()
	copy(b.want[to:to+n], b.want[from:from+n])
	require.NoError(t, b.call(t, "copy", to, from, n))
	b.check(t, "copy", to, from, n)
}

func (b *bulk) fills(t *testing.T, to, value, n uint32) {
	t.Helper()
	for i := range n {
		b.want[to+i] = byte(value)
	}
	require.NoError(t, b.call(t, "fill", to, value, n))
	b.check(t, "fill", to, value, n)
}

func (b *bulk) traps(t *testing.T, function string, a, c, n uint32) {
	t.Helper()
	b.fresh(t)
	assert.ErrorContains(t, b.call(t, function, a, c, n), "out of bounds memory access", "%s %d %d %d", function, a, c, n)
	b.check(t, function, a, c, n)
}

// TestWaysOutOfRecursion: a recursive function gives back its stack whichever way it ends. Otherwise thousands of calls
// that are each a thousand deep would exhaust the stack.
func TestWaysOutOfRecursion(t *testing.T) {
	again := []byte{0x20, 0, 0x41, 1, 0x6b, 0x10, 0} // f(n-1)
	one := []byte{0x41, 1, 0x6a}                     // + 1
	ends := []byte{0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x0f, 0x0b}
	for way, body := range map[string][]byte{
		"its end":                join(ends, again, one),
		"return":                 join(ends, again, one, []byte{0x0f}),
		"a return in blocks":     join(ends, []byte{0x02, 0x40, 0x02, 0x40}, again, one, []byte{0x0f, 0x0b, 0x0b, 0x00}),
		"a return in a loop":     join(ends, []byte{0x03, 0x40}, again, one, []byte{0x0f, 0x0b, 0x00}),
		"a branch to its end":    join(ends, []byte{0x02, 0x40}, again, one, []byte{0x0c, 1, 0x0b, 0x00}),
		"a conditional branch":   join(ends, []byte{0x02, 0x40}, again, one, []byte{0x41, 1, 0x0d, 1, 0x1a, 0x0b, 0x00}),
		"a table":                join(ends, []byte{0x02, 0x40}, again, one, []byte{0x20, 0, 0x0e, 2, 1, 1, 1, 0x0b, 0x00}),
		"a branch out of a loop": join(ends, []byte{0x03, 0x40}, again, one, []byte{0x0c, 1, 0x0b, 0x00}),
		"an arm of an if":        join(ends, []byte{0x20, 0, 0x04, 0x7f}, again, one, []byte{0x05, 0x41, 0, 0x0f, 0x0b}),
	} {
		t.Run(way, func(t *testing.T) {
			instance := rewrittenInstance(t, join([]byte("\x00asm\x01\x00\x00\x00"), section(1, 1, 0x60, 1, 0x7f, 1, 0x7f), section(3, 1, 0),
				section(7, join([]byte{1}, name("f"), []byte{0, 0})...), section(10, join([]byte{1}, function(nil, body))...)))
			for range 300 {
				result, err := instance.ExportedFunction("f").Call(new(meter).with(t.Context()), 1000)
				require.NoError(t, err)
				require.EqualValues(t, 1000, result[0])
			}
			assert.Zero(t, instance.ExportedGlobal("caisson:depth@1").Get(), "the depth after the calls")
		})
	}
}
