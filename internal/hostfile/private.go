package hostfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	goruntime "runtime"
)

// ReadPrivate reads a regular file of at most limit bytes that only its owner can change. The note is set if other
// users can read the file. Errors never contain any of the content.
func ReadPrivate(name string, limit int64) (data []byte, note string, err error) {
	file, info, err := Open(name, Follow)
	if errors.Is(err, ErrIrregular) {
		return nil, "", fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, "", unreadable(name, err)
	}
	defer file.Close()
	if note, err = checkMode(name, info.Mode()); err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, "", unreadable(name, err)
	case int64(len(data)) > limit:
		return nil, "", fmt.Errorf("%s is larger than %d KiB", name, limit>>10)
	}
	return data, note, nil
}

func checkMode(name string, mode fs.FileMode) (note string, err error) {
	switch permissions := mode.Perm(); {
	case goruntime.GOOS == "windows": // Windows has access control lists instead
		return "", nil
	case permissions&0o022 != 0:
		return "", fmt.Errorf("%s can be changed by others (mode %04o); take that away: chmod go-w", name, permissions)
	case permissions&0o044 != 0:
		return fmt.Sprintf("its file can be read by others (mode %04o)", permissions), nil
	default:
		return "", nil
	}
}

// unreadable returns the error for a file that cannot be read, with the system's reason.
func unreadable(name string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s cannot be read: %w", name, err)
}
