package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// build compiles a source into a Module, with its dependencies.
func (e *Engine) build(ctx context.Context, wanted Digest, source *inspected) (_ *Module, err error) {
	hasKernel := e.kernel.isImported(source.linked.Imports)
	libraries := len(source.linked.Order)
	m, err := e.buildOne(ctx, source.Module, source.linked.Main,
		role{linked: hasKernel || libraries > 0, libraries: libraries})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if unclosed := m.close(ctx); unclosed != nil {
			err = errors.Join(err, unclosed)
		}
	}()
	m.digest, m.linked = wanted, source.linked
	if hasKernel {
		kernel, err := e.compiledKernel(ctx)
		if err != nil {
			return nil, &Error{Op: "compile", Kind: ErrHost, Reason: err.Error(), Err: err}
		}
		m.dependencies, m.hasKernel = append(m.dependencies, linkedModule{e.kernel.Module, kernel}), true
	}
	for _, name := range source.linked.Order {
		library, err := e.buildOne(ctx, source.Libraries[name], source.libraries[name],
			role{linked: len(m.dependencies) > 0, libraries: libraries})
		if err != nil {
			if failure, ok := errors.AsType[*Error](err); ok {
				failure.Library = name
			}
			return nil, err
		}
		library.owner = m
		m.dependencies = append(m.dependencies, linkedModule{name, library})
		m.residence.held.bytes += library.residence.held.bytes
		if reason := library.rewritten.Unrestorable; reason != "" && m.rewritten.Unrestorable == "" {
			m.rewritten.Unrestorable = fmt.Sprintf("the library %q: %s", name, reason)
		}
	}
	return m, nil
}

// buildOne compiles a module without its dependencies.
func (e *Engine) buildOne(ctx context.Context, source []byte, description *wasm.Module, in role) (*Module, error) {
	wanted := DigestOf(source)
	in.trusted = e.trusted[wanted]
	made, err := e.obtain(ctx, wanted, source, description, in)
	if err != nil {
		if made.code != nil { // it could not be stored
			err = errors.Join(err, made.code.Close(ctx))
		}
		return nil, compileError(err)
	}
	data := made.rewritten.data
	made.rewritten.source, made.rewritten.data, made.rewritten.frames = nil, nil, nil // they are large and not used again
	if e.tested != nil {
		<-e.tested
	}
	if made.rewritten.Unrestorable == "" {
		made.rewritten.Unrestorable = e.unreliable
	}
	names := wasm.FunctionNames(source, description)
	m := &Module{engine: e, imaging: make(chan struct{}, 1), digest: wanted, description: description,
		names: names, manyItems: itemsOf(description) >= manyItems,
		rewritten: made.rewritten, compiled: made.code, estimated: made.estimated, data: data}
	m.residence.module, m.residence.held.bytes = m, made.bytes+decodedBytes(description)+namesBytes(names)
	return m, nil
}

// manyItems is the number of references, globals and imports from which making an instance takes a millisecond or more.
// It cannot be stopped meanwhile.
const manyItems = 1 << 13

// itemsOf estimates the number of references, globals and imports that each instance of a module makes. Entries of
// tables are cleared, many in the time of one item.
func itemsOf(m *wasm.Module) int {
	items := len(m.Imports) + len(m.Globals)
	for _, table := range m.Tables {
		items += int(table.Limits.Min / 16)
	}
	for _, section := range m.Sections {
		if section.ID == wasm.SectionElement {
			items += section.End - section.Content // a byte for each, at least
		}
	}
	return items
}

// namesBytes returns the memory that the names of functions hold, in bytes.
func namesBytes(names map[uint32]string) (bytes int64) {
	const entry = 48
	for _, name := range names {
		bytes += entry + int64(len(name))
	}
	return bytes
}

// decodedBytes estimates the size of a module's descriptions, ours and wazero's, without its code and data. The numbers
// are measured with wazero v1.12.0.
func decodedBytes(m *wasm.Module) int64 {
	const function, item, elementByte, value = 300, 50, 40, 40
	bytes := function*len(m.Functions) + item*(len(m.Types)+len(m.Imports)+len(m.Globals)+len(m.Exports)+m.ElementSegments)
	for _, t := range m.Types {
		bytes += value * (len(t.Params) + len(t.Results))
	}
	for _, section := range m.Sections {
		if section.ID == wasm.SectionElement {
			bytes += elementByte * (section.End - section.Content)
		}
	}
	return int64(bytes)
}

