package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// change is a change of one file, which can be undone until the old content is overwritten.
type change struct {
	file *os.File
	size int64    // of the file before the change
	made []string // directories and the file, as far as they did not exist before, in the order in which they were made
}

// begin opens a file for writing, at its end. It makes the file and its directories if they do not exist.
func begin(name string, flags int) (_ *change, err error) {
	c := &change{}
	defer func() {
		if err != nil {
			c.undo()
		}
	}()
	if dir := path.Dir(name); strings.HasPrefix(dir, project+"/") { // elsewhere, the denial must be about the file
		if c.made, err = makeDirectories(dir); err != nil {
			return nil, err
		}
	}
	flags |= os.O_WRONLY | os.O_CREATE
	c.file, err = os.OpenFile(name, flags|os.O_EXCL, 0o666)
	if err == nil {
		c.made = append(c.made, name)
	} else if errors.Is(err, fs.ErrExist) {
		c.file, err = os.OpenFile(name, flags, 0o666) // which may make the file that a link names
	}
	if err != nil {
		return nil, err
	}
	c.size, err = c.file.Seek(0, io.SeekEnd)
	return c, err
}

// makeDirectories makes a directory and those above it that do not exist, and returns them. If it fails, it removes
// them.
func makeDirectories(name string) (made []string, err error) {
	var missing []string
	for ; name != project && name != "/"; name = path.Dir(name) {
		_, err := os.Stat(name)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, name)
	}
	for _, dir := range slices.Backward(missing) {
		err := os.Mkdir(dir, 0o777)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			removeMade(made)
			return nil, err
		}
		made = append(made, dir)
	}
	return made, nil
}

// removeMade removes files and directories that a failed change has made. Directories in which another call has since
// made something stay.
func removeMade(made []string) {
	for _, name := range slices.Backward(made) {
		_ = os.Remove(name)
	}
}

// replace gives a file new content. It first writes the part that makes the file longer, at its end. So the file keeps
// its old content if there is too little room for the new one.
//
// A new file that is renamed would also protect the old content from a call that is stopped here. But it would lack the
// old file's permissions, which WASI cannot set, replace a link instead of the file that it names, and need room for
// both.
func replace(name, content string) error {
	c, err := begin(name, 0)
	if err != nil {
		return err
	}
	kept := min(c.size, int64(len(content)))
	if err := c.grow(content[kept:]); err != nil {
		return err
	}
	if _, err = c.file.Seek(0, io.SeekStart); err == nil {
		_, err = c.file.WriteString(content[:kept])
	}
	if err == nil && kept < c.size {
		err = c.file.Truncate(kept)
	}
	return errors.Join(err, c.file.Close())
}

// appendTo adds content at the end of a file.
func appendTo(name, content string) error {
	c, err := begin(name, os.O_APPEND)
	if err != nil {
		return err
	}
	if err := c.grow(content); err != nil {
		return err
	}
	return c.file.Close()
}

// grow writes content at the end of the file. If that fails, the change is undone.
func (c *change) grow(content string) error {
	written, err := c.file.WriteString(content)
	if err == nil {
		return nil
	}
	// Another call may have appended to the file meanwhile, which must stay.
	if info, unknown := c.file.Stat(); unknown == nil && info.Size() == c.size+int64(written) {
		err = errors.Join(err, c.file.Truncate(c.size))
	}
	c.undo()
	return err
}

// undo closes the file, and removes what the change has made.
func (c *change) undo() {
	if c.file != nil {
		_ = c.file.Close()
	}
	removeMade(c.made)
}
