package manifests

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// MaxIndexBytes is the maximum size of the text of an [Index], which holds some 5,000 manifests.
const MaxIndexBytes = 16 << 20

// ErrIndex is wrapped by the error of [Manifest.Confirm] for a manifest that an [Index] restored wrongly.
var ErrIndex = errors.New("the index of manifests is wrong")

// Index remembers valid manifests by the digest of their source, so that the next process need not parse them again. It
// is safe for concurrent use.
//
// An index is never out of date, because the file of a manifest is read each time. Broken manifests are not remembered.
// A manifest that the index restores is equal to the parsed one only if the index is right: a forged index can say
// anything. Parse the manifests whose tools are called, with [Manifest.Confirm].
type Index struct {
	version string
	stored  map[string]string // records from the text, by key

	mu     sync.Mutex
	used   map[string]string // records of the manifests that were loaded, by key
	parsed int               // number of manifests that were parsed
}

// indexFormat is the version of the format of an index and of the meaning of its records.
const indexFormat = "caisson-manifests/v2"

// NewIndex returns an index with the manifests of an earlier one, of which [Index.Text] returned the
// text. The version says which program writes the index: what another version remembers is not used,
// because it may have had other rules. A damaged text is not used either.
func NewIndex(version string, text []byte) *Index {
	x := &Index{version: version, stored: map[string]string{}, used: map[string]string{}}
	head, entries, _ := strings.Cut(string(text), "\n")
	if len(text) > MaxIndexBytes || head != x.head(entries) {
		return x
	}
	for line := range strings.Lines(entries) {
		key, record, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		x.stored[key] = record
	}
	return x
}

// head returns the first line of the text. It is followed by a line for each manifest: its key and its record.
func (x *Index) head(entries string) string {
	return fmt.Sprintf("%s %q %x", indexFormat, x.version, sha256.Sum256([]byte(entries)))
}

// Load is like the function [Load], but does not parse a manifest that the index knows.
func (x *Index) Load(path string) (*Manifest, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, err
	}
	key := keyOf(path, source)
	if m := restore(path, source, x.stored[key]); m != nil {
		x.use(key, x.stored[key], 0)
		return m, nil
	}
	m, err := Parse(path, source)
	if err != nil {
		x.use("", "", 1)
		return nil, err
	}
	x.use(key, recordOf(m), 1)
	return m, nil
}

func (x *Index) use(key, record string, parsed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.parsed += parsed
	if record != "" {
		x.used[key] = record
	}
}

// keyOf returns the key of a manifest: the digest of its format and its source.
func keyOf(path string, source []byte) string {
	format := "yaml\n"
	if isJSON(path) {
		format = "json\n"
	}
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(format), source...)))
}

func isJSON(path string) bool { return strings.EqualFold(filepath.Ext(path), ".json") }

// Text returns the text of the index, to be stored, or nil if storing it is unnecessary: the index started with all the
// manifests that were loaded, as far as they fit. The manifests that were loaded come first, then the others of the
// stored index.
func (x *Index) Text() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	isNew := func(key string) bool { return x.used[key] != x.stored[key] }
	keys := slices.Sorted(maps.Keys(x.used))
	if !slices.ContainsFunc(keys, isNew) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(x.stored)) {
		if x.used[key] == "" {
			keys = append(keys, key)
		}
	}
	head, changed := len(x.head(""))+1, false
	var entries strings.Builder
	for _, key := range keys {
		entry := key + " " + cmp.Or(x.used[key], x.stored[key]) + "\n"
		if head+entries.Len()+len(entry) <= MaxIndexBytes {
			entries.WriteString(entry)
			changed = changed || x.used[key] != "" && isNew(key)
		}
	}
	if !changed {
		return nil
	}
	return []byte(x.head(entries.String()) + "\n" + entries.String())
}

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
