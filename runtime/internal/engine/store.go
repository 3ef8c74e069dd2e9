package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// store is a directory of compiled modules. Each module has its own folder, an entry, which is
// added and removed atomically:
//
//	KEY/index        the description of the entry, with checksums
//	KEY/module.wasm  the rewritten module
//	KEY/data         the data segments that were left out of it
//	KEY/code         the native code, as wazero writes it
//
// A file of an entry is used only if its SHA-256 matches the index, and the index only if its own SHA-256 matches.
// Damaged entries are therefore recompiled and never run. This relies on three things: only this user can access the
// directory, which is checked on every use; SHA-256 has no collisions; and the files that this program writes for a
// module depend only on the module and the key, see [store.entry]. The checksums protect against accidents, not against
// this user, who could change them too.
//
// Processes may share a store. wazero reads only from a view, a directory that belongs to one
// engine, so removing an entry does not affect a process that is reading it.
type store struct {
	directory string
	kept      bool  // entries are kept for later processes; otherwise nothing is published
	limit     int64 // total size of all entries, in bytes
	// filled is a directory of entries that is only read, such as one that is part of an image. Only this user and root
	// can write to it. It is empty if there is none.
	filled string
}

// entryName matches the name of an entry, which is a SHA-256.
var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Patterns of the directories for one compilation, for one engine, and for entries being removed.
const (
	stagingPattern = "compiling-*"
	viewPattern    = "reading-*"
	removedPattern = "removed-*"
)

// stage creates a private directory for one compilation.
func (s store) stage() (directory string, remove func() error, err error) {
	// The directory may have been replaced since the last check if other users can write to its parent.
	if err := privateDirectory(s.directory); err != nil {
		return "", nil, err
	}
	directory, err = os.MkdirTemp(s.directory, stagingPattern)
	return directory, func() error { return os.RemoveAll(directory) }, err
}

// publishAttempts is the maximum number of attempts of publish when other processes interfere.
const publishAttempts = 100

// publish moves a staged entry into place, and evicts entries if the store is over its limit. If
// another process has published an intact entry in the meantime, that entry is kept.
func (s store) publish(staged, entry string) error {
	for range publishAttempts {
		err := os.Rename(staged, entry)
		if err == nil {
			return s.trim()
		}
		if _, statErr := os.Lstat(entry); errors.Is(statErr, fs.ErrNotExist) {
			if _, statErr = os.Lstat(staged); statErr != nil {
				return err
			}
			continue // it existed a moment ago
		}
		switch err := checkEntry(entry); {
		case err == nil:
			return nil
		case !errors.Is(err, errNoEntry):
			return err
		}
		if err := s.discard(entry); err != nil {
			return err
		}
	}
	return fmt.Errorf("other processes kept replacing %s", entry)
}

