package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// MaxLibraries is how many libraries a module can have. Calls nest through all of them, so the bound on the
// stack is divided among them and the module (see [wasm.Passes]).
const MaxLibraries = 4

// Source is a module, and the libraries that it is linked with. Each instance of the module has an
// instance of each library beside it, which runs on the same fuel, within the same memory limit, and
// is reset together with it. The start functions (§2.5.9) of the libraries are called before that of the
// module; what else starts a library is among [Run.Initialize].
type Source struct {
	Module []byte
	// Libraries are up to MaxLibraries modules by the names under which their functions are imported;
	// nil for none.
	Libraries map[string][]byte
}

// Digest returns the digest of the module, or, if there are libraries, of all of them and their names.
func (s Source) Digest() Digest {
	libraries := map[string]Digest{}
	for name, library := range s.Libraries {
		libraries[name] = DigestOf(library)
	}
	return LinkedDigest(DigestOf(s.Module), libraries)
}

// LinkedDigest returns the digest of a [Source], from the digests of the module and of the libraries.
func LinkedDigest(module Digest, libraries map[string]Digest) Digest {
	if len(libraries) == 0 {
		return module
	}
	h := sha256.New()
	fmt.Fprintf(h, "caisson-linked/v1\n%s\n", module)
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		fmt.Fprintf(h, "%q %s\n", name, libraries[name])
	}
	return Digest(h.Sum(nil))
}

// size returns the number of bytes of all modules.
func (s Source) size() int {
	size := len(s.Module)
	for _, library := range s.Libraries {
		size += len(library)
	}
	return size
}

// inspected is a source whose modules have been read and can be linked.
type inspected struct {
	Source
	libraries map[string]*wasm.Module
	linked    *wasm.Linked
}

// inspect reads the modules. wazero trusts the counts in a module and crashes on false ones, so every
// module is inspected first.
func (e *Engine) inspect(source Source) (*inspected, error) {
	main, err := wasm.Inspect(source.Module)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	if len(source.Libraries) > MaxLibraries {
		return nil,
			&Error{Op: "compile", Kind: ErrModule,
				Reason: fmt.Sprintf("it has %d libraries, the limit is %d", len(source.Libraries), MaxLibraries)}
	}
	all := &inspected{Source: source, libraries: map[string]*wasm.Module{}}
	for _, name := range slices.Sorted(maps.Keys(source.Libraries)) {
		if e.offered[name] {
			return nil,
				&Error{Op: "compile", Kind: ErrModule,
					Reason: fmt.Sprintf("a library cannot be named %q: the host has functions of that name", name)}
		}
		if all.libraries[name], err = wasm.Inspect(source.Libraries[name]); err != nil {
			return nil, &Error{Op: "compile", Kind: ErrModule, Library: name, Reason: err.Error(), Err: err}
		}
	}
	if all.linked, err = wasm.Link(main, all.libraries); err != nil {
		failure := &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
		if unlinked, ok := errors.AsType[*wasm.LinkError](err); ok {
			failure.Library = unlinked.Library
		}
		return nil, failure
	}
	return all, nil
}

// libraries returns the modules that this one is linked with, without the kernel.
func (m *Module) libraries() []linkedModule {
	if m.hasKernel {
		return m.beside[1:]
	}
	return m.beside
}

// trace returns a stack trace with the functions' names, or without if it may have functions of
// several modules, which wazero does not tell apart.
func (m *Module) trace(text string) string {
	if len(m.libraries()) > 0 {
		return frame.ReplaceAllString(text, "function(")
	}
	return m.rewritten.original(text, m.names)
}
