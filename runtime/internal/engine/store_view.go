package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// view is a directory that wazero uses as its cache. It belongs to one engine and holds code only while wazero reads
// it, so wazero sees exactly the checked bytes, whatever other processes do to the store. If wazero did not find the
// code, it would compile the module in this process, without limits.
type view struct {
	store     store
	directory string
	folder    string // the subfolder in which wazero looks

	reading sync.Map // by name: a channel that is closed when the code is no longer needed
}

// newView creates a view, and calls open to make wazero open it as a cache.
func newView(s store, open func(directory string) error) (*view, error) {
	directory, err := os.MkdirTemp(s.directory, viewPattern)
	if err != nil {
		return nil, err
	}
	v := &view{store: s, directory: directory}
	if err = open(directory); err == nil {
		v.folder, err = onlyFolder(directory)
	}
	if err != nil {
		return nil, errors.Join(err, v.remove())
	}
	return v, nil
}

func (v *view) remove() error { return os.RemoveAll(v.directory) }

// show exposes an entry's code to wazero while read runs. It fails with errNoEntry if the code does
// not match the index.
func (v *view) show(entry string, i index, read func() error) (err error) {
	if i.Folder != v.folder {
		return fmt.Errorf("the compiler has another version (%s) than this program (%s); restart this program", i.Folder,
			v.folder)
	}
	// Two modules may have the same code.
	defer v.reserve(i.Name)()
	if err := v.prepare(); err != nil {
		return err
	}
	file := filepath.Join(v.directory, v.folder, i.Name)
	if err := share(filepath.Join(entry, codeFile), file, i.Code); err != nil {
		return absent(err)
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	if err := i.Code.check(file); err != nil {
		return err
	}
	before, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	after, err := os.Lstat(file)
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("wazero compiled the module again instead of using the cache")
	}
	return err
}

// reserve waits until no other call shows the code of that name. It returns a function that ends
// the reservation.
func (v *view) reserve(name string) (release func()) {
	mine := make(chan struct{})
	for {
		other, taken := v.reading.LoadOrStore(name, mine)
		if !taken {
			return func() {
				v.reading.Delete(name)
				close(mine)
			}
		}
		<-other.(chan struct{})
	}
}

// prepare recreates the directory if it was removed, as temporary folders may be after a while, and
// protects it from [store.sweep].
func (v *view) prepare() error {
	if err := privateDirectory(v.store.directory); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(v.directory, v.folder), 0o700); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(v.directory, now, now)
}

// share links a file to a second name, or copies it if the file system does not support links.
func share(from, to string, what blob) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	source, err := what.open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(target, io.LimitReader(source, what.Bytes)); err != nil {
		return errors.Join(err, target.Close(), os.Remove(to))
	}
	return target.Close()
}

// onlyFolder returns the name of the only item in a directory.
func onlyFolder(directory string) (string, error) {
	listed, err := os.ReadDir(directory)
	if err == nil && len(listed) != 1 {
		err = fmt.Errorf("wazero made %d folders in its cache; want 1", len(listed))
	}
	if err != nil {
		return "", err
	}
	return listed[0].Name(), nil
}
