//go:build !race

package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/assemblyscript"
	"github.com/tetratelabs/wazero/imports/emscripten"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// side is one form of a module in a wazero of its own, whose WASI, clocks and random bytes
// are the same on all sides.
type side struct {
	t        *testing.T
	form     form
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	added    int // index of the first function that the rewriting adds
	instance api.Module
	memories *keeper
	folder   string       // of the host, which a program sees as its root; empty for none
	shown    bytes.Buffer // standard output and error, and calls of imports
}

// launch is what a program is started with.
type launch struct {
	arguments []string
	input     string
}

// load compiles a module and offers what it imports.
func load(t *testing.T, f form, source []byte, description *wasm.Module) (*side, error) {
	ctx := t.Context()
	config := runtimeConfig().WithMemoryLimitPages(mostMemory >> 16)
	s := &side{t: t, form: f, runtime: wazero.NewRuntimeWithConfig(ctx, config), added: addedFrom(description)}
	prepared, err := f.prepare(source)
	if err != nil {
		return s, err
	}
	if s.compiled, err = s.runtime.CompileModule(ctx, prepared); err != nil {
		return s, err
	}
	if err := offerPasses(ctx, s.runtime); err != nil {
		return s, err
	}
	offered := map[string]bool{}
	for _, imported := range description.Imports {
		if imported.Kind != wasm.ExternFunction || offered[imported.Module] {
			continue
		}
		offered[imported.Module] = true
		if err := s.offerModule(ctx, imported.Module, description); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *side) close() {
	assert.NoError(s.t, s.runtime.Close(context.WithoutCancel(s.t.Context())))
}

// offerModule offers what the module imports under one name.
func (s *side) offerModule(ctx context.Context, name string, description *wasm.Module) error {
	builder := s.runtime.NewHostModuleBuilder(name)
	switch {
	case name == "wasi_snapshot_preview1" || name == "wasi_unstable":
		wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	case imports(description, name, "abort"):
		assemblyscript.NewFunctionExporter().WithTraceToStdout().ExportFunctions(builder)
	case imports(description, name, "invoke_i") || imports(description, name, "emscripten_notify_memory_growth"):
		exporter, err := emscripten.NewFunctionExporterForModule(s.compiled)
		if err != nil {
			return err
		}
		exporter.ExportFunctions(builder)
	default:
		s.offerRecorders(builder, name, description)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

func imports(description *wasm.Module, module, name string) bool {
	for _, imported := range description.Imports {
		if imported.Module == module && imported.Name == name {
			return true
		}
	}
	return false
}

// offerRecorders offers functions that write down how they are called and return zeros.
func (s *side) offerRecorders(builder wazero.HostModuleBuilder, module string, description *wasm.Module) {
	for _, imported := range description.Imports {
		if imported.Module != module || imported.Kind != wasm.ExternFunction {
			continue
		}
		parameters, results := bytesOf(imported.Function.Params), bytesOf(imported.Function.Results)
		record := func(_ context.Context, _ api.Module, stack []uint64) {
			fmt.Fprintf(&s.shown, "%s.%s(%x)\n", module, imported.Name, values(parameters, stack))
			clear(stack)
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(record), parameters, results).Export(imported.Name)
	}
}

func bytesOf(types []wasm.ValueType) []api.ValueType {
	converted := make([]api.ValueType, len(types))
	for i, t := range types {
		converted[i] = api.ValueType(t)
	}
	return converted
}

// vector is the type v128, which wazero does not name.
const vector = 0x7b

// words returns how many words wazero takes for values of these types.
func words(types []api.ValueType) int {
	return len(types) + bytes.Count(types, []byte{vector})
}

// values returns a copy of the words that hold values of these types. The upper half of the
// word of a small value means nothing, and wazero leaves there what was there.
func values(types []api.ValueType, stack []uint64) []uint64 {
	copied := slices.Clone(stack[:words(types)])
	i := 0
	for _, t := range types {
		switch t {
		case api.ValueTypeI32, api.ValueTypeF32:
			copied[i] = uint64(uint32(copied[i]))
		case vector:
			i++
		}
		i++
	}
	return copied
}

// start makes a fresh instance.
func (s *side) start(ctx context.Context, l launch) string {
	s.shown.Reset()
	s.memories, s.instance = &keeper{}, nil
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(l.arguments...).WithEnv("KIND", "test").
		WithStdin(bytes.NewReader([]byte(l.input))).WithStdout(&s.shown).WithStderr(&s.shown)
	s.folder = ""
	if len(l.arguments) > 0 {
		s.folder = writeFiles(s.t, map[string]string{"test.txt": "greet world\n", "project/notes.txt": "first\nsecond\n", "project/docs/deep.md": "# Title\n"})
		config = config.WithFSConfig(mount(s.folder, "/", false))
	}
	instance, err := s.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, s.memories), s.compiled, config)
	if err == nil {
		s.instance = instance
		err = begin(ctx, instance)
	}
	if err != nil {
		return "start: " + failureOf(err, s.added)
	}
	return ""
}

// call calls an exported function with words made of the numbers, and returns all that
// shows but memory.
func (s *side) call(ctx context.Context, name string, numbers []uint64) string {
	settle(s.instance)
	function := s.instance.ExportedFunction(name)
	parameters, results := function.Definition().ParamTypes(), function.Definition().ResultTypes()
	stack := make([]uint64, max(words(parameters), words(results)))
	for i := range words(parameters) {
		stack[i] = numbers[i%len(numbers)]
	}
	text := fmt.Sprintf("%s(%x): ", name, values(parameters, stack))
	if err := function.CallWithStack(ctx, stack); err != nil {
		text += failureOf(err, s.added)
	} else {
		text += fmt.Sprintf("%x", values(results, stack))
	}
	text += "\n" + s.shown.String()
	if s.folder != "" {
		text += readFiles(s.t, s.folder)
	}
	return text
}

// globals returns the values of the module's own exported globals.
func (s *side) globals(description *wasm.Module) []uint64 {
	var values []uint64
	for _, export := range description.Exports {
		if export.Kind == wasm.ExternGlobal && s.instance != nil {
			values = append(values, s.instance.ExportedGlobal(export.Name).Get())
		}
	}
	return values
}
