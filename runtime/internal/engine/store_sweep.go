package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// abandoned is how old a directory is that no process can be using any more, or that one
// makes again when it needs it.
const abandoned = time.Hour

// sweep removes the directories that killed processes left in a store.
func (s store) sweep(now time.Time) error {
	listed, err := os.ReadDir(s.directory)
	if err != nil {
		return err
	}
	for _, item := range listed {
		if !passing(item.Name()) {
			continue
		}
		if err := removeAbandoned(filepath.Join(s.directory, item.Name()), now); err != nil {
			return err
		}
	}
	return nil
}

// passing reports whether a directory of that name goes with the engine that made it.
func passing(name string) bool {
	return slices.ContainsFunc([]string{stagingPattern, viewPattern, removedPattern}, func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return err == nil && matched
	})
}

// scratchPattern is how the directories of stores that are not kept are named, and
// scratchName the form that comes of it.
const scratchPattern = "caisson-compiled-*"

var scratchName = regexp.MustCompile(`^caisson-compiled-[0-9]+$`)

// sweepScratch removes what killed processes of this user left in a folder for temporary
// files, which is not this user's alone.
func sweepScratch(folder string, now time.Time) error {
	listed, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var failures []error
	for _, item := range listed {
		if !scratchName.MatchString(item.Name()) {
			continue
		}
		directory := filepath.Join(folder, item.Name())
		if info, err := os.Lstat(directory); err == nil && ownPrivate(info) == nil {
			failures = append(failures, removeAbandoned(directory, now))
		}
	}
	return errors.Join(failures...)
}

// removeAbandoned removes a directory that was not written to for long.
func removeAbandoned(directory string, now time.Time) error {
	info, err := os.Lstat(directory)
	if err == nil && now.Sub(info.ModTime()) > abandoned {
		err = os.RemoveAll(directory)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
