// Package holding determines whether a directory is inside another one, taking symbolic links into
// account.
package holding

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the maximum number of symbolic links in a path, as on common systems.
const maxLinks = 40

// Of returns the first of dirs that is dir, is above it, or holds one of the symbolic links in its
// path. It returns "" if there is none. The directories need not exist. Anyone who can write to the
// returned directory can change the content of dir.
func Of(dirs []string, dir string) (string, error) {
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

// above returns the one of dirs that is the directory at the path or above it, or "". It skips
// elements of the path that do not exist yet, since they will be below the existing ones.
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

// followed returns a path with its first symbolic link replaced by the link's target.
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
