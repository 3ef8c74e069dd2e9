// Package overlay makes mistakes on purpose: it edits source files for a single build, so that a test sees whether the
// intended check notices a mistake. See -overlay in "go help build".
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Edit replaces a text that occurs in a file once. Without an old text it makes a new file.
type Edit struct {
	File     string // below the root, with slashes
	Old, New string
}

// Write writes the edited files and the overlay's own file to dir, and returns the latter's path.
// Several edits may be of one file. It fails where a text is not there, or more than once.
func Write(dir, root string, edits []Edit) (path string, err error) {
	replaced := map[string]string{}
	for _, e := range edits {
		file, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(e.File)))
		if err != nil {
			return "", err
		}
		from, made := file, replaced[file] == ""
		if made {
			replaced[file] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replaced), filepath.Base(file)))
		} else {
			from = replaced[file]
		}
		if e.Old == "" {
			if _, err := os.Stat(file); err == nil || !made {
				return "", fmt.Errorf("%s is not a new file", e.File)
			}
			if err := os.WriteFile(replaced[file], []byte(e.New), 0o600); err != nil {
				return "", err
			}
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), e.Old); n != 1 {
			return "", fmt.Errorf("%s has %d places for the edit %q", e.File, n, e.Old)
		}
		if err := os.WriteFile(replaced[file], []byte(strings.Replace(string(text), e.Old, e.New, 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