type buildResult struct {
	rewritten rewritten
	code      wazero.CompiledModule
	bytes     int64 // in memory, as far as known
	estimated int64 // the part of bytes that is an estimate of the native code
}

// codeGrowth is the maximum number of bytes of native code per byte of a module, in compilers' output. The first
// instance shows the true number.
const codeGrowth = 6

// obtain loads a module from the store, or else compiles it. Modules in the store were validated
// and rewritten before they were stored.
func (e *Engine) obtain(
	ctx context.Context, wanted Digest, source []byte, description *wasm.Module, in role,
) (buildResult, error) {
	if e.store == nil {
		return e.compileAnew(ctx, wanted, source, description, in)
	}
	entry := e.store.entry(wanted, in)
	switch {
	case e.store.kept:
		found, err := e.load(ctx, entry)
		if err == nil {
			return found, e.store.used(entry, time.Now())
		}
		if !errors.Is(err, errNoEntry) {
			return buildResult{}, err
		}
	case e.store.filled != "":
		if found, ok := e.loadFilled(ctx, entry); ok {
			return found, nil
		}
	}
	return e.compileAnew(ctx, wanted, source, description, in)
}

// loadFilled loads an entry of the filled directory. If there is one that cannot be used, it is
// reported: every process would compile the module again.
func (e *Engine) loadFilled(ctx context.Context, entry string) (buildResult, bool) {
	entry, err := e.store.filledEntry(entry)
	if errors.Is(err, errNoEntry) {
		return buildResult{}, false
	}
	if err == nil {
		var found buildResult
		if found, err = e.load(ctx, entry); err == nil {
			return found, true
		}
		err = fmt.Errorf("%s: %w", entry, err)
	}
	e.uncached.Do(func() {
		e.logger.WarnContext(ctx, "compiled code is not used, so the module is compiled again", "err", err)
		if e.onUncached != nil {
			e.onUncached(err)
		}
	})
	return buildResult{}, false
}

// rewriteBounded rewrites a module, or refuses one that exceeds the bounds on the cost of compilation. A child process
// can be killed. In this process, where a compilation can be stopped only between two functions, each function is
// bounded, unless the module is trusted. Functions are assumed to take at least the given frames.
func (e *Engine) rewriteBounded(
	ctx context.Context, source []byte, description *wasm.Module, in role, frames []int64,
) (rewritten, error) {
	bounds, here := wasm.Bounds{}, e.compiler.Executable == ""
	switch {
	case in.trusted:
		bounds = unbounded()
	case here:
		bounds = wasm.Uninterruptible()
	}
	r, err := rewriteWithin(ctx, source, description, bounds, in, frames)
	if err != nil && ctx.Err() != nil {
		return rewritten{}, context.Cause(ctx)
	}
	if here && errors.Is(err, wasm.ErrLimit) {
		if _, refused := rewriteWithin(ctx, source, description, wasm.Bounds{}, in, frames); refused == nil {
			err = fmt.Errorf("%w; the limits are higher where a child process compiles it", err)
		}
	}
	if err != nil {
		return r, &moduleError{err}
	}
	return r, nil
}

// enterCompiler waits for a slot of the semaphore of compilations. Each may use up to the limits on time and memory,
// and rewriting and proving a module use them in this process. The caller must call leaveCompiler.
func (e *Engine) enterCompiler(ctx context.Context) error {
	select {
	case e.compiling <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) leaveCompiler() { <-e.compiling }

// compileAnew rewrites a module and compiles it, into the store if there is one. If a function turns out to take much
// more of the stack than estimated, it does so again, with the actual frames.
func (e *Engine) compileAnew(
	ctx context.Context, wanted Digest, source []byte, description *wasm.Module, in role,
) (buildResult, error) {
	if err := e.enterCompiler(ctx); err != nil {
		return buildResult{}, err
	}
	defer e.leaveCompiler()
	if !in.trusted {
		wall := e.compiler.complete().Wall
		tooLong := &moduleError{fmt.Errorf("compiling it takes longer than %s", wall)}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wall, tooLong)
		defer cancel()
	}
	r, err := e.rewriteBounded(ctx, source, description, in, nil)
	if err != nil {
		return buildResult{}, err
	}
	compile := e.compileHere
	if e.store != nil {
		compile = e.compileToStore
	}
	compiled, err := compile(ctx, wanted, r, in)
	large, ok := errors.AsType[*framesError](err)
	if !ok {
		return compiled, err
	}
	if r, err = e.rewriteBounded(ctx, source, description, in, large.frames); err != nil {
		return buildResult{}, err
	}
	return compile(ctx, wanted, r, in)
}

