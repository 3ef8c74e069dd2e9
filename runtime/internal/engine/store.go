package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/cpu"
)

// store is a directory of compiled code that wazero reads. Beside wazero's entries it
// holds an index of ours, a small file for each module, which says what the entry must
// be, so that code which was damaged is compiled again and never run.
//
// It may be shared by processes: files appear whole, and an index that does not match
// its entry only means another compilation.
type store struct{ directory string }

// indexed is an index file.
type indexed struct {
	Module string `json:"module"` // the digest of the module
	Entry  string `json:"entry"`  // below the directory, slash-separated
	SHA256 string `json:"sha256"` // of the entry
}

// index returns the index file of a module: compiled code depends on the module, on
// this program and on the processor.
func (s store) index(module Digest) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s/%s %+v %+v %s", module, goruntime.GOOS, goruntime.GOARCH, cpu.X86, cpu.ARM64, compilerVersion())
	return filepath.Join(s.directory, hex.EncodeToString(hash.Sum(nil))+".json")
}

// compilerVersion names the build of wazero, or of this program if that isn't known.
func compilerVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/tetratelabs/wazero" {
			return dependency.Version + " " + dependency.Sum
		}
	}
	return info.Main.Version
}

// intact reports whether the store holds the module's code as it was compiled. Code
// that is damaged is removed.
func (s store) intact(module Digest) (bool, error) {
	text, err := os.ReadFile(s.index(module))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var entry indexed
	if json.Unmarshal(text, &entry) != nil || entry.Module != module.String() || !filepath.IsLocal(filepath.FromSlash(entry.Entry)) {
		return false, os.Remove(s.index(module))
	}
	file := filepath.Join(s.directory, filepath.FromSlash(entry.Entry))
	sum, err := fileDigest(file)
	if err == nil && sum == entry.SHA256 {
		return true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return false, errors.Join(removeIfThere(file), removeIfThere(s.index(module)))
}

func removeIfThere(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func fileDigest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// abandoned is how old a staging directory is that no compilation can be using any more.
const abandoned = time.Hour

// sweep removes the staging directories of processes that were killed.
func (s store) sweep(now time.Time) error {
	staged, err := filepath.Glob(filepath.Join(s.directory, stagingPattern))
	if err != nil {
		return err
	}
	for _, directory := range staged {
		info, err := os.Stat(directory)
		if err == nil && now.Sub(info.ModTime()) > abandoned {
			err = os.RemoveAll(directory)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// publish moves the one entry of a staging directory into the store.
func (s store) publish(module Digest, staging string) error {
	entry, err := onlyFile(staging)
	if err != nil {
		return err
	}
	sum, err := fileDigest(filepath.Join(staging, entry))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.directory, entry)), 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(staging, entry), filepath.Join(s.directory, entry)); err != nil {
		return err
	}
	text, err := json.Marshal(indexed{Module: module.String(), Entry: filepath.ToSlash(entry), SHA256: sum})
	if err != nil {
		return err
	}
	temporary := filepath.Join(staging, "index")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.index(module))
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