// discard removes an entry. Other processes may be removing it too.
func (s store) discard(entry string) error {
	// Removing it in place would leave a partial entry for a while.
	removed, err := os.MkdirTemp(s.directory, removedPattern)
	if err != nil {
		return err
	}
	err = os.Rename(entry, filepath.Join(removed, "entry"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	// If a file that is being read cannot be removed, a later sweep removes it.
	_ = os.RemoveAll(removed)
	return err
}

// used records that an entry was read, for [store.trim].
func (s store) used(entry string, now time.Time) error {
	err := os.Chtimes(filepath.Join(entry, indexFile), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has just removed it
	}
	return err
}

// openStore opens the store. Compiling in a child process needs a directory even if no cache is
// kept.
func (e *Engine) openStore(ctx context.Context, options Options) (err error) {
	if options.CacheBytes < 0 {
		return fmt.Errorf("CacheBytes is %d, but must not be negative", options.CacheBytes)
	}
	switch {
	case options.CacheDir != "":
		e.store, err = e.keptStore(ctx, options)
	case options.FillCache:
		return errors.New("FillCache needs CacheDir")
	case e.compiler.Executable != "":
		e.store, err = e.scratchStore(ctx)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.store.sweep(time.Now()); err != nil {
		return err
	}
	e.view, err = newView(*e.store, func(directory string) (err error) {
		e.cache, err = wazero.NewCompilationCacheWithDir(directory)
		return err
	})
	return err
}

// keptStore opens a store that later processes use too. If it cannot be written to, but is filled,
// its entries are used, and those of other modules are not kept, unless the options forbid that.
func (e *Engine) keptStore(ctx context.Context, options Options) (*store, error) {
	// The working directory may change, and wazero would not notice.
	directory, err := filepath.Abs(options.CacheDir)
	if err != nil {
		return nil, err
	}
	if err = checkWritable(directory); err == nil {
		return &store{directory: directory, kept: true, limit: cmp.Or(options.CacheBytes, defaultCacheBytes)}, nil
	}
	if options.FillCache {
		return nil, err
	}
	info, statErr := os.Lstat(directory)
	if statErr != nil {
		return nil, err
	}
	if unfilled := checkFilled(directory, info); unfilled != nil {
		if hostfile.Own(info) {
			return nil, err // this user can make it writable
		}
		return nil, unfilled
	}
	s, err := e.scratchStore(ctx)
	if err == nil {
		s.filled = directory
	}
	return s, err
}

// checkWritable returns nil if a directory is private and its entries can be changed.
func checkWritable(directory string) error {
	if err := privateDirectory(directory); err != nil {
		return err
	}
	probe, err := os.MkdirTemp(directory, viewPattern)
	if err != nil {
		return err
	}
	return os.Remove(probe)
}

// checkFilled returns nil if a directory has entries that this user can read, and only this user and root can write to
// it. Otherwise the error gives the reason.
func checkFilled(directory string, info fs.FileInfo) error {
	if err := checkProtected(directory, info, fs.ModeDir); err != nil {
		return err
	}
	listed, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s cannot be read by this user (chmod -R go+rX)", directory)
	}
	if err == nil &&
		!slices.ContainsFunc(listed, func(item fs.DirEntry) bool { return entryName.MatchString(item.Name()) }) {
		err = fmt.Errorf("%s has no compiled code, and this user cannot add any", directory)
	}
	return err
}

// checkProtected returns nil if a file of this type can be changed by this user and root only. Otherwise the error
// gives the reason.
func checkProtected(name string, info fs.FileInfo, kind fs.FileMode) error {
	err := hostfile.Protected(info)
	switch {
	case info.Mode().Type() == kind:
	case kind == fs.ModeDir:
		err = errors.New("is not a directory")
	default:
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	return nil
}

// filledEntry returns the entry of the filled directory that corresponds to an entry of the store. It fails with
// errNoEntry if there is none, and with another error if other users can write to it.
func (s store) filledEntry(entry string) (string, error) {
	entry = filepath.Join(s.filled, filepath.Base(entry))
	if _, err := os.Lstat(entry); errors.Is(err, fs.ErrNotExist) {
		return "", errNoEntry
	}
	for _, part := range []struct {
		name string
		kind fs.FileMode
	}{
		{s.filled, fs.ModeDir}, {entry, fs.ModeDir}, {filepath.Join(entry, indexFile), 0},
		{filepath.Join(entry, moduleFile), 0},
		{filepath.Join(entry, dataFile), 0}, {filepath.Join(entry, codeFile), 0},
	} {
		info, err := os.Lstat(part.name)
		if err == nil {
			err = checkProtected(part.name, info, part.kind)
		}
		if err != nil {
			return "", err
		}
	}
	return entry, nil
}

// scratchStore creates a store that is removed with the engine.
func (e *Engine) scratchStore(ctx context.Context) (*store, error) {
	folder, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	if err := sweepScratch(folder, time.Now()); err != nil {
		// They belong to other processes and do no harm.
		e.logger.WarnContext(ctx, "cannot remove directories that killed processes left behind", "err", err)
	}
	directory, err := os.MkdirTemp(folder, scratchPattern)
	if err != nil {
		return nil, err
	}
	return &store{directory: directory}, nil
}

// closeStore closes everything that openStore opened, even if openStore failed halfway.
func (e *Engine) closeStore(ctx context.Context) error {
	var failures []error
	if e.cache != nil {
		failures = append(failures, e.cache.Close(ctx))
	}
	if e.view != nil {
		failures = append(failures, e.view.remove())
	}
	if e.store != nil && !e.store.kept {
		failures = append(failures, os.RemoveAll(e.store.directory))
	}
	return errors.Join(failures...)
}

// PassesVersion is the version of [rewriteWithin]: of its output and of which modules it refuses. Modules
// rewritten by another version are not used. A test pins the output and fails if it changes without
// a new version.
const PassesVersion = 19

// entryVersion is the version of the format of an entry's files.
const entryVersion = 2

// entry returns the folder of a module's entry. Its contents depend on the original module, on the
// bounds applied to it, on this program and on the processor.
func (s store) entry(wanted Digest, in role) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %+v ", wanted, in)
	fmt.Fprintf(hash, "%d %d %s ", entryVersion, PassesVersion, programVersion())
	fmt.Fprintf(hash, "%s/%s %+v %+v", goruntime.GOOS, goruntime.GOARCH, cpu.X86, cpu.ARM64)
	return filepath.Join(s.directory, hex.EncodeToString(hash.Sum(nil)))
}

// programVersion returns the versions of Caisson and wazero in this build, as far as they are
// known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Path + " " + info.Main.Version
	for _, dependency := range info.Deps {
		switch dependency.Path {
		case "github.com/tetratelabs/wazero", "github.com/caisson-run/caisson":
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			version += " " + dependency.Path + " " + dependency.Version + " " + dependency.Sum
		}
	}
	return version
}

// The files of an entry.
const (
	indexFile  = "index"
	moduleFile = "module.wasm"
	dataFile   = "data"
	codeFile   = "code"
)

// errNoEntry means that an entry is missing or damaged.
var errNoEntry = errors.New("no intact entry")

// index describes an entry. Its file is the SHA-256 of the rest in hex, a line feed, and this
// struct in JSON.
type index struct {
	Folder string `json:"folder"` // wazero's name for the folder of the code in a cache
	Name   string `json:"name"`   // wazero's name for the code
	Code   blob   `json:"code"`
	Module blob   `json:"module"` // the rewritten module
	Data   blob   `json:"data"`   // its data segments, packed
	facts
}

// writeEntry makes an entry from a rewritten module and from the code that the compiler left in the
// cache directory compiled.
func writeEntry(entry string, r rewritten, compiled string) error {
	code, err := onlyFile(compiled)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(compiled, code), filepath.Join(entry, codeFile)); err != nil {
		return err
	}
	if err := os.RemoveAll(compiled); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(entry, moduleFile), r.source, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(entry, dataFile), r.data, 0o600); err != nil {
		return err
	}
	native, err := measureBlob(filepath.Join(entry, codeFile))
	if err != nil {
		return err
	}
	text, err := json.Marshal(index{
		Folder: filepath.Dir(code), Name: filepath.Base(code), Code: native, Module: blobOf(r.source), Data: blobOf(r.data),
		facts: r.facts,
	})
	if err != nil {
		return err
	}
	text = append([]byte(DigestOf(text).String()+"\n"), text...)
	return os.WriteFile(filepath.Join(entry, indexFile), text, 0o600)
}

