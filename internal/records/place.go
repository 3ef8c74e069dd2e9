package records

import (
	"errors"
	"path/filepath"
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
