package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// maxIndexBytes is the maximum size of an index. An index contains names that the module exports.
const maxIndexBytes = 64 << 20

// blob is the expected size and digest of a file of an entry. If something else is in its place,
// such as an endless device, the entry is treated as missing.
type blob struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

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

// read returns the contents of a file and checks them against the blob.
func (b blob) read(file string) ([]byte, error) {
	f, err := b.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := make([]byte, b.Bytes)
	n, err := io.ReadFull(f, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // it may have been truncated
		return nil, err
	}
	return content, b.compare(file, blobOf(content[:n]))
}

// check returns errNoEntry if the file does not match the blob.
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

// measureBlob returns the blob of a file that the compiler has just written.
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

// absent converts the absence of a file, or anything irregular in its place, to errNoEntry.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfile.ErrIrregular) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", errNoEntry, err)
	}
	return err
}

// abandonedAge is the age at which a directory is taken to be unused. An engine that still needs it
// recreates it.
const abandonedAge = time.Hour

// sweep removes the directories that killed processes left in a store.
func (s store) sweep(now time.Time) error {
	listed, err := os.ReadDir(s.directory)
	if err != nil {
		return err
	}
	for _, item := range listed {
		if !isTransient(item.Name()) {
			continue
		}
		if err := removeAbandoned(filepath.Join(s.directory, item.Name()), now); err != nil {
			return err
		}
	}
	return nil
}

// isTransient reports whether a directory of this name belongs to a single engine.
func isTransient(name string) bool {
	return slices.ContainsFunc([]string{stagingPattern, viewPattern, removedPattern}, func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return err == nil && matched
	})
}

// scratchPattern is the pattern for the directories of stores that are not kept, and scratchName
// matches the resulting names.
const scratchPattern = "caisson-compiled-*"

var scratchName = regexp.MustCompile(`^caisson-compiled-[0-9]+$`)

// sweepScratch removes the directories that killed processes of this user left in a temporary folder that other users
// may share.
func sweepScratch(folder string, now time.Time) error {
	listed, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var failures []error
	for _, item := range listed {
		if !scratchName.MatchString(item.Name()) {
			continue
		}
		directory := filepath.Join(folder, item.Name())
		if info, err := os.Lstat(directory); err == nil && ownPrivate(info) == nil {
			failures = append(failures, removeAbandoned(directory, now))
		}
	}
	return errors.Join(failures...)
}

// removeAbandoned removes a directory that has not been modified for a long time.
func removeAbandoned(directory string, now time.Time) error {
	info, err := os.Lstat(directory)
	if err == nil && now.Sub(info.ModTime()) > abandonedAge {
		err = os.RemoveAll(directory)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const defaultCacheBytes = 2 << 30

// occupant is an entry as trim sees it.
type occupant struct {
	entry string
	bytes int64
	used  time.Time // zero for an entry without an index, which is unusable
}

// trim evicts the least recently used entries until the rest fit the limit. An engine that has read an entry no longer
// needs it, and an engine that is reading it has a view.
func (s store) trim() error {
	occupants, err := s.occupants()
	if err != nil {
		return err
	}
	slices.SortFunc(occupants, func(a, b occupant) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.entry, b.entry))
	})
	var total int64
	for _, o := range occupants {
		total += o.bytes
	}
	for _, o := range occupants {
		if total <= s.limit {
			return nil
		}
		if err := s.discard(o.entry); err != nil {
			return err
		}
		total -= o.bytes
	}
	return nil
}

func (s store) occupants() ([]occupant, error) {
	listed, err := os.ReadDir(s.directory)
	if err != nil {
		return nil, err
	}
	var found []occupant
	for _, item := range listed {
		if !item.IsDir() || !entryName.MatchString(item.Name()) {
			continue
		}
		o, err := measure(filepath.Join(s.directory, item.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just removed it
		}
		if err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, nil
}

func measure(entry string) (occupant, error) {
	files, err := os.ReadDir(entry)
	if err != nil {
		return occupant{}, err
	}
	o := occupant{entry: entry}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			return occupant{}, err
		}
		o.bytes += info.Size()
		if file.Name() == indexFile {
			o.used = info.ModTime()
		}
	}
	return o, nil
}

// privateDirectory creates a directory that only this user can use, or checks that an existing one
// is private. Anyone who can write to it can run native code as this user.
func privateDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := ownPrivate(info); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// ownPrivate checks that a file is a directory that only this user can use. The error text
// continues a sentence that starts with the path.
func ownPrivate(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	return hostfile.Private(info)
}
