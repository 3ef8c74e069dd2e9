package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// MaxLibraries is the maximum number of libraries of a module. Calls nest through all of them, so the bound on the
// stack is divided among them and the module (see [wasm.Passes]).
const MaxLibraries = 4

// Digest is the SHA-256 of a module's bytes.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf returns the digest of a module's bytes.
func DigestOf(source []byte) Digest { return sha256.Sum256(source) }

// Source is a module, and the libraries that it is linked with. Each instance of the module has its own instance of
// each library, which runs on the same fuel, within the same memory limit, and is reset together with it. The start
// functions (§2.5.9) of the libraries are called before that of the module; further functions that start a library are
// among [Run.Initialize].
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

func (s Source) size() int {
	size := len(s.Module)
	for _, library := range s.Libraries {
		size += len(library)
	}
	return size
}

// Link reads the modules and checks that they can be linked.
func (s Source) Link() (*wasm.Linked, error) {
	read, err := s.inspect(nil)
	if err != nil {
		return nil, err
	}
	return read.linked, nil
}

// inspected is a source whose modules have been read and can be linked.
type inspected struct {
	Source
	libraries map[string]*wasm.Module
	linked    *wasm.Linked
}

// inspect reads the modules. wazero trusts the counts in a module and crashes on false ones, so every
// module is inspected first.
func (s Source) inspect(offered map[string]bool) (*inspected, error) {
	main, err := wasm.Inspect(s.Module)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	if len(s.Libraries) > MaxLibraries {
		return nil,
			&Error{Op: "compile", Kind: ErrModule,
				Reason: fmt.Sprintf("it has %d libraries, the limit is %d", len(s.Libraries), MaxLibraries)}
	}
	all := &inspected{Source: s, libraries: map[string]*wasm.Module{}}
	for _, name := range slices.Sorted(maps.Keys(s.Libraries)) {
		if offered[name] {
			return nil,
				&Error{Op: "compile", Kind: ErrModule,
					Reason: fmt.Sprintf("a library cannot be named %q: the host has functions of that name", name)}
		}
		if all.libraries[name], err = wasm.Inspect(s.Libraries[name]); err != nil {
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
