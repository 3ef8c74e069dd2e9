package engine

import (
	"bytes"
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
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"
)

// store is a directory of compiled modules. Each has a folder of its own, an entry, which
// appears and goes whole:
//
//	KEY/index        what the entry holds, and its checksums
//	KEY/module.wasm  the rewritten module
//	KEY/data         the data segments that were left out of it
//	KEY/code         the native code, as wazero writes it
//
// Nothing is read from an entry unless it has the SHA-256 that the index says, and the
// index its own, so that what was damaged is compiled again and never run. What is trusted
// is this: that the directory is this user's alone, which is checked whenever it is used;
// that SHA-256 tells one module from another; and that what this program wrote for a
// module follows from the module and the key, see [store.entry]. Checksums keep out
// accidents and not this user, who could change them as well.
//
// Processes may share a store. wazero never reads from it but from a view, a directory of
// one engine, so that no process can take an entry from under another.
type store struct {
	directory string
	kept      bool  // entries stay for later processes; otherwise nothing is published
	limit     int64 // of all entries together, in bytes
}

// entryName is the form of an entry's name, which is a SHA-256.
var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Patterns of the directories for one compilation, for one engine, and for what is being
// removed.
const (
	stagingPattern = "compiling-*"
	viewPattern    = "reading-*"
	removedPattern = "removed-*"
)

// stage makes a private directory for one compilation.
func (s store) stage() (directory string, remove func() error, err error) {
	// It may have been made anew since it was checked, where others can do that.
	if err := privateDirectory(s.directory); err != nil {
		return "", nil, err
	}
	directory, err = os.MkdirTemp(s.directory, stagingPattern)
	return directory, func() error { return os.RemoveAll(directory) }, err
}

// publishAttempts bounds how often another process may get in between.
const publishAttempts = 100

// publish moves a staged entry to its place, and removes others if there are too many. An
// intact entry that another process has published meanwhile is as good.
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
			continue // it stood there a moment ago
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

// discard removes an entry, which other processes may be doing as well.
func (s store) discard(entry string) error {
	// Under its own name it would be there in part for a while.
	removed, err := os.MkdirTemp(s.directory, removedPattern)
	if err != nil {
		return err
	}
	err = os.Rename(entry, filepath.Join(removed, "entry"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	// Where a file that somebody is reading can't be removed, a later sweep does it.
	_ = os.RemoveAll(removed)
	return err
}

// used notes that an entry was read, for [store.trim].
func (s store) used(entry string, now time.Time) error {
	err := os.Chtimes(filepath.Join(entry, indexFile), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has just removed it
	}
	return err
}

// openStore makes the store, for which a child that compiles needs a directory even
// where none is kept.
func (e *Engine) openStore(ctx context.Context, options Options) (err error) {
	if options.CacheBytes < 0 {
		return fmt.Errorf("its size of %d bytes is negative", options.CacheBytes)
	}
	switch {
	case options.CacheDir != "":
		e.store, err = keptStore(options.CacheDir, options.CacheBytes)
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

// keptStore opens a store that later processes use too.
func keptStore(directory string, limit int64) (*store, error) {
	// The working directory may change, and wazero would not notice.
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = defaultCacheBytes
	}
	return &store{directory: directory, kept: true, limit: limit}, privateDirectory(directory)
}

// scratchStore makes a store that goes with the engine.
func (e *Engine) scratchStore(ctx context.Context) (*store, error) {
	folder, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	if err := sweepScratch(folder, time.Now()); err != nil {
		// They are other processes' and not in the way.
		e.logger.WarnContext(ctx, "directories of killed processes remain", "err", err)
	}
	directory, err := os.MkdirTemp(folder, scratchPattern)
	if err != nil {
		return nil, err
	}
	return &store{directory: directory}, nil
}

// closeStore closes what openStore has opened, which may be a part.
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

// PassesVersion stands for what [rewrite] makes of modules and which of them it refuses:
// modules that another version rewrote are not used. A test holds it to the passes'
// output, and fails where that changes and the number does not.
const PassesVersion = 7

// entryVersion stands for what an entry's files hold, apart from that.
const entryVersion = 2

// entry returns the folder of a module's entry. What it holds depends on the original
// module, on how it is bounded, on this program and on the processor.
func (s store) entry(wanted Digest, trusted bool) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %t ", wanted, trusted)
	fmt.Fprintf(hash, "%d %d %s ", entryVersion, PassesVersion, programVersion())
	fmt.Fprintf(hash, "%s/%s %+v %+v", goruntime.GOOS, goruntime.GOARCH, cpu.X86, cpu.ARM64)
	return filepath.Join(s.directory, hex.EncodeToString(hash.Sum(nil)))
}

// programVersion names the builds of this module and of wazero, as far as they are known.
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

// errNoEntry means that there is no entry, or a damaged one.
var errNoEntry = errors.New("no intact entry")

// index is the index of an entry. Its file is the SHA-256 of the rest, a line feed, and
// the rest: this in JSON.
type index struct {
	Folder string `json:"folder"` // how wazero names the code's folder in a cache
	Name   string `json:"name"`   // and the code
	Code   blob   `json:"code"`
	Module blob   `json:"module"` // the rewritten module
	Data   blob   `json:"data"`   // its data segments, packed

	Meter string `json:"meter"` // the rest is what [rewritten] says of it
	Depth string `json:"depth"`
	Shift int    `json:"shift"`
	Start bool   `json:"start"`

	Globals      []string `json:"globals"`
	Unrestorable string   `json:"unrestorable"`
	Forks        bool     `json:"forks"`
	DataKept     bool     `json:"data_kept"`
}

// writeEntry makes an entry of a rewritten module and of the code that the compiler left
// in the cache directory compiled.
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
		Meter: r.meter, Depth: r.depth, Shift: r.shift, Start: r.start, Globals: r.globals, Unrestorable: r.unrestorable, Forks: r.forks, DataKept: r.dataKept,
	})
	if err != nil {
		return err
	}
	text = append([]byte(DigestOf(text).String()+"\n"), text...)
	return os.WriteFile(filepath.Join(entry, indexFile), text, 0o600)
}

// readEntry returns the index and the rewritten module of an entry, with its data. The code is checked
// where it is read, which is not here.
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
	return i, rewritten{source: source, meter: i.Meter, depth: i.Depth, shift: i.Shift, start: i.Start,
		globals: i.Globals, unrestorable: i.Unrestorable, forks: i.Forks,
		data: data, dataKept: i.DataKept}, nil
}

// checkEntry returns nil for an intact entry, and errNoEntry for another.
func checkEntry(entry string) error {
	i, _, err := readEntry(entry)
	if err != nil {
		return err
	}
	return i.Code.check(filepath.Join(entry, codeFile))
}

// onlyFile returns the path of the one regular file below a directory, relative to it.
func onlyFile(directory string) (string, error) {
	var found []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
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
