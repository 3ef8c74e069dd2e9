package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// maxIndexBytes is how large an index may be. It holds names that a module exports.
const maxIndexBytes = 64 << 20

// blob is a file of an entry as it must be. Where there is anything else, a device without an
// end for instance, there is no entry.
type blob struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// readIndex returns the content of an index.
func readIndex(file string) ([]byte, error) {
	f, info, err := hostfile.Open(file, hostfile.NoFollow)
	if err != nil {
		return nil, absent(err)
	}
	defer f.Close()
	if info.Size() > maxIndexBytes {
		return nil, fmt.Errorf("%w: the index has %d bytes", errNoEntry, info.Size())
	}
	return io.ReadAll(io.LimitReader(f, maxIndexBytes))
}

// open opens a file that has the blob's size.
func (b blob) open(file string) (*os.File, error) {
	f, info, err := hostfile.Open(file, hostfile.NoFollow)
	if err != nil {
		return nil, absent(err)
	}
	if info.Size() != b.Bytes {
		return nil, errors.Join(fmt.Errorf("%w: %s has %d bytes", errNoEntry, filepath.Base(file), info.Size()), f.Close())
	}
	return f, nil
}

// read returns the content of a file, which is the blob.
func (b blob) read(file string) ([]byte, error) {
	f, err := b.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := make([]byte, b.Bytes)
	n, err := io.ReadFull(f, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // it may have become shorter
		return nil, err
	}
	return content, b.compare(file, blobOf(content[:n]))
}

// check returns errNoEntry for a file that is not the blob.
func (b blob) check(file string) error {
	f, err := b.open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := digestOf(io.LimitReader(f, b.Bytes))
	if err != nil {
		return err
	}
	return b.compare(file, found)
}

func (b blob) compare(file string, found blob) error {
	if found != b {
		return fmt.Errorf("%w: %s has changed", errNoEntry, filepath.Base(file))
	}
	return nil
}

func blobOf(content []byte) blob { return blob{int64(len(content)), DigestOf(content).String()} }

// measureBlob returns what a file is that the compiler has just left.
func measureBlob(file string) (blob, error) {
	f, _, err := hostfile.Open(file, hostfile.NoFollow)
	if err != nil {
		return blob{}, err
	}
	defer f.Close()
	return digestOf(f)
}

func digestOf(r io.Reader) (blob, error) {
	hash := sha256.New()
	n, err := io.Copy(hash, r)
	return blob{n, hex.EncodeToString(hash.Sum(nil))}, err
}

// absent makes of the absence of a file that of its entry, and of anything else in its place
// as well.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfile.ErrIrregular) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", errNoEntry, err)
	}
	return err
}
