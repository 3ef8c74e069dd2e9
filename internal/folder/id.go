package folder

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
)

// Suffix ends the name of a file that is named by an id.
const Suffix = ".json"

// MinPrefix is the minimum number of characters with which a user may abbreviate an id.
const MinPrefix = 8

// IsID reports whether a text is the id of a call or a batch, which is a UUID in lower case. Ids
// become file names, so nothing else may pass.
func IsID(text string) bool { return len(text) == len(form) && isStart(text) }

// IsPrefix reports whether a text from a user, in lower or upper case, is an id or an abbreviation
// of at least [MinPrefix] characters.
func IsPrefix(text string) bool { return len(text) >= MinPrefix && isStart(strings.ToLower(text)) }

const form = "00000000-0000-0000-0000-000000000000"

// isStart reports whether an id may start with a text.
func isStart(text string) bool {
	if len(text) > len(form) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if dash := form[i] == '-'; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

// IDs returns the ids by which files are named, newest first, since ids grow with time.
func IDs(names iter.Seq[string]) []string {
	var found []string
	for name := range names {
		if id, ok := strings.CutSuffix(name, Suffix); ok && IsID(id) {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(b, a) })
	return found
}

// Find returns the ids in the folder at a path that start with a text, in lower or upper case,
// newest first. It returns none if the folder does not exist.
func Find(path, start string) ([]string, error) {
	root, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := names(root)
	found := slices.DeleteFunc(IDs(slices.Values(files)),
		func(id string) bool { return !strings.HasPrefix(id, strings.ToLower(start)) })
	return found, errors.Join(err, root.Close())
}

func names(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	files, err := dir.Readdirnames(-1)
	return files, errors.Join(err, dir.Close())
}
