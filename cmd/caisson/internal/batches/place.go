package batches

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-run/caisson/cmd/caisson/internal/folder"
)

// Place is the file of one batch. It is for one goroutine, but for Claim.
type Place struct {
	folder    Folder
	dir, name string
	private   bool   // the file is in the folder
	content   []byte // as it was last read
	marker    string // the file that says that it was claimed; empty where it was not
}

// Path returns the file.
func (p *Place) Path() string { return filepath.Join(p.dir, p.name) }

// Dirs returns the folders that hold the file and what was claimed of it. Whoever can write there can
// change the batch, or have it resumed again.
func (p *Place) Dirs() []string {
	if p.private {
		return p.folder.Dirs()
	}
	return append([]string{p.dir}, p.folder.Dirs()...)
}

func (p *Place) open() (*os.Root, error) {
	if p.private {
		return folder.Make(p.dir)
	}
	return os.OpenRoot(p.dir)
}

func (p *Place) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, p.Path(), folder.Reason(err)}
}

// Check reports why a first batch cannot be kept here: [ErrOccupied] where there is a file of
// anything else than a batch that has ended, or what the operating system says.
func (p *Place) Check() (err error) {
	defer func() { err = p.failure("keep", err) }()
	root, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := folder.Read(root, p.name, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := decode(content); errors.Is(err, ErrEnded) {
		return nil
	}
	return ErrOccupied
}

// Keep writes a batch that waits, in the place of what is there.
func (p *Place) Keep(batch Batch) error {
	return p.write(wireBatch{Batch: batch.State.ID(), Dialect: batch.Dialect, State: &batch.State})
}

// End notes that the batch has ended, and keeps nothing else of it.
func (p *Place) End(id string, at time.Time) error { return p.write(wireBatch{Batch: id, Ended: &at}) }

func (p *Place) write(wire wireBatch) (err error) {
	defer func() { err = p.failure("keep", err) }()
	content, err := encode(wire)
	if err != nil {
		return err
	}
	root, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := folder.Write(root, p.name, content); err != nil {
		return err
	}
	if p.private {
		return prune(root, MaxBatches, MaxBytes)
	}
	return p.release(root)
}

// release removes what says that the file was claimed, where that is beside it: its content is
// another one now, which whoever claims it compares.
func (p *Place) release(root *os.Root) error {
	if p.marker == "" || p.folder != "" {
		return nil
	}
	return folder.Remove(root, p.marker)
}

// Read returns the batch. The error wraps [ErrNotFound], [ErrEnded], [ErrDamaged] or the
// operating system's.
func (p *Place) Read() (Batch, error) {
	content, err := p.read()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return Batch{}, p.failure("read", err)
	}
	p.content = content
	batch, err := decode(content)
	return batch, p.failure("read", err)
}

func (p *Place) read() (_ []byte, err error) {
	root, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return folder.Read(root, p.name, MaxBytes)
}

// Claim implements [executor.Claimer] for the batch that was last read. A state is claimed once
// for the folder, whichever file it is in; without a folder, once for the file.
func (p *Place) Claim(_ context.Context, key string, _ time.Time) (_ bool, err error) {
	defer func() { err = p.failure("claim", err) }()
	digest := sha256.Sum256([]byte(key))
	p.marker = hex.EncodeToString(digest[:]) + taken
	var root *os.Root
	if p.folder != "" {
		root, err = folder.Make(string(p.folder))
	} else {
		root, err = p.open()
		p.marker = "." + p.name + "." + p.marker
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.OpenFile(p.marker, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Another process may have gone on with the batch since it was read here.
	content, err := p.read()
	if err = errors.Join(err, file.Close()); err != nil {
		return false, errors.Join(err, folder.Remove(root, p.marker)) // it can be tried again
	}
	if bytes.Equal(content, p.content) {
		return true, nil
	}
	return false, p.release(root)
}
