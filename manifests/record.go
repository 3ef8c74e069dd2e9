package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// record is a manifest in an [Index]: all of it except its file.
type record struct {
	Manifest Manifest
	// Lines are the lines of the keys that are looked up when a tool is opened.
	Lines map[string]int
}

// recordOf returns the record of a parsed manifest: one line of JSON. Equal manifests have equal records.
func recordOf(m *Manifest) string {
	r := record{*m, map[string]int{}}
	r.Manifest.File = ""
	for path, at := range m.places {
		if isRecorded(path) {
			r.Lines[path] = at.line
		}
	}
	var line strings.Builder
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // which would change schemas and arguments
	if encoder.Encode(r) != nil {
		return "" // without a record, the manifest is parsed each time
	}
	return strings.TrimSuffix(line.String(), "\n")
}

// isRecorded reports whether a record has the line of a path.
func isRecorded(path string) bool {
	end := strings.IndexAny(path+".", ".[")
	return path[:end] == "permissions" || path[:end] == "module"
}

// restore returns the manifest of a record, or nil if it is not a record.
func restore(file string, source []byte, text string) *Manifest {
	var r record
	if json.Unmarshal([]byte(text), &r) != nil || r.Manifest.Parameters == nil {
		return nil
	}
	m := &r.Manifest
	m.File = file
	for path, line := range r.Lines {
		if m.places == nil {
			m.places = places{}
		}
		m.places[path] = position{line: line}
	}
	parse := sync.OnceValues(func() (*Manifest, error) { return Parse(file, source) })
	m.restored = &restored{parse, sync.OnceValue(func() error {
		if parsed, err := parse(); err != nil || recordOf(parsed) != text {
			return fmt.Errorf("%w about %s", ErrIndex, file)
		}
		return nil
	})}
	return m
}

// restored holds the remaining work for a manifest that was not parsed. Each function does it once.
type restored struct {
	parse   func() (*Manifest, error)
	confirm func() error
}

// position returns the position of a path, which need not be recorded.
func (r *restored) position(path string) position {
	m, err := r.parse()
	if err != nil {
		return position{}
	}
	return m.places.near(path)
}

// Confirm parses a manifest that an [Index] restored. The error wraps [ErrIndex] if the manifest was
// not as its source says. A manifest that was parsed needs no confirmation.
func (m *Manifest) Confirm() error {
	if m.restored == nil {
		return nil
	}
	return m.restored.confirm()
}
