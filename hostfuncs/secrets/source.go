package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	goruntime "runtime"
	"strings"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/manifests"
)

// Bounds of what values are read from, in bytes.
const (
	maxFile     = 64 << 10
	maxAge      = 1 << 20
	maxIdentity = 64 << 10
)

// sources reads values. It decrypts each age file once.
type sources struct {
	lookup func(string) (string, bool)
	ages   map[ageFile]map[string]string
}

// reading is what a source holds for a grant: a value, or why there is none.
type reading struct {
	value   string
	missing string
	note    string // what the operator should know of the source
}

func (s *sources) read(grant manifests.SecretGrant) (reading, error) {
	from := grant.From
	var r reading
	var err error
	switch {
	case from.Env != "":
		return s.readEnv(from.Env), nil
	case from.File != "":
		r, err = readFile(from.File)
	default:
		r, err = s.readAge(grant)
	}
	if err != nil {
		return reading{}, &Error{Op: "read", Name: grant.Name, Origin: grant.Origin, Kind: ErrSource, Message: err.Error()}
	}
	return r, nil
}

func (s *sources) readEnv(name string) reading {
	if s.lookup != nil {
		switch value, set := s.lookup(name); {
		case set && value != "":
			return reading{value: value}
		case set:
			return reading{missing: "the environment variable " + name + " is empty"}
		}
	}
	return reading{missing: "the environment variable " + name + " is not set"}
}

func readFile(name string) (reading, error) {
	data, note, err := readPrivate(name, maxFile)
	if err != nil {
		return reading{}, err
	}
	text := strings.TrimSuffix(string(data), "\n")
	if len(text) < len(data) {
		text = strings.TrimSuffix(text, "\r")
	}
	return reading{value: text, note: note}, nil
}

// readPrivate reads a regular file of at most limit bytes that nobody but its owner can
// change. The note says that others can read it. Its errors say what failed in words that
// hold nothing of the content.
func readPrivate(name string, limit int64) (data []byte, note string, err error) {
	file, info, err := hostfile.Open(name, hostfile.Follow)
	if errors.Is(err, hostfile.ErrIrregular) {
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
	case goruntime.GOOS == "windows": // which has access lists instead of these bits
		return "", nil
	case permissions&0o022 != 0:
		return "", fmt.Errorf("%s can be changed by others (mode %04o); take that away: chmod go-w", name, permissions)
	case permissions&0o044 != 0:
		return fmt.Sprintf("its file can be read by others (mode %04o)", permissions), nil
	default:
		return "", nil
	}
}

// unreadable says that a file cannot be read, and the system's reason.
func unreadable(name string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s cannot be read: %w", name, err)
}
