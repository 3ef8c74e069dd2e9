package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// initializeFunction is what a WASI reactor exports for the host to call once, before all else.
const initializeFunction = "_initialize"

// isReactor reports whether a module is a WASI reactor that has something to begin with.
func isReactor(description *wasm.Module) bool {
	if _, command := description.ExportedFunction("_start"); command {
		return false
	}
	initialize, found := description.ExportedFunction(initializeFunction)
	return found && len(initialize.Params)+len(initialize.Results) == 0
}

// initialize starts a reactor. It has come back when it has started: no stack is left, so that
// memory and globals are all there is to share.
func (i *instance) initialize(ctx context.Context) error {
	if err := i.call(i.context(ctx), initializeFunction); err != nil {
		return err
	}
	i.start, i.function = nil, nil // they ran; runs begin with another
	return errStarted
}

// another makes one more instance of a program that was started.
func (p *Program) another() (*instance, error) {
	if p.reactor {
		return p.copy()
	}
	p.fill()
	return p.begin()
}

// copy makes an instance of the image. Nothing runs in it.
func (p *Program) copy() (*instance, error) {
	i, _, err := p.module.assemble(p.base, uint64(p.start.MemoryLimit))
	if err != nil {
		return nil, err
	}
	i.start = nil
	p.mu.Lock()
	err = i.memory.adopt(p.image)
	p.mu.Unlock()
	if err == nil {
		err = i.memory.resize(i.wasm)
	}
	if err != nil {
		i.close(p.base)
		return nil, &Error{Op: "instantiate", Kind: ErrHost, Reason: "no copy of the started instance", Err: err}
	}
	i.resetGlobals()
	return i, nil
}

// view is a directory that wazero takes for its cache. It belongs to one engine, and holds
// code only while wazero reads that: what wazero finds is what was checked, whatever other
// processes do to the store meanwhile. wazero would compile what it does not find, in this
// process, without bounds.
type view struct {
	store     store
	directory string
	folder    string // below the directory, where wazero looks

	mu      sync.Mutex
	reading map[string]chan struct{} // by name; closed when the code is no longer needed
}

// newView makes a view, and calls open to have wazero open it as a cache.
func newView(s store, open func(directory string) error) (*view, error) {
	directory, err := os.MkdirTemp(s.directory, viewPattern)
	if err != nil {
		return nil, err
	}
	v := &view{store: s, directory: directory, reading: map[string]chan struct{}{}}
	if err = open(directory); err == nil {
		v.folder, err = onlyFolder(directory)
	}
	if err != nil {
		return nil, errors.Join(err, v.remove())
	}
	return v, nil
}

func (v *view) remove() error { return os.RemoveAll(v.directory) }

// show lets wazero see an entry's code during read. It fails with errNoEntry if the code
// is not what the index says.
func (v *view) show(entry string, i index, read func() error) (err error) {
	if i.Folder != v.folder {
		return fmt.Errorf("the compiler is of another version (%s) than this program (%s), which must be started again", i.Folder, v.folder)
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
		err = errors.New("wazero has compiled the module again")
	}
	return err
}

// reserve waits until nobody else shows the code of that name, and returns what ends the
// reservation.
func (v *view) reserve(name string) (release func()) {
	for {
		v.mu.Lock()
		other, taken := v.reading[name]
		if !taken {
			mine := make(chan struct{})
			v.reading[name] = mine
			v.mu.Unlock()
			return func() {
				v.mu.Lock()
				delete(v.reading, name)
				v.mu.Unlock()
				close(mine)
			}
		}
		v.mu.Unlock()
		<-other
	}
}

// prepare makes the directory again if it was removed, as folders of temporary files are
// after a while, and keeps [store.sweep] away.
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

// share gives a file a second name, or where the file system has no such thing, copies it.
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

// onlyFolder returns the name of the one thing in a directory.
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