// compileHere compiles a module in this process, into memory.
func (e *Engine) compileHere(ctx context.Context, _ Digest, r rewritten, _ role) (buildResult, error) {
	code, err := compileUntil(interruptible(ctx), e.runtime, r.source)
	if err == nil {
		err = e.checkCode(ctx, r, code)
	}
	if err != nil {
		return buildResult{}, err
	}
	define(code)
	estimated := codeGrowth * int64(len(r.source))
	return buildResult{r, code, estimated + int64(len(r.data)), estimated}, nil
}

// compileToStore compiles a module, in a child process unless it is trusted, and publishes it.
func (e *Engine) compileToStore(ctx context.Context, wanted Digest, r rewritten, in role) (_ buildResult, err error) {
	staging, remove, err := e.store.stage()
	if err != nil {
		return buildResult{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	compile := e.compiler.compile
	if in.trusted {
		compile = func(ctx context.Context, source []byte, directory string) error {
			return compileInto(interruptible(ctx), source, directory)
		}
	}
	entry, output := filepath.Join(staging, "entry"), filepath.Join(staging, "output")
	if err := errors.Join(os.Mkdir(entry, 0o700), os.Mkdir(output, 0o700)); err != nil {
		return buildResult{}, err
	}
	if err := compile(ctx, r.source, output); err != nil {
		return buildResult{}, err
	}
	if err := writeEntry(entry, r, output); err != nil {
		return buildResult{}, err
	}
	compiled, err := e.load(ctx, entry)
	if err == nil {
		err = e.checkCode(ctx, r, compiled.code)
	}
	if err != nil {
		return buildResult{}, err
	}
	if !e.store.kept {
		return compiled, nil
	}
	return compiled, e.store.publish(entry, e.store.entry(wanted, in))
}

// load reads an entry of the store. It never compiles.
func (e *Engine) load(ctx context.Context, entry string) (buildResult, error) {
	i, r, err := readEntry(entry)
	if err != nil {
		return buildResult{}, err
	}
	if err := e.checkSize(i.Code.Bytes); err != nil {
		return buildResult{}, err
	}
	loaded := buildResult{rewritten: r, bytes: int64(len(r.source)+len(r.data)) + i.Code.Bytes}
	err = e.view.show(entry, i, func() (err error) {
		loaded.code, err = e.runtime.CompileModule(ctx, r.source)
		return err
	})
	if err != nil {
		if loaded.code != nil {
			err = errors.Join(err, loaded.code.Close(ctx))
		}
		return buildResult{}, err
	}
	define(loaded.code)
	return loaded, nil
}

// define makes wazero v1.12.0 describe a module's functions now. Otherwise it does so, for all of them, when a call
// traps or is stopped for the first time, which takes time with functions × exports. Each module that the engine makes
// imports a function, the meter's.
func define(code wazero.CompiledModule) { code.ImportedFunctions() }

// checkSize refuses a module with more native code than the limit.
func (e *Engine) checkSize(bytes int64) error {
	if bytes > e.mostCode {
		return &moduleError{fmt.Errorf("it has more than %d MiB of native code", e.mostCode>>20)}
	}
	return nil
}

// checkCode checks the size of a module's native code, and compares the stack frames of its functions with the
// estimates of the depth pass. If a frame is far larger, the error is a [*framesError]. On an error, checkCode closes
// the code.
func (e *Engine) checkCode(ctx context.Context, r rewritten, code wazero.CompiledModule) error {
	text, offsets := machineCode(code)
	err := e.checkSize(int64(len(text)))
	if err == nil && goruntime.GOARCH == "amd64" {
		var taken []int64
		if taken, err = framesOf(text, offsets); err == nil {
			if large := r.checkFrames(taken); large != nil {
				err = large
			}
		}
	}
	if err != nil {
		return errors.Join(err, code.Close(ctx))
	}
	return nil
}

// compileError reports whether the module or the host caused a failed compilation.
func compileError(err error) error {
	if invalid, ok := errors.AsType[*moduleError](err); ok {
		return &Error{Op: "compile", Kind: ErrModule, Reason: invalid.reason.Error(), Err: invalid.reason}
	}
	if errors.Is(err, errInvalid) {
		return &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	return &Error{Op: "compile", Kind: ErrHost, Reason: "the module could not be compiled", Err: noSpace(err)}
}