// readEntry returns the index of an entry and its rewritten module with data. It does not check the
// code, which is checked when it is read.
func readEntry(entry string) (index, rewritten, error) {
	text, err := readIndex(filepath.Join(entry, indexFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	sum, text, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != DigestOf(text).String() {
		return index{}, rewritten{}, fmt.Errorf("%w: the index has changed", errNoEntry)
	}
	var i index
	if err := json.Unmarshal(text, &i); err != nil {
		return index{}, rewritten{}, fmt.Errorf("%w: %w", errNoEntry, err)
	}
	source, err := i.Module.read(filepath.Join(entry, moduleFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	data, err := i.Data.read(filepath.Join(entry, dataFile))
	if err != nil {
		return index{}, rewritten{}, err
	}
	if len(data) == 0 {
		data = nil
	}
	return i, rewritten{source: source, data: data, facts: i.facts}, nil
}

// checkEntry returns nil if an entry is intact, and errNoEntry if it is not.
func checkEntry(entry string) error {
	i, _, err := readEntry(entry)
	if err != nil {
		return err
	}
	return i.Code.check(filepath.Join(entry, codeFile))
}

// onlyFile returns the relative path of the only regular file below a directory.
func onlyFile(directory string) (string, error) {
	var found []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		relative, err := filepath.Rel(directory, path)
		found = append(found, relative)
		return err
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the compiler left %d files; want 1", len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}
