package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State says whether a document is indexed, or the reason that it is not.
type State uint8

// The states of documents.
const (
	Indexed State = iota // its words are in segments
	Binary               // it is not text
	TooLong              // there is no time in one call to index it
	states
)

// Entry describes a document in the index.
type Entry struct {
	Path     string
	Size     int64
	Modified time.Time
	State    State
	Length   int64 // in words
	Runs     []Run // its chunks, in order
}

// Run is chunks of a document that lie together in a segment.
type Run struct {
	Segment int // which one of the catalogue
	First   int // chunk of the segment
	Count   int
}

// Chunks returns how many chunks a document has.
func (e *Entry) Chunks() (count int) {
	for _, run := range e.Runs {
		count += run.Count
	}
	return count
}

// Knows reports whether an entry is current, judged by the file's size and modification time.
func (e *Entry) Knows(size int64, modified time.Time) bool {
	return e.Size == size && e.Modified.Equal(modified)
}

// Catalogue says which documents are in which segments.
type Catalogue struct {
	Segments []string // the names of their files
	Entries  []Entry  // by path, in no order
}

// Name is the name of the catalogue's file.
const Name = "catalogue"

// A catalogue is a header, its segments, its entries, and a checksum over all of it. Numbers are varints.
const (
	catalogueMagic = "caisson catalog1"
	maxCatalogue   = 48 << 20
	maxSegments    = 1000
	maxEntries     = 200_000
	maxPath        = 1 << 16
)

// Segments have names of hexadecimal digits.
func isName(name string) bool {
	return len(name) == nameLength && len(bytes.Trim([]byte(name), "0123456789abcdef")) == 0
}

const nameLength = 32

// IsOwn reports whether a file of this name, in the folder of an index, is a segment or a catalogue that was not
// finished.
func IsOwn(name string) bool { return isName(name) || strings.HasPrefix(name, Name+".") }

// Load reads the catalogue of a folder. If there is none, the error is [fs.ErrNotExist].
func Load(folder string) (*Catalogue, error) {
	name := filepath.Join(folder, Name)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, damaged(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxCatalogue {
		return nil, damaged(errors.New("its catalogue is too large, or no file"))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, damaged(err)
	}
	return decode(text)
}

// Encode returns the catalogue in its stored form.
func (c *Catalogue) Encode() ([]byte, error) {
	text := []byte(catalogueMagic)
	text = binary.AppendUvarint(text, uint64(len(c.Segments)))
	for _, name := range c.Segments {
		text = append(text, name...)
	}
	text = binary.AppendUvarint(text, uint64(len(c.Entries)))
	for i := range c.Entries {
		e := &c.Entries[i]
		text = binary.AppendUvarint(text, uint64(len(e.Path)))
		text = append(text, e.Path...)
		text = binary.AppendUvarint(text, uint64(e.Size))
		text = binary.AppendVarint(text, e.Modified.UnixNano())
		text = append(text, byte(e.State))
		text = binary.AppendUvarint(text, uint64(e.Length))
		text = binary.AppendUvarint(text, uint64(len(e.Runs)))
		for _, run := range e.Runs {
			for _, number := range []int{run.Segment, run.First, run.Count} {
				text = binary.AppendUvarint(text, uint64(number))
			}
		}
	}
	if len(text) > maxCatalogue-sha256.Size || len(c.Entries) > maxEntries || len(c.Segments) > maxSegments {
		return nil, errors.New("the index has too many documents")
	}
	sum := sha256.Sum256(text)
	return append(text, sum[:]...), nil
}

func decode(text []byte) (*Catalogue, error) {
	if len(text) < len(catalogueMagic)+sha256.Size || string(text[:len(catalogueMagic)]) != catalogueMagic {
		return nil, damaged(errors.New("its catalogue has another format"))
	}
	end := len(text) - sha256.Size
	if sha256.Sum256(text[:end]) != [sha256.Size]byte(text[end:]) {
		return nil, damaged(errors.New("the checksum of its catalogue is wrong"))
	}
	r := reader{text: text[len(catalogueMagic):end]}
	c := &Catalogue{}
	for range r.number(maxSegments) {
		name := string(r.bytes(nameLength))
		r.failed = r.failed || !isName(name) || slices.Contains(c.Segments, name)
		c.Segments = append(c.Segments, name)
	}
	count := r.number(maxEntries)
	// A document has one run, and one more for each segment in which it continues.
	runs := int(count) + len(c.Segments)
	for range count {
		e := r.entry(len(c.Segments), runs)
		if r.failed {
			break
		}
		runs -= len(e.Runs)
		c.Entries = append(c.Entries, e)
	}
	if r.failed || len(r.text) > 0 {
		return nil, damaged(errors.New("its catalogue has something else than documents"))
	}
	return c, nil
}

func (r *reader) entry(segments, runs int) (e Entry) {
	e.Path = string(r.bytes(r.number(maxPath)))
	e.Size = int64(r.number(math.MaxInt64))
	nanoseconds, size := binary.Varint(r.text)
	if size <= 0 {
		r.failed = true
		return e
	}
	r.text = r.text[size:]
	e.Modified = time.Unix(0, nanoseconds)
	e.State = State(r.number(uint64(states) - 1))
	e.Length = int64(r.number(math.MaxInt32))
	for range r.number(uint64(max(0, runs))) {
		run := Run{Segment: int(r.number(maxSegments)), First: int(r.number(MaxChunks)), Count: int(r.number(MaxChunks))}
		if r.failed = r.failed || run.Segment >= segments || run.First+run.Count > MaxChunks; r.failed {
			break
		}
		e.Runs = append(e.Runs, run)
	}
	return e
}
