package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/runtime"
)

// kept is what a command keeps, and what a tool could do to it that can write there.
type kept struct{ what, harm string }

var (
	keptBatch   = kept{"a batch that waits is", "it could change what somebody approves of"}
	keptRecords = kept{"the records of calls are", `it could change what "caisson explain" shows`}
)

// keepsFromTools refuses folders where a tool that is loaded may write: it could change a batch
// before somebody approves of it, have it run twice, or forge records. All tools count, and not only
// those that are called: these may call others, and while a batch waits other batches run.
func (h *host) keepsFromTools(k kept, dirs []string) error {
	writers := map[string]string{} // the first tool that may write to a directory
	var writable []string
	for _, entry := range h.registry.List() {
		loaded, ok := entry.Tool.(*runtime.Tool)
		if !ok {
			continue
		}
		for _, dir := range loaded.Writable(h.operator.context) {
			if writers[dir] == "" {
				writers[dir], writable = entry.Name, append(writable, dir)
			}
		}
	}
	for _, dir := range dirs {
		at, err := holding(writable, dir)
		if err != nil {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and it cannot be told whether a tool may write there: %v", k.what, dir, folder.Reason(err)))
		}
		if at != "" {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and %s may write there (to %s): %s", k.what, dir, writers[at], at, k.harm),
				"choose folders that no tool may write to: with --state-dir DIR, and with --state FILE where that was given")
		}
	}
	return nil
}

// maxLinks is how many symbolic links a path may lead through, as systems have it.
const maxLinks = 40

// holding returns the one of the directories that is another one, is above it, or has one of the
// symbolic links in it that lead there; "" for none.
func holding(dirs []string, dir string) (string, error) {
	if len(dirs) == 0 {
		return "", nil
	}
	path, err := filepath.Abs(dir)
	for range maxLinks + 1 {
		if err != nil {
			return "", err
		}
		found, err := above(dirs, path)
		if found != "" || err != nil {
			return found, err
		}
		next, err := followed(path)
		if next == path || err != nil {
			return "", err
		}
		path = next
	}
	return "", errors.New("too many symbolic links")
}

// above returns the one of the directories that is the one at the path, or above it. What is not
// there yet is passed over: it will be below what is.
func above(dirs []string, path string) (string, error) {
	for {
		here, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, dir := range dirs {
			other, failed := os.Stat(dir)
			switch {
			case failed != nil && !errors.Is(failed, fs.ErrNotExist):
				return "", failed
			case failed == nil && err == nil && os.SameFile(here, other):
				return dir, nil
			}
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", nil
		}
		path = parent
	}
}

// followed returns a path with its first symbolic link replaced by where that leads to.
func followed(path string) (string, error) {
	volume := filepath.VolumeName(path) + string(filepath.Separator)
	at := volume
	names := strings.Split(strings.TrimPrefix(path, volume), string(filepath.Separator))
	for i, name := range names {
		parent := at
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		return filepath.Join(append([]string{target}, names[i+1:]...)...), nil
	}
	return path, nil
}
