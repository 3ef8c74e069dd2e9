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

	"github.com/caisson-run/caisson/internal/folder"
)

// Place is the file of one batch. It is for one goroutine at a time.
type Place struct {
	folder    Folder
	dir, name string
	private   bool   // the file is in the folder
	content   []byte // as it was last read
	beside    string // the file beside it that says that it was claimed, where that goes once it was rewritten
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

// Keep writes a paused batch, in the place of what is there.
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

// release removes what says beside the file that it was claimed: its content is another one now, which
// whoever claims it compares.
func (p *Place) release(root *os.Root) error {
	if p.beside == "" {
		return nil
	}
	err := folder.Remove(root, p.beside)
	p.beside = ""
	return err
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
	return folder.Read(root, p.name, MaxFileBytes)
}

// Claim implements [executor.Claimer] for the batch that was last read. A state is claimed once in the
// folder where its file lies, by whatever path that is reached and whatever the file is called, and
// once in the folder for state. Copies and hard links of the file that lie elsewhere are known to the
// folder for state alone.
func (p *Place) Claim(_ context.Context, key string, _ time.Time) (_ bool, err error) {
	defer func() { err = p.failure("claim", err) }()
	digest := sha256.Sum256([]byte(key))
	marker := "." + hex.EncodeToString(digest[:]) + taken // it may lie among the files of the user's
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
		p.beside = marker
	}
	if !ours || err != nil {
		err = errors.Join(err, p.release(here))
	}
	return ours && err == nil, err
}

// claimOnce claims the state in the folder for state, once it was claimed beside its file. It reports
// whether that is the same folder, where the marker is kept.
func (p *Place) claimOnce(here *os.Root, marker string) (ours, kept bool, err error) {
	// Another process may have gone on with the batch since it was read here.
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

// take creates a file, and reports whether it was not there.
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
