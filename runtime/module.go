package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// MaxModuleBytes is the maximum size of a module, in bytes.
const MaxModuleBytes = 128 << 20

// Errors for a tool's module, for use with [errors.Is].
var (
	// ErrModule means that the file cannot be read or is not a module that this runtime can run.
	ErrModule = errors.New("module cannot be used")
	// ErrDigest means that the module is not the one that the manifest pins, or no longer the
	// one that the tool had.
	ErrDigest = errors.New("module is not the pinned one")
)

// readModule reads a manifest's module once, as a regular file below the manifest's directory.
// It checks the pin before anything else uses the bytes.
func readModule(m *manifests.Manifest) ([]byte, error) {
	if m.Execution == manifests.ExecutionClient {
		return nil, fmt.Errorf("%w: %s has none, since the client runs it", ErrModule, m.Name)
	}
	root, err := os.OpenRoot(filepath.Dir(m.File))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer root.Close()
	name := filepath.FromSlash(m.Module.Path)
	file, info, err := hostfile.OpenIn(root, name, hostfile.Follow)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: %s does not exist; compile the tool first", ErrModule, filepath.Join(filepath.Dir(m.File), name))
	case errors.Is(err, hostfile.ErrIrregular):
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrModule, m.Module.Path)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer file.Close()
	if info.Size() > MaxModuleBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrModule, m.Module.Path, info.Size(), MaxModuleBytes)
	}
	buffer := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead)) // the file may have grown since
	_, err = buffer.ReadFrom(io.LimitReader(file, MaxModuleBytes+1))
	source := buffer.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	if len(source) > MaxModuleBytes {
		return nil, fmt.Errorf("%w: %s grew over the limit of %d bytes while it was read", ErrModule, m.Module.Path, MaxModuleBytes)
	}
	return source, checkPin(m, source)
}

// checkPin compares a module with the manifest's pin, if there is one.
func checkPin(m *manifests.Manifest, source []byte) error {
	if m.Module.SHA256 == "" {
		return nil
	}
	return checkPinned(m, engine.DigestOf(source))
}

// checkPinned compares the digest of a module or of a script tool with the manifest's pin, if there is one.
func checkPinned(m *manifests.Manifest, digest engine.Digest) error {
	if pin := m.Module.SHA256; pin != "" && pin != digest.String() {
		return fmt.Errorf("%w: %s has sha256 %s, line %d of %s pins %s",
			ErrDigest, m.Module.Path, digest, m.Line("module.sha256"), m.File, pin)
	}
	return nil
}

// moduleDigest reads a manifest's module or script and returns its digest.
func moduleDigest(m *manifests.Manifest) (engine.Digest, error) {
	if m.Module.Language != manifests.LanguageNone {
		s, err := readScript(m, "")
		if err != nil {
			return engine.Digest{}, err
		}
		return s.digest, nil
	}
	source, err := readModule(m)
	if err != nil {
		return engine.Digest{}, err
	}
	return engine.DigestOf(source), nil
}

// ModuleInfo describes a module without running it.
type ModuleInfo struct {
	SHA256  string   `json:"sha256"`
	Bytes   int      `json:"bytes"`
	Imports []string `json:"imports"` // "module.name", sorted
	Exports []string `json:"exports"` // sorted
	// MemoryBytes is the initial size of an instance's linear memory.
	MemoryBytes int64 `json:"memory_bytes"`
	// SeededGenerators lists the random number generators linked into the module that are
	// seeded only once, such as "Go's math/rand". Their output may repeat across calls that
	// resume from a snapshot. The list is a guess from the module's bytes, for people.
	SeededGenerators []string `json:"seeded_generators"`
	// Unused lists the permissions that the manifest requests but the module cannot use for
	// lack of an import, by their path in the manifest, such as "permissions.network".
	Unused []string `json:"unused"`
	// Interpreter is the name of a script's interpreter, with its version. SHA256 then covers the
	// script, its packages, its driver and the interpreter, and Bytes counts the first three.
	Interpreter string `json:"interpreter,omitempty"`
}

// InspectModule describes a manifest's module without compiling or running it. It checks the
// pin, that the module is valid, that it is a WASI command, and that it imports only functions
// that the runtime offers and the manifest requests. A client-run tool has no module; its
// ModuleInfo is zero with empty lists.
func InspectModule(m *manifests.Manifest) (ModuleInfo, error) {
	if m.Execution == manifests.ExecutionClient {
		return ModuleInfo{Imports: []string{}, Exports: []string{}, SeededGenerators: []string{}, Unused: []string{}}, nil
	}
	if m.Module.Language != manifests.LanguageNone {
		return inspectScript(m)
	}
	source, err := readModule(m)
	if err != nil {
		return ModuleInfo{}, err
	}
	description, err := wasm.Inspect(source)
	if err != nil {
		return ModuleInfo{}, unusable(m, source, err)
	}
	info := ModuleInfo{SHA256: engine.DigestOf(source).String(), Bytes: len(source), Imports: []string{}, Exports: []string{}}
	info.SeededGenerators = append([]string{}, wasm.SeededGenerators(source, description)...)
	for _, i := range description.Imports {
		info.Imports = append(info.Imports, i.Module+"."+i.Name)
	}
	for _, e := range description.Exports {
		info.Exports = append(info.Exports, e.Name)
	}
	for _, memory := range description.Memories {
		info.MemoryBytes += int64(memory.Min) << 16
	}
	slices.Sort(info.Imports)
	slices.Sort(info.Exports)
	info.Unused = append([]string{}, unused(m, description)...)
	if err := checkCommand(m, source, description, nil); err != nil {
		return info, err
	}
	return info, checkValid(m, source, description)
}

// checkValid refuses a module that cannot be instantiated. It accepts modules that are too
// complex to compile in this process, since the operator may trust them.
func checkValid(m *manifests.Manifest, source []byte, description *wasm.Module) error {
	analysis, err := wasm.Validate(source, description)
	switch {
	case errors.Is(err, wasm.ErrLimit):
		return nil
	case err == nil && analysis.Overrun != nil:
		err = analysis.Overrun
	}
	if err != nil {
		return unusable(m, source, err)
	}
	return nil
}

// compile reads, checks and compiles a tool's module, or the interpreter of its script.
func (t *Tool) compile(ctx context.Context) (*engine.Module, error) {
	read, m := func() ([]byte, error) { return readModule(t.manifest) }, t.manifest
	if t.script != nil {
		read = t.script.module
	}
	source, err := read()
	if err != nil {
		return nil, err
	}
	module, err := t.runtime.engine.CompileIf(ctx, engine.Source{Module: source}, func(linked *wasm.Linked) error {
		return checkCommand(m, source, linked.Main, t.runtime.functions) // before a compilation, which may take long
	})
	if errors.Is(err, engine.ErrModule) {
		err = unusable(m, source, err)
	}
	return module, err
}
