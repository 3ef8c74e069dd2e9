package manifests

import (
	"crypto/sha256"
	"encoding/binary"
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

// ErrIndex is wrapped by the error of [Manifest.Confirm] for a manifest that an [Index] restored
// wrongly.
var ErrIndex = errors.New("the index of manifests is wrong")

// Index remembers manifests that were valid by the digest of what they were read from, so that the
// next process need not parse them again. It is safe for concurrent use.
//
// An index is never out of date, because the file of a manifest is read each time. Broken manifests
// are not remembered. A manifest that the index restores is equal to the parsed one as far as the
// index is right: an index that somebody else has written can say anything. Parse the manifests whose
// tools are called, with [Manifest.Confirm].
type Index struct {
	version string
	stored  map[string]entry // from the text, by key

	mu   sync.Mutex
	used map[string]entry // by this process
	// parsed is how many manifests were parsed.
	parsed int
}

// entry is a line of an index without its key.
type entry struct{ sum, record string }

// indexFormat is the version of the format of an index and of the meaning of its records.
const indexFormat = "caisson-manifests/v1"

// NewIndex returns an index with the manifests of an earlier one, whose [Index.Text] is given. The
// version says which program writes the index: manifests that another version remembers are parsed
// again, because it may have had other rules. What is damaged in the text is ignored.
func NewIndex(version, text string) *Index {
	x := &Index{version: version, stored: map[string]entry{}, used: map[string]entry{}}
	first, rest, _ := strings.Cut(text, "\n")
	if len(text) > MaxIndexBytes || first != x.firstLine() {
		return x
	}
	for d := (decoder{rest: rest}); d.rest != ""; {
		key, e := d.take(sha256.Size), entry{d.take(sha256.Size), d.take(d.length())}
		if d.err == nil {
			x.stored[key] = e
		}
	}
	return x
}

func (x *Index) firstLine() string { return fmt.Sprintf("%s %q", indexFormat, x.version) }

// Load is like the function [Load], but does not parse a manifest that the index knows.
func (x *Index) Load(path string) (*Manifest, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, err
	}
	key := keyOf(path, source)
	if e := x.stored[key]; e.sum == sumOf(key, e.record) {
		if m := restore(path, source, e.record); m != nil {
			x.use(key, e, 0)
			return m, nil
		}
	}
	m, err := Parse(path, source)
	if err != nil {
		x.use("", entry{}, 1)
		return nil, err
	}
	record := recordOf(m)
	x.use(key, entry{sumOf(key, record), record}, 1)
	return m, nil
}

func (x *Index) use(key string, e entry, parsed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.parsed += parsed
	if e.record != "" {
		x.used[key] = e
	}
}

// keyOf returns the key of a manifest: the digest of all that decides what it says.
func keyOf(path string, source []byte) string {
	syntax := "yaml"
	if isJSON(path) {
		syntax = "json"
	}
	return digestOf(syntax, string(source))
}

// sumOf returns the digest that shows that a record has not been damaged.
func sumOf(key, record string) string { return digestOf(key, record) }

func digestOf(first, second string) string {
	hash := sha256.New()
	hash.Write([]byte(first + "\n"))
	hash.Write([]byte(second))
	return string(hash.Sum(nil))
}

func isJSON(path string) bool { return strings.EqualFold(filepath.Ext(path), ".json") }

// Text returns the text of the index, to be stored, or "" if that would be in vain: the index started
// with all the manifests that were loaded, as far as they fit. Others that it started with follow
// them.
func (x *Index) Text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	isNew := func(key string) bool { return x.used[key] != x.stored[key] }
	keys := slices.Sorted(maps.Keys(x.used))
	if !slices.ContainsFunc(keys, isNew) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(x.stored)) {
		if _, used := x.used[key]; !used {
			keys = append(keys, key)
		}
	}
	var text strings.Builder
	text.WriteString(x.firstLine() + "\n")
	changed := false
	for _, key := range keys {
		e, used := x.used[key]
		if !used {
			e = x.stored[key]
		}
		head := binary.AppendUvarint([]byte(key+e.sum), uint64(len(e.record)))
		if text.Len()+len(head)+len(e.record) <= MaxIndexBytes {
			text.Write(head)
			text.WriteString(e.record)
			changed = changed || used && isNew(key)
		}
	}
	if !changed {
		return ""
	}
	return text.String()
}
