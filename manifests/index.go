package manifests

import (
	"bytes"
	"cmp"
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
	stored  map[string]string // records from the text, by key

	mu     sync.Mutex
	used   map[string]string // records of the manifests that were loaded, by key
	parsed int               // how many manifests were parsed
}

// indexFormat is the version of the format of an index and of the meaning of its records.
const indexFormat = "caisson-manifests/v1"

// NewIndex returns an index with the manifests of an earlier one, of which [Index.Text] returned the
// text. The version says which program writes the index: what another version remembers is not used,
// because it may have had other rules. A damaged text is not used either.
func NewIndex(version string, text []byte) *Index {
	x := &Index{version: version, stored: map[string]string{}, used: map[string]string{}}
	head := x.head()
	start := len(head) + sha256.Size
	if len(text) > MaxIndexBytes || len(text) < start || !bytes.HasPrefix(text, head) {
		return x
	}
	entries := text[start:]
	if sha256.Sum256(entries) != [sha256.Size]byte(text[len(head):start]) {
		return x
	}
	for d := (decoder{rest: string(entries)}); d.rest != ""; {
		if key, record := d.take(sha256.Size), d.take(d.length()); d.err == nil {
			x.stored[key] = record
		}
	}
	return x
}

// head returns the first line of the text. It is followed by the SHA-256 of the rest, and that by keys
// and records.
func (x *Index) head() []byte { return fmt.Appendf(nil, "%s %q\n", indexFormat, x.version) }

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

// keyOf returns the key of a manifest: the digest of all that decides what it says.
func keyOf(path string, source []byte) string {
	hash := sha256.New()
	if isJSON(path) {
		hash.Write([]byte("json\n"))
	} else {
		hash.Write([]byte("yaml\n"))
	}
	hash.Write(source)
	return string(hash.Sum(nil))
}

func isJSON(path string) bool { return strings.EqualFold(filepath.Ext(path), ".json") }

// Text returns the text of the index, to be stored, or nil if that would be in vain: the index started
// with all the manifests that were loaded, as far as they fit. Others that it started with follow
// them.
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
	head := x.head()
	entries, changed := []byte{}, false
	for _, key := range keys {
		record := cmp.Or(x.used[key], x.stored[key])
		added := append(binary.AppendUvarint([]byte(key), uint64(len(record))), record...)
		if len(head)+sha256.Size+len(entries)+len(added) <= MaxIndexBytes {
			entries = append(entries, added...)
			changed = changed || x.used[key] != "" && isNew(key)
		}
	}
	if !changed {
		return nil
	}
	sum := sha256.Sum256(entries)
	return slices.Concat(head, sum[:], entries)
}
