// Package interpreter installs and reads the interpreters that script tools run in: modules that others
// compiled from CPython and QuickJS-NG. They are fetched with the ordinary clients of package registries, never
// committed, and always the same to the byte: their digests are part of this package.
package interpreter

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/hostfile"
)

// The errors of this package, for [errors.Is].
var (
	// ErrNotInstalled means that the folder does not have the interpreter.
	ErrNotInstalled = errors.New("the interpreter is not installed")
	// ErrDigest means that a file is not the interpreter that this version of Caisson runs.
	ErrDigest = errors.New("it is not the interpreter that this version of Caisson runs")
	// ErrFetch means that the interpreter could not be fetched or built.
	ErrFetch = errors.New("the interpreter could not be fetched")
)

// Error is a failure with one interpreter.
type Error struct {
	Op   string // "read", "install" or "remove"
	Name string // of the interpreter
	Kind error  // one of the errors of this package, or nil
	Err  error  // the cause, or nil
}

// Error returns the operation, the interpreter and the reasons.
func (e *Error) Error() string {
	text := e.Op + " " + e.Name
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			text += ": " + err.Error()
		}
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}

// Interpreter is a module that runs the scripts of one language.
type Interpreter struct {
	Language string // as "caisson interpreters" names it: python or javascript
	Name     string // with its version
	Origin   string // the packages that it is made of, and where they come from
	Needs    string // the programs that install it

	// SHA256 is the digest of the installed module, in 64 lower-case hex digits.
	SHA256 string

	fetched string // the digest of the module as it is fetched or built, with its custom sections
	fetch   func(ctx context.Context, dir string, run runner) (file string, err error)
}

// All returns the interpreters, in the order of their languages.
func All() []Interpreter { return []Interpreter{quickJS, cPython} }

// For returns the interpreter of a language.
func For(language string) (i Interpreter, found bool) {
	for _, i := range All() {
		if i.Language == language {
			return i, true
		}
	}
	return Interpreter{}, false
}

// Recognise returns the interpreter whose module has this SHA-256 digest, in 64 lower-case hex digits.
func Recognise(digest string) (i Interpreter, found bool) {
	for _, i := range All() {
		if digest == i.SHA256 || digest == i.fetched {
			return i, true
		}
	}
	return Interpreter{}, false
}

// maxModule is the maximum size of an interpreter in bytes.
const maxModule = 64 << 20

// Folder is where interpreters are installed. Any number of processes may use it concurrently. It should be accessible
// only to this user. Its modules are always checked against the digests.
type Folder string

// DefaultFolder returns the folder below the user's cache folder. It does not create it.
func DefaultFolder() (Folder, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for interpreters: %w", err)
	}
	return Folder(filepath.Join(base, "caisson", "interpreters")), nil
}

// Has reports whether the interpreter is installed, without reading it.
func (f Folder) Has(i Interpreter) bool {
	info, err := os.Lstat(filepath.Join(string(f), i.File())) // Read refuses links, which have every permission
	return err == nil && info.Mode().IsRegular()
}

// Read returns the module of an interpreter. The error is an [*Error]: its kind is [ErrNotInstalled] or [ErrDigest].
func (f Folder) Read(i Interpreter) ([]byte, error) {
	content, err := folder.ReadProtected(string(f), i.File(), maxModule)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{"read", i.Name, ErrNotInstalled, nil}
	case err != nil:
		return nil, &Error{"read", i.Name, nil, err}
	case hexDigest(content) != i.SHA256:
		return nil,
			&Error{"read", i.Name, ErrDigest, fmt.Errorf("%s was changed; install it again", filepath.Join(string(f), i.File()))}
	}
	return content, nil
}

// readModule reads a regular file that may be a module.
func readModule(path string) (content []byte, err error) {
	file, info, err := hostfile.Open(path, hostfile.Follow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.Size() <= maxModule {
		content, err = io.ReadAll(io.LimitReader(file, maxModule+1))
	}
	if info.Size() > maxModule || len(content) > maxModule {
		return nil, fmt.Errorf("%s has more than %d bytes, and is no interpreter", path, maxModule)
	}
	return content, err
}

// InstallFile installs an interpreter from a file: the module as its package has it, or as [Folder.Read] returns it.
func (f Folder) InstallFile(i Interpreter, path string) error {
	content, err := readModule(path)
	if err != nil {
		return &Error{"install", i.Name, nil, err}
	}
	module, err := i.stripped(content)
	if err != nil {
		return &Error{"install", i.Name, ErrDigest, fmt.Errorf("%s: %w", path, err)}
	}
	root, err := folder.Make(string(f))
	if err == nil {
		err = errors.Join(folder.Write(root, i.File(), module), root.Close())
	}
	if err != nil {
		return &Error{"install", i.Name, nil, err}
	}
	return nil
}

// Install fetches an interpreter with the clients of package registries, which it starts, and installs it. The progress
// function is told each command before it is run; it may be nil.
func (f Folder) Install(ctx context.Context, i Interpreter, progress func(command string)) error {
	dir, err := os.MkdirTemp("", "caisson-interpreter-")
	if err != nil {
		return &Error{"install", i.Name, nil, err}
	}
	file, err := i.fetch(ctx, dir, runner{progress})
	if err != nil {
		err = &Error{"install", i.Name, ErrFetch, err}
	} else {
		err = f.InstallFile(i, file)
	}
	if left := os.RemoveAll(dir); err == nil && left != nil {
		return &Error{"install", i.Name, nil, left}
	}
	return err
}

// File returns the name of the installed module in its [Folder].
func (i Interpreter) File() string { return i.Language + "-" + i.SHA256 + ".wasm" }

// stripped checks a module, and returns it without its custom sections, which would only take memory and time.
func (i Interpreter) stripped(content []byte) ([]byte, error) {
	digest := hexDigest(content)
	switch digest {
	case i.SHA256:
		return content, nil
	case i.fetched:
	default:
		return nil, fmt.Errorf("its SHA-256 digest is %s, that of %s is %s", digest, i.Name, i.fetched)
	}
	module := withoutCustomSections(content)
	if digest := hexDigest(module); digest != i.SHA256 {
		return nil, fmt.Errorf("without custom sections, its SHA-256 digest is %s and not %s", digest, i.SHA256)
	}
	return module, nil
}

// withoutCustomSections returns a module without its custom sections. The digest of the module is known, so the module
// is whole.
func withoutCustomSections(module []byte) []byte {
	const header, custom = 8, 0
	kept := slices.Clone(module[:header])
	for rest := module[header:]; len(rest) > 0; {
		size, digits := binary.Uvarint(rest[1:])
		end := 1 + digits + int(size)
		if rest[0] != custom {
			kept = append(kept, rest[:end]...)
		}
		rest = rest[end:]
	}
	return kept
}

func hexDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
