package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/internal/ledger/internal/oldfolders"
)

// ErrNoPlace reports that the environment does not determine where a program keeps its state.
var ErrNoPlace = errors.New("the environment names no state folder; set HOME (on Windows: LocalAppData)")

// StateDir returns the folder in which Caisson keeps its state on an operating system, which is
// named as in runtime.GOOS. It does not create the folder.
func StateDir(system string, getenv func(string) string) (string, error) {
	var base string
	switch home := getenv("HOME"); system {
	case "windows":
		base = getenv("LocalAppData")
	case "darwin", "ios":
		if home != "" {
			base = filepath.Join(home, "Library", "Application Support")
		}
	default: // the XDG Base Directory Specification, which says to ignore relative paths
		if base = getenv("XDG_STATE_HOME"); !filepath.IsAbs(base) {
			base = ""
		}
		if base == "" && home != "" {
			base = filepath.Join(home, ".local", "state")
		}
	}
	if base == "" {
		return "", ErrNoPlace
	}
	return filepath.Join(base, "caisson"), nil
}

// In returns the location of the ledger in the state folder.
func In(state string) string { return filepath.Join(state, "ledger") }

// Exists reports whether there is a ledger in a state folder, or what an earlier version has left.
func Exists(state string) bool {
	for _, path := range []string{filepath.Join(In(state), database.FileName), oldFolder(state)} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

func oldFolder(state string) string { return filepath.Join(state, "records") }

// OpenIn opens the ledger in a state folder, or at the location in the options if there is one. Records that an earlier
// version has kept in the state folder are added to it.
func OpenIn(ctx context.Context, state string, options Options) (*Ledger, error) {
	if options.Location == "" {
		options.Location = In(state)
	}
	l, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	err = oldfolders.Records(oldFolder(state), func(content []byte) error {
		entry, err := decode(content)
		if err == nil {
			err = l.Append(ctx, entry)
		}
		if errors.Is(err, ErrKept) || errors.Is(err, ErrID) || errors.Is(err, ErrDamaged) {
			l.options.Logger.WarnContext(ctx, "a record was not imported", "err", err)
			return nil
		}
		return err
	})
	if err != nil {
		return nil, l.failure("import", errors.Join(err, l.Close(ctx)))
	}
	return l, nil
}
