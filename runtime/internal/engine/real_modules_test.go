//go:build !race

// Nothing here runs at the same time as anything else, and the race detector would take minutes.

package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/assemblyscript"
	"github.com/tetratelabs/wazero/imports/emscripten"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	benchmark "github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestModulesInCAndRustBehaveTheSame runs the benchmarks' kernels, which a compiler made that optimises,
// and which compute, and their tool as a WASI command.
func TestModulesInCAndRustBehaveTheSame(t *testing.T) {
	t.Parallel()
	var launches []launch
	for _, input := range []string{string(benchmark.NewCall(1000).Input), string(benchmark.NewCall(100_000).Input), `{"text": 1}`, `[`, ``} {
		launches = append(launches, launch{[]string{"tool"}, input})
	}
	var script []step
	for _, kernel := range benchmark.AllKernels() {
		script = append(script, step{kernel.Name, []uint64{uint64(kernel.Size)}})
	}
	var all []candidate
	for _, language := range []benchmark.Language{benchmark.C, benchmark.Rust} {
		all = append(all,
			candidate{name: "kernels in " + string(language), source: kernels(t, language), rows: [][]uint64{{0}, {3}}, fuel: 2_000_000_000, script: script},
			candidate{name: "command in " + string(language), source: command(t, language), launches: launches, fuel: 1 << 40})
	}
	assert.Equal(t, 4, compareAll(t, all).modules)
}

// writeFiles makes a folder with files, by slash-separated name.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return folder
}

// readFiles returns the contents of a folder.
func readFiles(t *testing.T, folder string) string {
	t.Helper()
	var text strings.Builder
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			fmt.Fprintln(&text, name)
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		fmt.Fprintf(&text, "%s: %q\n", name, content)
		return err
	})
	require.NoError(t, err)
	return text.String()
}

// mount shows guests a folder of the host, without the file attributes that differ between copies of the folder: guests
// keep such attributes in memory.
func mount(folder, guest string, readOnly bool) wazero.FSConfig {
	var shown experimentalsys.FS = timelessFS{sysfs.DirFS(folder)}
	if readOnly {
		shown = &sysfs.ReadFS{FS: shown}
	}
	return wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(shown, guest)
}

// timelessFS hides when and where on the disk files were made.
type timelessFS struct{ experimentalsys.FS }

func (f timelessFS) OpenFile(path string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	file, errno := f.FS.OpenFile(path, flag, perm)
	if errno != 0 {
		return nil, errno
	}
	return &timelessFile{File: file}, 0
}

func (f timelessFS) Stat(path string) (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.FS.Stat(path)
	return timeless(stat), errno
}

func (f timelessFS) Lstat(path string) (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.FS.Lstat(path)
	return timeless(stat), errno
}

func timeless(s sys.Stat_t) sys.Stat_t {
	return sys.Stat_t{Mode: s.Mode, Nlink: s.Nlink, Size: s.Size}
}

// timelessFile is an open file or directory of a timelessFS.
type timelessFile struct {
	experimentalsys.File
	entries []experimentalsys.Dirent // that are left to be returned
}

func (f *timelessFile) Stat() (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.File.Stat()
	return timeless(stat), errno
}

func (f *timelessFile) Dev() (uint64, experimentalsys.Errno) { return 0, 0 }

func (f *timelessFile) Ino() (sys.Inode, experimentalsys.Errno) { return 0, 0 }

