package records

import (
	"errors"
	"path/filepath"
)

// ErrNoPlace means that the environment does not say where a program keeps its state.
var ErrNoPlace = errors.New("the environment names no folder for the state of programs")

// StateDir returns the folder in which Caisson keeps its state on an operating system,
// named as in runtime.GOOS. It is not created.
func StateDir(system string, getenv func(string) string) (string, error) {
	var base string
	switch home := getenv("HOME"); system {
	case "windows":
		base = getenv("LocalAppData")
	case "darwin", "ios":
		if home != "" {
			base = filepath.Join(home, "Library", "Application Support")
		}
	default: // the XDG Base Directory Specification, which has relative paths ignored
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

// In returns the folder of records within the folder for state.
func In(state string) Folder { return Folder(filepath.Join(state, "records")) }
