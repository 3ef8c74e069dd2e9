// Package folder keeps files in a private folder of the user. Any number of processes may use a
// folder concurrently. Files are written atomically.
package folder

import (
	"bytes"
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

// The errors of this package, for errors.Is.
var (
	ErrExposed   = errors.New("the folder must be accessible only to this user")
	ErrIrregular = errors.New("it is not a regular file")
	ErrTooLarge  = errors.New("the file is too large")
)

const (
	temporary = ".tmp" // suffix of drafts; their names start with a dot
	abandoned = time.Hour
)

// Make opens a folder, and creates it if necessary.
func Make(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return Open(path)
}

// Open opens a folder. It fails with [ErrExposed] if the folder belongs to another user or is accessible to other
// users: its content is private, and content that others can write is not trustworthy.
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

// Read returns the content of a regular file. It fails with [ErrTooLarge], without reading, if the
// file has more than limit bytes.
func Read(root *os.Root, name string, limit int64) ([]byte, error) {
	file, info, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, errors.Join(tooLarge(limit), file.Close())
	}
	var content bytes.Buffer
	content.Grow(int(info.Size()) + bytes.MinRead)
	_, err = content.ReadFrom(io.LimitReader(file, limit+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if int64(content.Len()) > limit { // the file has grown
		return nil, tooLarge(limit)
	}
	return content.Bytes(), nil
}

// ReadStart returns the first bytes of a regular file, at most limit.
func ReadStart(root *os.Root, name string, limit int64) ([]byte, error) {
	file, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	return content, errors.Join(err, file.Close())
}

func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, info, err := hostfile.OpenIn(root, name, hostfile.NoFollow)
	if errors.Is(err, hostfile.ErrIrregular) {
		err = ErrIrregular
	}
	return file, info, err
}

// ReadProtected returns the content of a regular file in a folder that other users may read, such as one that is part
// of an image. It fails with [ErrExposed] if a user other than this one and root owns the folder or the file or can
// write to them.
func ReadProtected(path, name string, limit int64) (content []byte, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, checked := range []string{".", name} {
		info, err := root.Lstat(checked)
		if err != nil {
			return nil, err
		}
		if exposed := hostfile.Protected(info); exposed != nil {
			return nil, fmt.Errorf("%w: %s %w", ErrExposed, checked, exposed)
		}
	}
	return Read(root, name, limit)
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)
}

// Write writes a file that only the user may read. It replaces an existing file atomically.
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

// Create is [Write] for a file that must not exist yet: the error wraps [fs.ErrExist] if it does.
func Create(root *os.Root, name string, content []byte) error {
	draft := "." + name + "." + rand.Text()
	if err := Write(root, draft, content); err != nil {
		return err
	}
	return errors.Join(root.Link(draft, name), root.Remove(draft))
}

// Look returns the descriptions of all files, by name. It removes drafts that are older than an hour, which processes
// that ended early have left.
func Look(root *os.Root) (map[string]fs.FileInfo, error) {
	files, err := names(root)
	problems := []error{err}
	kept := map[string]fs.FileInfo{}
	for _, name := range files {
		info, err := root.Lstat(name)
		if err != nil {
			problems = append(problems, present(err))
			continue
		}
		kept[name] = info
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporary) && time.Since(info.ModTime()) > abandoned {
			problems = append(problems, Remove(root, name))
		}
	}
	return kept, errors.Join(problems...)
}

// Trim removes files named by ids, the last ones first, until at most limit of them with at most
// bytes bytes in total are left.
func Trim(root *os.Root, ids []string, kept map[string]fs.FileInfo, limit int, bytes int64) error {
	var problems []error
	for i, id := range ids {
		if bytes -= kept[id+Suffix].Size(); i >= limit || bytes < 0 {
			problems = append(problems, Remove(root, id+Suffix))
		}
	}
	return errors.Join(problems...)
}

// Remove removes a file. It succeeds if another process has already removed it.
func Remove(root *os.Root, name string) error { return present(root.Remove(name)) }

// present returns err, or nil if it says that the file does not exist.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Reason returns an error without its path, for messages that already contain the path.
func Reason(err error) error {
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return inPath.Err
	}
	return err
}
