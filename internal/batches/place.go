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

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/folder"
)

// Place is the file of one batch. It is not safe for concurrent use.
type Place struct {
	folder    Folder
	dir, name string
	private   bool // the file is in the folder
	keys      *agefile.Keys
	content   []byte // as last read
	marker    string // says next to the file that it was claimed; removed once the file is rewritten
}

// Path returns the path of the file.
func (p *Place) Path() string { return filepath.Join(p.dir, p.name) }

// Guarded returns the paths of the file and of the folder with the markers of claims. Anyone who can write there
// can change the batch, or cause it to be resumed again.
func (p *Place) Guarded() []string {
	if p.private {
		return p.folder.Guarded()
	}
	return append([]string{p.Path()}, p.folder.Guarded()...)
}

// Encrypt has Keep encrypt batches, and Read decrypt them. Nil keys change nothing.
func (p *Place) Encrypt(keys *agefile.Keys) { p.keys = keys }

func (p *Place) open() (*os.Root, error) {
	if p.private {
		return folder.Make(p.dir)
	}
	return os.OpenRoot(p.dir)
}

// Check returns an error if a new batch cannot be kept here: [ErrOccupied] if there is a file that
// is not an ended batch, or an error of the operating system.
func (p *Place) Check() (err error) {
	defer func() { err = failure("keep", p.Path(), err) }()
	root, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := folder.Read(root, p.name, MaxFileBytes)
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

// Keep writes a paused batch. It replaces an existing file.
func (p *Place) Keep(batch Batch) error {
	return p.write(wireBatch{Batch: batch.State.ID(), Dialect: batch.Dialect, State: &batch.State})
}

// End replaces the batch with a note that it has ended.
func (p *Place) End(id string, at time.Time) error { return p.write(wireBatch{Batch: id, Ended: &at}) }

func (p *Place) write(wire wireBatch) (err error) {
	defer func() { err = failure("keep", p.Path(), err) }()
	content, err := encode(wire)
	if err == nil && p.keys != nil && wire.Ended == nil {
		content, err = p.keys.Seal(content)
	}
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

// release removes the marker next to the file. After a rewrite it is not needed, since a claim
// compares the content of the file.
func (p *Place) release(root *os.Root) error {
	if p.marker == "" {
		return nil
	}
	err := folder.Remove(root, p.marker)
	p.marker = ""
	return err
}

// Read returns the batch. The error wraps [ErrNotFound], [ErrEnded], [ErrDamaged], [ErrEncrypted], an error of package
// agefile or of the operating system.
func (p *Place) Read() (Batch, error) {
	content, err := p.read()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return Batch{}, failure("read", p.Path(), err)
	}
	p.content = content
	if agefile.IsEncrypted(content) {
		if p.keys == nil {
			return Batch{}, failure("read", p.Path(), ErrEncrypted)
		}
		if content, err = p.keys.Open(content); err != nil {
			return Batch{}, failure("read", p.Path(), err)
		}
	}
	batch, err := decode(content)
	return batch, failure("read", p.Path(), err)
}

func (p *Place) read() (_ []byte, err error) {
	root, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return folder.Read(root, p.name, MaxFileBytes)
}

// Claim implements [executor.Claimer] for the batch that was last read. A state can be claimed once
// in the folder of its file, whatever the path to the folder and the name of the file, and once in
// the state folder. Only the state folder prevents a second claim with a copy or a hard link of the
// file in another folder.
func (p *Place) Claim(_ context.Context, key string, _ time.Time) (_ bool, err error) {
	defer func() { err = failure("claim", p.Path(), err) }()
	digest := sha256.Sum256([]byte(key))
	marker := "." + hex.EncodeToString(digest[:]) + taken // hidden, since it may be among the user's files
	here, err := p.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, here.Close()) }()
	if ours, err := take(here, marker); !ours || err != nil {
		return false, err
	}
	ours, kept, err := p.claimOnce(here, marker)
	if !kept {
		p.marker = marker
	}
	if !ours || err != nil {
		err = errors.Join(err, p.release(here))
	}
	return ours && err == nil, err
}

// claimOnce claims the state in the state folder, after it was claimed in the folder of its file.
// kept reports whether the two are the same folder, whose marker must stay.
func (p *Place) claimOnce(here *os.Root, marker string) (ours, kept bool, err error) {
	// Another process may have resumed the batch since it was read.
	if content, err := p.read(); err != nil || !bytes.Equal(content, p.content) {
		return false, false, err
	}
	if p.private || p.folder == "" {
		return true, p.private, nil
	}
	state, err := folder.Make(string(p.folder))
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if same, err := isSame(here, state); same || err != nil {
		return same, same, err
	}
	ours, err = take(state, marker)
	return ours, false, err
}

// take creates a file, and reports whether it did not exist before.
func take(root *os.Root, name string) (bool, error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

func isSame(one, other *os.Root) (bool, error) {
	a, err := one.Stat(".")
	if err != nil {
		return false, err
	}
	b, err := other.Stat(".")
	return err == nil && os.SameFile(a, b), err
}
