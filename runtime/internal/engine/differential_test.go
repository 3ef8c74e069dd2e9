package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file runs the specification's tests, as wazero's module ships them, twice: each module unchanged, and as this
// engine rewrites it. What the tests expect does not matter here; both sides must do the same.

// scriptCommand is one line of a specification test's script.
type scriptCommand struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Name     string `json:"name"`
	As       string `json:"as"`
	Filename string `json:"filename"`
	Action   action `json:"action"`
}

type action struct {
	Type   string  `json:"type"`
	Module string  `json:"module"`
	Field  string  `json:"field"`
	Args   []value `json:"args"`
}

type value struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"`
	Value    json.RawMessage `json:"value"`
}

// words returns a value as wazero takes it: one word, or two for a vector.
func (v value) words() ([]uint64, error) {
	var text string
	if v.Type != "v128" {
		if err := json.Unmarshal(v.Value, &text); err != nil {
			return nil, err
		}
		if text == "null" {
			return []uint64{0}, nil
		}
		word, err := strconv.ParseUint(text, 10, 64)
		return []uint64{word}, err
	}
	var lanes []string
	if err := json.Unmarshal(v.Value, &lanes); err != nil {
		return nil, err
	}
	bits := 128 / len(lanes)
	words := make([]uint64, 2)
	for i, lane := range lanes {
		n, err := strconv.ParseUint(strings.TrimPrefix(lane, "-"), 10, 64)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(lane, "-") {
			n = -n
		}
		if bits < 64 {
			n &= 1<<bits - 1
		}
		words[i*bits/64] |= n << (i * bits % 64)
	}
	return words, nil
}

// world is one side: a store of instances.
type world struct {
	ctx     context.Context
	runtime wazero.Runtime
	prepare func([]byte) ([]byte, error)
	named   map[string]api.Module
	last    api.Module
}

func newWorld(ctx context.Context, spectest []byte, prepare func([]byte) ([]byte, error)) (*world, error) {
	ctx = new(meter).with(ctx)
	w := &world{ctx: ctx, runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig()), prepare: prepare, named: map[string]api.Module{}}
	if err := offerPasses(ctx, w.runtime); err != nil {
		return nil, err
	}
	if err := offerCounter(ctx, w.runtime); err != nil {
		return nil, err
	}
	_, err := w.runtime.InstantiateWithConfig(ctx, spectest, wazero.NewModuleConfig().WithName("spectest"))
	return w, err
}

// offerCounter instantiates a module with the counter that linked modules import.
func offerCounter(ctx context.Context, runtime wazero.Runtime) error {
	source := join([]byte("\x00asm\x01\x00\x00\x00"), section(6, 1, 0x7e, 1, 0x42, 0, 0x0b), section(7, join([]byte{1}, name(wasm.CounterName), []byte{3, 0})...))
	_, err := runtime.InstantiateWithConfig(ctx, source, wazero.NewModuleConfig().WithName(wasm.CounterModule))
	return err
}

// instantiate makes an instance; as is what a later command registers it as.
func (w *world) instantiate(source []byte, name, as string) string {
	w.last = nil
	prepared, err := w.prepare(source)
	if err != nil {
		return "prepare: " + err.Error()
	}
	compiled, err := w.runtime.CompileModule(w.ctx, prepared)
	if err != nil {
		return "compile: " + err.Error()
	}
	ctx := w.ctx
	if description, err := wasm.Inspect(source); err == nil && !bytes.Equal(source, prepared) && len(description.Memories) > 0 {
		// The host enforces the original maximum.
		memory := &linearMemory{limit: 1 << 32, most: 1 << 32}
		if declared := description.Memories[0]; declared.HasMax {
			memory.most = uint64(declared.Max) << 16
		}
		ctx = experimental.WithMemoryAllocator(ctx, memory)
	}
	instance, err := w.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(as).WithStartFunctions())
	if err != nil {
		return "instantiate: " + reasonOf(err)
	}
	if err := begin(w.ctx, instance); err != nil {
		return "instantiate: " + reasonOf(err)
	}
	w.last = instance
	if name != "" {
		w.named[name] = instance
	}
	return "ok"
}

