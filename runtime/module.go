package runtime

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/script"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// readSource reads a manifest's module and its libraries once, as regular files below the manifest's
// directory. It checks the pin before anything else uses the bytes.
func readSource(m *manifests.Manifest) (engine.Source, error) {
	files := map[string]*bytes.Buffer{}
	err := copyModules(m, func(library string, size int64) io.Writer {
		files[library] = bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // the file may have grown since
		return files[library]
	})
	if err != nil {
		return engine.Source{}, err
	}
	source := engine.Source{Module: files[""].Bytes()}
	for name := range m.Module.Libraries {
		if source.Libraries == nil {
			source.Libraries = map[string][]byte{}
		}
		source.Libraries[name] = files[name].Bytes()
	}
	if m.Module.SHA256 == "" {
		return source, nil // its digest may not be needed
	}
	return source, checkPinned(m, source.Digest())
}

// hashSource returns the digest of the source that readSource returns, but holds only a piece of it at a time.
func hashSource(m *manifests.Manifest) (engine.Digest, error) {
	hashes := map[string]hash.Hash{}
	err := copyModules(m, func(library string, _ int64) io.Writer {
		hashes[library] = sha256.New()
		return hashes[library]
	})
	if err != nil {
		return engine.Digest{}, err
	}
	libraries := map[string]engine.Digest{}
	for name := range m.Module.Libraries {
		libraries[name] = engine.Digest(hashes[name].Sum(nil))
	}
	digest := engine.LinkedDigest(engine.Digest(hashes[""].Sum(nil)), libraries)
	return digest, checkPinned(m, digest)
}

// copyModules copies a manifest's module, and then its libraries, to the writers that to returns for their names. The
// module's name is empty.
func copyModules(m *manifests.Manifest, to func(library string, size int64) io.Writer) error {
	if m.Execution == manifests.ExecutionClient {
		return fmt.Errorf("%w: %s has none, since the client runs it", ErrModule, m.Name)
	}
	root, err := os.OpenRoot(filepath.Dir(m.File))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer root.Close()
	files := moduleFiles{root, filepath.Dir(m.File), modules.MaxBytes}
	copyOne := func(library, path string) error {
		return files.copyFile(path, func(size int64) io.Writer { return to(library, size) })
	}
	if err := copyOne("", m.Module.Path); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Module.Libraries)) {
		if err := copyOne(name, m.Module.Libraries[name]); err != nil {
			wrong, ok := errors.AsType[*unusableError](err)
			if !ok {
				wrong = &unusableError{problem: err.Error(), cause: err}
			}
			wrong.library = name
			return wrong
		}
	}
	return nil
}

// moduleFiles reads the files of a tool's modules.
type moduleFiles struct {
	root *os.Root
	dir  string // where root is
	left int64  // how many bytes may still be read
}

// copyFile copies a file to the writer that to returns for its size.
func (f *moduleFiles) copyFile(path string, to func(size int64) io.Writer) error {
	name := filepath.FromSlash(path)
	file, info, err := hostfile.OpenIn(f.root, name, hostfile.Follow)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s does not exist; compile the tool first", ErrModule, filepath.Join(f.dir, name))
	case errors.Is(err, hostfile.ErrIrregular):
		return fmt.Errorf("%w: %s is not a regular file", ErrModule, path)
	case err != nil:
		reason := err
		if inPath, ok := errors.AsType[*fs.PathError](err); ok {
			reason = inPath.Err
		}
		return &unusableError{
			problem: fmt.Sprintf("%v: %s: %v", ErrModule, filepath.Join(f.dir, name), reason),
			fix:     "let the user who runs Caisson read the file", cause: err,
		}
	}
	defer file.Close()
	if info.Size() > modules.MaxBytes {
		return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrModule, path, info.Size(), modules.MaxBytes)
	}
	if info.Size() > f.left {
		return fmt.Errorf("%w: with %s, the modules of the tool have more than %d bytes", ErrModule, path, modules.MaxBytes)
	}
	copied, err := io.Copy(to(info.Size()), io.LimitReader(file, f.left+1))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	if f.left -= copied; f.left < 0 {
		return fmt.Errorf("%w: %s grew over the limit of %d bytes while it was read", ErrModule, path, modules.MaxBytes)
	}
	return nil
}

// checkPinned compares the digest of a tool's code with the manifest's pin, if there is one.
func checkPinned(m *manifests.Manifest, digest engine.Digest) error {
	if pin := m.Module.SHA256; pin != "" && pin != digest.String() {
		return fmt.Errorf("%w: %s has sha256 %s, line %d of %s pins %s",
			ErrDigest, codeOf(m), digest, m.Line("module.sha256"), m.File, pin)
	}
	return nil
}

// codeOf names the code that a tool's digest covers.
func codeOf(m *manifests.Manifest) string {
	if len(m.Module.Libraries) > 0 {
		return m.Module.Path + " with its libraries"
	}
	return m.Module.Path
}