// Readdir implements experimentalsys.File. All entries come at once from the directory, first
// and when it was rewound, because their order is the disk's.
func (f *timelessFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	entries, errno := f.File.Readdir(-1)
	if errno != 0 {
		return nil, errno
	}
	if len(entries) > 0 {
		for i := range entries {
			entries[i].Ino = 0
		}
		slices.SortFunc(entries, func(a, b experimentalsys.Dirent) int { return cmp.Compare(a.Name, b.Name) })
		f.entries = entries
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	next := f.entries[:n]
	f.entries = f.entries[n:]
	return next, 0
}

// side is one form of a module in a separate wazero runtime, whose WASI, clocks and random bytes are the same on all
// sides.
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

// launch holds the arguments and input of a program.
type launch struct {
	arguments []string
	input     string
}

// load compiles a module and provides its imports.
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

// offerModule provides the functions that the module imports from one host module.
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

// words returns the number of words that wazero takes for values of these types.
func words(types []api.ValueType) int {
	return len(types) + bytes.Count(types, []byte{vector})
}

// values returns a copy of the words that hold values of these types. The upper half of a 32-bit value's word is
// undefined: wazero leaves its previous contents.
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

// The files real_modules_*_test.go run modules that compilers made, each unchanged and as this engine rewrites it, and
// compare everything that is visible: results, output, exit codes, traps with their traces, exported globals, and every
// byte of memory.

// form is one way in which a module is run.
type form struct {
	name      string
	rewritten bool
	prepare   func(source []byte) ([]byte, error)
}

// forms returns the rewritten form before the original: so a module that never ends is found before it runs where
// nothing ends it.
func forms() []form {
	return []form{{"rewritten", true, rewriteAll}, {"original", false, func(source []byte) ([]byte, error) { return source, nil }}}
}

// tally counts the compared modules, instances and calls.
type tally struct {
	modules, instances, calls int
	globals                   int // exported
	refused                   int // modules
	endless, overflows        int // calls that ended for want of fuel and of stack
}

func (t *tally) add(other tally) {
	t.modules += other.modules
	t.instances += other.instances
	t.calls += other.calls
	t.globals += other.globals
	t.refused += other.refused
	t.endless += other.endless
	t.overflows += other.overflows
}

func (t tally) String() string {
	return fmt.Sprintf("the same: %d modules with %d exported globals, %d instances, %d calls, of which %d ran out of stack and %d do not end; refused: %d modules",
		t.modules, t.globals, t.instances, t.calls, t.overflows, t.endless, t.refused)
}

// mostMemory is the maximum size of a memory here, in bytes.
const mostMemory = 128 << 20

// keeper allocates memories and keeps them readable when their instances are closed, as
// those of programs are that exit. It serves one goroutine.
type keeper struct{ kept []*keptMemory }

// Allocate implements experimental.MemoryAllocator.
func (k *keeper) Allocate(uint64, uint64) experimental.LinearMemory {
	memory := &keptMemory{}
	k.kept = append(k.kept, memory)
	return memory
}

type keptMemory struct{ bytes []byte }

// Reallocate implements experimental.LinearMemory.
func (m *keptMemory) Reallocate(size uint64) []byte {
	switch {
	case size > mostMemory:
		return nil
	case size <= uint64(cap(m.bytes)):
		m.bytes = m.bytes[:size]
	default:
		grown := make([]byte, size, size+size/2)
		copy(grown, m.bytes)
		m.bytes = grown
	}
	return m.bytes[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *keptMemory) Free() {}

// unlike tells the first difference between two sides' memories, or nothing.
func (k *keeper) unlike(other *keeper) string {
	if len(k.kept) != len(other.kept) {
		return fmt.Sprintf("%d memories, not %d", len(k.kept), len(other.kept))
	}
	for i, memory := range k.kept {
		a, b := memory.bytes, other.kept[i].bytes
		if len(a) != len(b) {
			return fmt.Sprintf("memory %d has %d bytes, not %d", i, len(a), len(b))
		}
		if bytes.Equal(a, b) {
			continue
		}
		for at := range a {
			if a[at] != b[at] {
				return fmt.Sprintf("memory %d differs from byte %d on", i, at)
			}
		}
	}
	return ""
}

// signature matches the part of a trace's line that rewriting does not change: names are removed with the custom
// sections, and the added import moves the indices.
var signature = regexp.MustCompile(`(?m)^\t.*?(\((?:[ifv]\d+|externref|funcref|unknown|,)*\)(?: [^ \n]*)?(?: \(recovered by wazero\))?)$`)

// nameless returns a failure's text with only the signatures of the functions in its trace. Functions that the
// rewriting added, whose indices are added or more, are left out.
func nameless(text string, added int) string {
	var kept []string
	for line := range strings.Lines(text) {
		found := frame.FindStringSubmatch(line)
		if found != nil && strings.HasPrefix(line, "\t") {
			if index, err := strconv.Atoi(found[1]); err != nil || index >= added {
				continue
			}
		}
		kept = append(kept, line)
	}
	return signature.ReplaceAllString(strings.Join(kept, ""), "\t$1")
}

// failureOf returns the parts of a failure that must be the same on all sides.
func failureOf(err error, added int) string {
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("exit %d", exit.ExitCode())
	}
	if reason, trace, ok := trapOf(err); ok {
		return nameless(reason+"\n\t"+strings.ReplaceAll(trace, "\n", "\n\t"), added)
	}
	return nameless(err.Error(), added)
}

// addedFrom returns the index of the first function that the rewriting of a module adds after its own.
func addedFrom(description *wasm.Module) int {
	index := 1 + len(description.Functions) // 1: the import of the meter
	for _, imported := range description.Imports {
		if imported.Kind == wasm.ExternFunction {
			index++
		}
	}
	return index
}