func (w *world) instance(name string) api.Module {
	if name == "" {
		return w.last
	}
	return w.named[name]
}

// do performs an action and returns all that it shows.
func (w *world) do(a action) (string, error) {
	instance := w.instance(a.Module)
	if instance == nil {
		return "no instance", nil
	}
	if a.Type == "get" {
		return fmt.Sprint(instance.ExportedGlobal(a.Field).Get()), nil
	}
	var args []uint64
	for _, arg := range a.Args {
		words, err := arg.words()
		if err != nil {
			return "", err
		}
		args = append(args, words...)
	}
	settle(instance)
	function := instance.ExportedFunction(a.Field)
	words := max(len(args), 2*len(function.Definition().ResultTypes()))
	stack := make([]uint64, words)
	copy(stack, args)
	if err := function.CallWithStack(w.ctx, stack); err != nil {
		return "failed: " + reasonOf(err), nil
	}
	results := 0
	for _, t := range function.Definition().ResultTypes() {
		results++
		if t == 0x7b { // v128
			results++
		}
	}
	return fmt.Sprintf("%x %s", stack[:results], memoryDigest(instance)), nil
}

func memoryDigest(instance api.Module) string {
	memory, ok := memoryOf(instance)
	if !ok {
		return "-"
	}
	hash := fnv.New64a()
	bytes, _ := memory.Read(0, memory.Size())
	_, _ = hash.Write(bytes)
	return fmt.Sprintf("%d:%x", memory.Size(), hash.Sum64())
}

// reasonOf returns a failure without its trace.
func reasonOf(err error) string {
	if reason, _, ok := trapOf(err); ok {
		return reason
	}
	// How large a table may grow is what the engine changes, and linking compares it; who
	// called the start function is another difference.
	text, _, _ := strings.Cut(err.Error(), "maximum size mismatch")
	return text
}

// rewriteAll is what the engine does with a module before it compiles it, with the data segments after it again: they
// are written by wazero here, and by the engine there.
func rewriteAll(source []byte) ([]byte, error) { return rewriteFor(source, false) }

// rewriteLinked is the same for a module that uses another's counter.
func rewriteLinked(source []byte) ([]byte, error) { return rewriteFor(source, true) }

func rewriteFor(source []byte, linked bool) ([]byte, error) {
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, err
	}
	r, err := rewriteWithin(context.Background(), source, description, wasm.Bounds{}, role{linked: linked}, nil)
	if err != nil || len(r.data) == 0 {
		return r.source, err
	}
	return withSegments(r.source, unpacked(r.data))
}

// withSegments returns a rewritten module with more active segments, after its own.
func withSegments(source []byte, segments []wasm.Segment) ([]byte, error) {
	m, err := wasm.Inspect(source)
	if err != nil {
		return nil, err
	}
	present := map[wasm.SectionID]wasm.Section{}
	for _, s := range m.Sections {
		present[s.ID] = s
	}
	data, counted := present[wasm.SectionData], present[wasm.SectionDataCount]
	if data.End == 0 {
		return append(source, section(11, activeSegments(segments)...)...), nil
	}
	_, head := binary.Uvarint(source[data.Content:])
	_, added := binary.Uvarint(activeSegments(segments))
	count := leb(m.DataSegments + len(segments))
	return join(source[:counted.Offset], section(12, count...), source[counted.End:data.Offset],
		section(11, join(count, source[data.Content+head:data.End], activeSegments(segments)[added:])...)), nil
}

// unpacked undoes packData.
func unpacked(packed []byte) (segments []wasm.Segment) {
	for len(packed) > 0 {
		offset, end := binary.LittleEndian.Uint32(packed), packedHead+binary.LittleEndian.Uint32(packed[4:])
		segments = append(segments, wasm.Segment{Offset: offset, Bytes: packed[packedHead:end]})
		packed = packed[end:]
	}
	return segments
}

