package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// build makes a module of its bytes.
func (e *Engine) build(ctx context.Context, wanted Digest, source []byte) (*Module, error) {
	// wazero trusts counts and dies on lies, so nothing reaches it unread.
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	made, err := e.obtain(ctx, wanted, source, description)
	if err != nil {
		return nil, compileError(err)
	}
	data := made.rewritten.data
	made.rewritten.source, made.rewritten.data = nil, nil // they are large, and not used again
	if e.tested != nil {
		<-e.tested
	}
	if made.rewritten.unrestorable == "" {
		made.rewritten.unrestorable = e.unreliable
	}
	return &Module{engine: e, digest: wanted, description: description,
		names: wasm.FunctionNames(source, description), rewritten: made.rewritten, compiled: made.code, data: data,
		residence: residence{bytes: made.bytes}}, nil
}

// made is what was made of a module.
type made struct {
	rewritten rewritten
	code      wazero.CompiledModule
	bytes     int64 // in memory, as far as it is known
}

// codeGrowth is how many bytes of code come of a byte of a module, at most by experience.
const codeGrowth = 6

// obtain returns what the store holds of a module, or else makes it. A module that the
// store holds was validated and rewritten when it came there.
func (e *Engine) obtain(ctx context.Context, wanted Digest, source []byte, description *wasm.Module) (made, error) {
	trusted := e.trusted[wanted]
	if e.store == nil {
		return e.compileHere(ctx, wanted, source, description, trusted)
	}
	entry := e.store.entry(wanted, trusted)
	if e.store.kept {
		found, err := e.load(ctx, entry)
		if err == nil {
			return found, e.store.used(entry, time.Now())
		}
		if !errors.Is(err, errNoEntry) {
			return made{}, err
		}
	}
	return e.compileToStore(ctx, wanted, source, description, trusted)
}

// validated rewrites a module, if it is within the bounds on what makes compiling slow. A child can be
// killed; what this process compiles must be done in a time that its size bounds, unless it is trusted.
func (e *Engine) validated(source []byte, description *wasm.Module, trusted bool) (rewritten, error) {
	bounds, here := wasm.Bounds{}, e.compiler.Executable == ""
	switch {
	case trusted:
		bounds = unbounded()
	case here:
		bounds = wasm.ForSize(len(source))
	}
	r, err := rewriteWithin(source, description, bounds)
	if here && errors.Is(err, wasm.ErrLimit) {
		return r, fmt.Errorf("%w: %w; it may be more complex where a child process compiles it", ErrModule, err)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return r, nil
}

// compileHere compiles a module in this process, into memory.
func (e *Engine) compileHere(ctx context.Context, wanted Digest, source []byte, description *wasm.Module, trusted bool) (made, error) {
	r, err := e.validated(source, description, trusted)
	if err != nil {
		return made{}, err
	}
	code, err := e.runtime.CompileModule(ctx, r.source)
	if err != nil {
		return made{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return made{r, code, codeGrowth*int64(len(r.source)) + int64(len(r.data))}, nil
}

// compileToStore compiles a module, in a child unless it is trusted, and publishes it.
func (e *Engine) compileToStore(ctx context.Context, wanted Digest, source []byte, description *wasm.Module, trusted bool) (_ made, err error) {
	r, err := e.validated(source, description, trusted)
	if err != nil {
		return made{}, err
	}
	staging, remove, err := e.store.stage()
	if err != nil {
		return made{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	compiler := e.compiler
	if trusted {
		compiler = Compiler{}
	}
	entry, output := filepath.Join(staging, "entry"), filepath.Join(staging, "output")
	if err := errors.Join(os.Mkdir(entry, 0o700), os.Mkdir(output, 0o700)); err != nil {
		return made{}, err
	}
	if err := compiler.compile(ctx, r.source, output); err != nil {
		return made{}, err
	}
	if err := writeEntry(entry, r, output); err != nil {
		return made{}, err
	}
	compiled, err := e.load(ctx, entry)
	if err != nil || !e.store.kept {
		return compiled, err
	}
	return compiled, e.store.publish(entry, e.store.entry(wanted, trusted))
}

// load reads an entry. It compiles nothing.
func (e *Engine) load(ctx context.Context, entry string) (made, error) {
	i, r, err := readEntry(entry)
	if err != nil {
		return made{}, err
	}
	loaded := made{rewritten: r, bytes: int64(len(r.source)+len(r.data)) + i.Code.Bytes}
	err = e.view.show(entry, i, func() (err error) {
		loaded.code, err = e.runtime.CompileModule(ctx, r.source)
		return err
	})
	return loaded, err
}

// compileError says whose fault a failed compilation is.
func compileError(err error) error {
	if errors.Is(err, errInvalid) || errors.Is(err, ErrModule) {
		return &Error{Op: "compile", Kind: ErrModule, Reason: strings.TrimPrefix(err.Error(), ErrModule.Error()+": "), Err: err}
	}
	return &Error{Op: "compile", Kind: ErrHost, Reason: "the module could not be compiled", Err: err}
}
