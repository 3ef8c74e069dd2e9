// Package folder keeps files in a folder of the user's own, which any number of processes may use
// at once. A file is there as a whole or not at all.
package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// What can go wrong, for errors.Is.
var (
	ErrExposed   = errors.New("the folder must be this user's alone")
	ErrIrregular = errors.New("it is not a regular file")
	ErrTooLarge  = errors.New("the file is too large")
)

const (
	temporary = ".tmp" // behind a dot and the name, while a file is being written
	abandoned = time.Hour
)

// Make opens a folder, which is created if need be.
func Make(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return Open(path)
}

// Open opens a folder. It refuses one that is another user's, or that others may reach: what is
// kept is nobody else's business, and what others can write proves nothing.
func Open(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		if exposed := hostfile.Private(info); exposed != nil {
			err = fmt.Errorf("%w: it %w", ErrExposed, exposed)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// List returns what is in the folder.
func List(root *os.Root) (_ []fs.DirEntry, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.ReadDir(-1)
}

// Read returns the content of a regular file of at most so many bytes. Nothing of a larger one is read.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	file, info, err := hostfile.OpenIn(root, name, hostfile.NoFollow)
	if errors.Is(err, hostfile.ErrIrregular) {
		return nil, ErrIrregular
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, errors.Join(tooLarge(most), file.Close())
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > most { // it has grown
		return nil, tooLarge(most)
	}
	return content, nil
}

func tooLarge(most int64) error {
	return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, most)
}

// Write writes a file that the user alone may read, in the place of one of that name.
func Write(root *os.Root, name string, content []byte) error {
	draft := "." + name + "." + rand.Text() + temporary
	file, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(draft))
	}
	return err
}

// Kept is a file of the folder.
type Kept struct {
	Bytes   int64
	Changed time.Time
}

// Look returns what files are like, by their names. Drafts of processes that ended before they
// were done are removed.
func Look(root *os.Root, files []fs.DirEntry) (map[string]Kept, error) {
	var problems []error
	kept := map[string]Kept{}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			problems = append(problems, present(err))
			continue
		}
		kept[file.Name()] = Kept{info.Size(), info.ModTime()}
		if isDraft(file.Name()) && time.Since(info.ModTime()) > abandoned {
			problems = append(problems, Remove(root, file.Name()))
		}
	}
	return kept, errors.Join(problems...)
}

// Remove removes a file, unless another process has done so.
func Remove(root *os.Root, name string) error { return present(root.Remove(name)) }

// present returns nil for what another process has removed meanwhile.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isDraft(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporary)
}

// Reason returns an error without the path, which stands beside it.
func Reason(err error) error {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err
	}
	return err
}