// exhausted reports whether a call ended for want of stack: the pass that bounds depth
// traps before the engine does.
func exhausted(original, rewritten string) bool {
	return strings.Contains(original, "stack overflow") && strings.Contains(rewritten, "unreachable")
}

func TestSpecificationBehavesTheSame(t *testing.T) {
	out := moduleFolder(t, "github.com/tetratelabs/wazero")
	root := filepath.Join(out, "internal", "integration_test", "spectest")
	spectest := read(t, filepath.Join(root, "testdata", "spectest.wasm"))
	modules, actions := 0, 0
	for _, version := range []string{"v1", "v2"} {
		scripts, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, scripts)
		for n, script := range testsize.Sample(scripts, 6) {
			m, a := compareScript(t, script, spectest, rewriteAll)
			modules, actions = modules+m, actions+a
			if n%4 == 0 {
				compareScript(t, script, spectest, rewriteLinked)
			}
		}
	}
	t.Logf("%d modules and %d actions behave the same", modules, actions)
	assert.Greater(t, modules, testsize.Of(30, 2500))
	assert.Greater(t, actions, testsize.Of(600, 56_000))
}

func compareScript(t *testing.T, script string, spectest []byte, rewrite func([]byte) ([]byte, error)) (modules, actions int) {
	text := read(t, script)
	var parsed struct {
		Commands []scriptCommand `json:"commands"`
	}
	require.NoError(t, json.Unmarshal(text, &parsed))
	original, err := newWorld(t.Context(), spectest, func(source []byte) ([]byte, error) { return source, nil })
	require.NoError(t, err)
	defer original.runtime.Close(t.Context())
	rewritten, err := newWorld(t.Context(), spectest, rewrite)
	require.NoError(t, err)
	defer rewritten.runtime.Close(t.Context())

	for i, c := range parsed.Commands {
		where := fmt.Sprintf("%s:%d", filepath.Base(script), c.Line)
		switch c.Type {
		case "module", "assert_uninstantiable", "assert_unlinkable":
			source := read(t, filepath.Join(filepath.Dir(script), c.Filename))
			as := registeredAs(parsed.Commands[i:])
			want, got := original.instantiate(source, c.Name, as), rewritten.instantiate(source, c.Name, as)
			if c.Type == "module" || want != "ok" { // else wazero accepts segments that do not fit a table
				assert.Equal(t, want, got, where)
			} else if got != "ok" {
				assert.Contains(t, got, "so instantiating the module traps", where)
			}
			modules++
		case "action", "assert_return", "assert_trap", "assert_exhaustion":
			want, err := original.do(c.Action)
			require.NoError(t, err, where)
			got, err := rewritten.do(c.Action)
			require.NoError(t, err, where)
			if !exhausted(want, got) {
				assert.Equal(t, want, got, where)
			}
			actions++
		}
	}
	return modules, actions
}

// registeredAs returns the name that a later command gives the module of the first one.
func registeredAs(commands []scriptCommand) string {
	for _, c := range commands[1:] {
		switch {
		case c.Type == "register" && (c.Name == "" || c.Name == commands[0].Name):
			return c.As
		case c.Type == "module" && commands[0].Name == "":
			return "" // from here on "" means another module
		}
	}
	return ""
}

// begin calls the start function, which a rewritten module exports.
func begin(ctx context.Context, instance api.Module) error {
	start := instance.ExportedFunction(wasm.StartName)
	if start == nil {
		return nil
	}
	_, err := start.Call(ctx)
	return err
}

// settle readies an instance for another call after a trap.
func settle(instance api.Module) {
	if depth := instance.ExportedGlobal("caisson:depth@1"); depth != nil {
		depth.(api.MutableGlobal).Set(0)
	}
}
