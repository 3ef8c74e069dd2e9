package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
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
