// Package oldrecords reads the folders in which versions before 0.1 kept the records of calls: one file for each call,
// named by its id.
package oldrecords

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/internal/folder"
)

// maxBytes was the limit of a whole folder.
const maxBytes = 64 << 20

// Import calls keep for the content of each record in a folder, oldest first. Then it renames the folder, so that a
// second call finds nothing. It does nothing if there is no folder. What cannot be read is left out, and reported by
// the error once the rest has been kept.
func Import(dir string, keep func(content []byte) error) error {
	root, err := folder.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	left, err := importAll(root, keep)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	renamed := dir + "-imported"
	if err := os.Rename(dir, renamed); err != nil {
		return errors.Join(left, err)
	}
	return left
}

// importAll returns in left what was left out. err means that the rest was not kept.
func importAll(root *os.Root, keep func(content []byte) error) (left, err error) {
	files, err := folder.Look(root)
	if err != nil {
		return nil, err
	}
	ids := folder.IDs(maps.Keys(files)) // newest first
	for _, id := range slices.Backward(ids) {
		content, err := folder.Read(root, id+folder.Suffix, maxBytes)
		if err != nil {
			left = errors.Join(left, &fs.PathError{Op: "read", Path: filepath.Join(root.Name(), id+folder.Suffix), Err: err})
			continue
		}
		if err := keep(content); err != nil {
			return nil, err
		}
	}
	return left, nil
}
