package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/singleflight"

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
	if m.Execution == manifests.ExecutionClient {
		return engine.Source{}, fmt.Errorf("%w: %s has none, since the client runs it", ErrModule, m.Name)
	}
	root, err := os.OpenRoot(filepath.Dir(m.File))
	if err != nil {
		return engine.Source{}, fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer root.Close()
	files := moduleFiles{root, filepath.Dir(m.File), modules.MaxBytes}
	var source engine.Source
	if source.Module, err = files.readFile(m.Module.Path); err != nil {
		return engine.Source{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Module.Libraries)) {
		library, err := files.readFile(m.Module.Libraries[name])
		if err != nil {
			wrong, ok := errors.AsType[*unusableError](err)
			if !ok {
				wrong = &unusableError{problem: err.Error(), cause: err}
			}
			wrong.library = name
			return engine.Source{}, wrong
		}
		if source.Libraries == nil {
			source.Libraries = map[string][]byte{}
		}
		source.Libraries[name] = library
	}
	if m.Module.SHA256 == "" {
		return source, nil // its digest may not be needed
	}
	return source, checkPinned(m, source.Digest())
}

// moduleFiles reads the files of a tool's modules.
type moduleFiles struct {
	root *os.Root
	dir  string // where root is
	left int64  // how many bytes may still be read
}

func (f *moduleFiles) readFile(path string) ([]byte, error) {
	name := filepath.FromSlash(path)
	file, info, err := hostfile.OpenIn(f.root, name, hostfile.Follow)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: %s does not exist; compile the tool first", ErrModule, filepath.Join(f.dir, name))
	case errors.Is(err, hostfile.ErrIrregular):
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrModule, path)
	case err != nil:
		reason := err
		if inPath, ok := errors.AsType[*fs.PathError](err); ok {
			reason = inPath.Err
		}
		return nil, &unusableError{problem: fmt.Sprintf("%v: %s: %v", ErrModule, filepath.Join(f.dir, name), reason), fix: "let the user who runs Caisson read the file", cause: err}
	}
	defer file.Close()
	if info.Size() > modules.MaxBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrModule, path, info.Size(), modules.MaxBytes)
	}
	if info.Size() > f.left {
		return nil, fmt.Errorf("%w: with %s, the modules of the tool have more than %d bytes", ErrModule, path, modules.MaxBytes)
	}
	buffer := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead)) // the file may have grown since
	_, err = buffer.ReadFrom(io.LimitReader(file, f.left+1))
	source := buffer.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	if f.left -= int64(len(source)); f.left < 0 {
		return nil, fmt.Errorf("%w: %s grew over the limit of %d bytes while it was read", ErrModule, path, modules.MaxBytes)
	}
	return source, nil
}

// checkPinned compares the digest of a tool's code with the manifest's pin, if there is one.
func checkPinned(m *manifests.Manifest, digest engine.Digest) error {
	if pin := m.Module.SHA256; pin != "" && pin != digest.String() {
		return fmt.Errorf("%w: %s has sha256 %s, line %d of %s pins %s",
			ErrDigest, codeOf(m), digest, m.Line("module.sha256"), m.File, pin)
	}
	return nil
}

// codeOf names what a tool's digest is of.
func codeOf(m *manifests.Manifest) string {
	if len(m.Module.Libraries) > 0 {
		return m.Module.Path + " with its libraries"
	}
	return m.Module.Path
}

// readScript reads a manifest's script. It checks the pin, and returns the script even if that is another's.
func readScript(m *manifests.Manifest, folder interpreter.Folder) (*script.Script, error) {
	s, err := script.Read(m, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return s, checkPinned(m, s.Digest)
}

// moduleDigest reads a manifest's module with its libraries, or its script, and returns the digest.
func moduleDigest(m *manifests.Manifest) (engine.Digest, error) {
	if m.Module.Language != modules.LanguageNone {
		s, err := readScript(m, "")
		if err != nil {
			return engine.Digest{}, err
		}
		return s.Digest, nil
	}
	source, err := readSource(m)
	if err != nil {
		return engine.Digest{}, err
	}
	return source.Digest(), nil
}

// doShared runs a function once for all callers that ask for its key meanwhile. Each waits until its context ends. The
// function does not look at the time, and the files of a module may have a hundred megabytes.
func doShared[T any](
	ctx context.Context, group *singleflight.Group, key string, do func(context.Context) (T, error),
) (T, error) {
	var none T
	done := group.DoChan(key, func() (_ any, err error) {
		defer func() { // singleflight runs it in another goroutine, where its caller cannot recover
			if value := recover(); value != nil {
				err = &engine.PanicError{Function: key, Value: value, Stack: debug.Stack()}
			}
		}()
		return do(context.WithoutCancel(ctx))
	})
	select {
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	case <-ctx.Done():
		return none, &engine.Error{Op: "compile", Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
}

// compile reads, checks and compiles a tool's module with its libraries, or the interpreter of its script.
func (t *Tool) compile(ctx context.Context) (*engine.Module, error) {
	m, source, err := t.manifest, engine.Source{}, error(nil)
	if t.script != nil {
		if source.Module, err = t.script.Module(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInterpreter, err)
		}
	} else {
		source, err = readSource(m)
	}
	if err == nil {
		err = checkNames(m, t.runtime.functions)
	}
	if err != nil {
		return nil, err
	}
	module, err := t.runtime.engine.CompileIf(ctx, source, func(linked *wasm.Linked) error {
		return checkCommand(m, source, linked, t.runtime.functions) // before a compilation, which may take long
	})
	if errors.Is(err, engine.ErrModule) {
		err = unusable(m, source, err)
	}
	return module, err
}

// digestOfBound returns the digest of the tool's module if some grant is bound to a digest. It
// returns zero if none is, or if the module cannot be read. Then no bound grant holds.
func digestOfBound(m *manifests.Manifest, grants manifests.Grants) (engine.Digest, error) {
	if !isBound(grants) {
		return engine.Digest{}, nil
	}
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

// isBound reports whether any grant is bound to a digest.
func isBound(g manifests.Grants) bool {
	return slices.ContainsFunc(g.Elements(), func(e manifests.Element) bool { return e.SHA256 != "" }) ||
		slices.ContainsFunc(g.Approved, func(a manifests.Binding) bool { return a.SHA256 != "" })
}