func readScript(m *manifests.Manifest, folder interpreter.Folder) (*script.Script, error) {
	s, err := script.Read(m, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	if err := checkPinned(m, s.Digest); err != nil {
		return nil, err
	}
	return s, nil
}

// loadScript is like readScript, but also holds the script's files in r.scripts, which bounds them; see [Memory].
// Scripts are read one at a time, since a small package may unpack to many bytes.
func (r *Runtime) loadScript(ctx context.Context, m *manifests.Manifest) (*script.Script, error) {
	select {
	case r.unpacking <- struct{}{}:
		defer func() { <-r.unpacking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := readScript(m, r.interpreters)
	if err != nil {
		return nil, err
	}
	if err := r.scripts.Hold(s.Tree); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModule, m.Module.Path, err)
	}
	return s, nil
}

// moduleDigest reads a manifest's module with its libraries, or its script, and returns the digest.
func moduleDigest(m *manifests.Manifest) (engine.Digest, error) {
	if m.Module.Language == modules.LanguageNone {
		return hashSource(m)
	}
	s, err := readScript(m, "")
	if err != nil {
		return engine.Digest{}, err
	}
	return s.Digest, nil
}

// enterReader waits for a slot of the semaphore of those that read modules, which may have a hundred megabytes each.
// The caller must call leaveReader.
func (r *Runtime) enterReader(ctx context.Context) error {
	select {
	case r.modules <- struct{}{}:
		return nil
	case <-ctx.Done():
		return notRead(ctx)
	}
}

func (r *Runtime) leaveReader() { <-r.modules }

// compile reads, checks and compiles a tool's module with its libraries, or the interpreter of its script. The context
// ends when no call is waiting.
func (t *Tool) compile(ctx context.Context) (*engine.Module, error) {
	if err := checkNames(t.manifest, t.runtime.functions); err != nil {
		return nil, err
	}
	compilation, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	module, err := compilation.Wait(ctx, t.checker(engine.Source{}))
	if !errors.Is(err, ErrModule) && !errors.Is(err, engine.ErrModule) {
		return module, err
	}
	// The module's text may tell what to do about the error.
	if unread := t.runtime.enterReader(ctx); unread != nil {
		return nil, unread
	}
	defer t.runtime.leaveReader()
	source, unread := t.readSource()
	if unread != nil {
		source = engine.Source{} // it was changed meanwhile
	}
	if module, err = compilation.Wait(ctx, t.checker(source)); errors.Is(err, engine.ErrModule) {
		err = unusable(t.manifest, source, err)
	}
	return module, err
}

// begin returns the compilation of the tool's module. It holds the source only if it begins the compilation: many tools
// may have one module.
func (t *Tool) begin(ctx context.Context) (*engine.Compilation, error) {
	if err := t.runtime.enterReader(ctx); err != nil {
		return nil, err
	}
	defer t.runtime.leaveReader()
	c, err := t.find()
	if c != nil || err != nil {
		return c, err
	}
	source, err := t.readSource()
	if err != nil {
		return nil, err
	}
	c, err = t.runtime.engine.Begin(source, t.checker(source)) // a compilation may take long
	if errors.Is(err, engine.ErrModule) {
		err = unusable(t.manifest, source, err)
	}
	return c, err
}

// find returns the compilation of the tool's module, or nil if there is none. It hashes the files, a piece at a time,
// unless the tool is known to have a module that is not compiled: then they must be read anyway.
func (t *Tool) find() (*engine.Compilation, error) {
	e := t.runtime.engine
	if t.script != nil {
		return e.Find(t.script.Code(), 0), nil
	}
	libraries := len(t.manifest.Module.Libraries)
	t.mu.Lock()
	known := t.digest
	t.mu.Unlock()
	if known != (engine.Digest{}) && e.Find(known, libraries) == nil {
		return nil, nil
	}
	digest, err := hashSource(t.manifest)
	return e.Find(digest, libraries), err
}

// readSource reads the tool's module with its libraries, or the interpreter of its script.
func (t *Tool) readSource() (engine.Source, error) {
	if t.script == nil {
		return readSource(t.manifest)
	}
	module, err := t.script.Module()
	if err != nil {
		return engine.Source{}, fmt.Errorf("%w: %w", ErrInterpreter, err)
	}
	return engine.Source{Module: module}, nil
}

// checker returns a function that checks whether the manifest allows what a module imports and exports. The source may
// be zero.
func (t *Tool) checker(source engine.Source) func(*wasm.Linked) error {
	return func(linked *wasm.Linked) error {
		return checkCommand(t.manifest, source, linked, t.runtime.functions)
	}
}

// digestOfBound returns the digest of the tool's module if some grant is bound to a digest. It
// returns zero if none is, or if the module cannot be read. Then no bound grant holds.
func (r *Runtime) digestOfBound(
	ctx context.Context, m *manifests.Manifest, grants manifests.Grants,
) (engine.Digest, error) {
	isBound := slices.ContainsFunc(grants.Elements(), func(e manifests.Element) bool { return e.SHA256 != "" }) ||
		slices.ContainsFunc(grants.Approved, func(a manifests.Binding) bool { return a.SHA256 != "" })
	if !isBound {
		return engine.Digest{}, nil
	}
	if err := r.enterReader(ctx); err != nil {
		return engine.Digest{}, err
	}
	defer r.leaveReader()
	digest, err := moduleDigest(m)
	if err != nil && !errors.Is(err, ErrModule) {
		return engine.Digest{}, err
	}
	return digest, nil
}

// moduleText returns a digest in the form that grants use, or "" for the zero value.
func moduleText(digest engine.Digest) string {
	if digest == (engine.Digest{}) {
		return ""
	}
	return digest.String()
}
