package engine

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// defaultCacheBytes is the limit of a store where the options say none.
const defaultCacheBytes = 2 << 30

// occupant is an entry as trim sees it.
type occupant struct {
	entry string
	bytes int64
	used  time.Time // zero for an entry without an index, which nobody can use
}

// trim removes the entries that were not used for the longest time, until the others fit
// the limit. Whoever has read an entry does not need it any more, and whoever is reading
// it has a view.
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
