package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

// Segment is an open segment. It is not safe for concurrent use.
type Segment struct {
	file    *os.File
	lengths []byte
	parts   []part
	text    []byte // of the part that is looked at
}

// part is some words, and where they are in the file.
type part struct {
	first  uint32 // hash
	places int64  // where the places of its words start
	words  int64  // where the words start, and the places end
	end    int64
	sum    uint32
}

const directoryEntry = 4 * 4 // bytes

// OpenSegment opens a segment, and reads its header, the lengths of its chunks and the directory of its parts.
func OpenSegment(name string) (*Segment, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, damaged(err)
	}
	s := &Segment{file: file}
	if err := s.open(); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// damaged wraps an error. A file that is missing is damage, too.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

func (s *Segment) open() error {
	info, err := s.file.Stat()
	if err != nil {
		return damaged(err)
	}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(s.file, header); err != nil {
		return damaged(err)
	}
	if string(header[:len(segmentMagic)]) != segmentMagic {
		return damaged(errors.New("it has another format"))
	}
	var sizes [3]int64
	for i := range sizes {
		sizes[i] = int64(binary.LittleEndian.Uint32(header[len(segmentMagic)+4*i:]))
	}
	chunks, parts, directory := sizes[0], sizes[1], sizes[2]
	start := int64(headerSize) + 2*chunks
	if chunks > MaxChunks || directory%directoryEntry != 0 || directory > parts+directoryEntry ||
		start+parts+directory != info.Size() {
		return damaged(errors.New("its parts are not as large as it says"))
	}
	both := make([]byte, 2*chunks+directory)
	if _, err := io.ReadFull(s.file, both[:2*chunks]); err != nil {
		return damaged(err)
	}
	if _, err := s.file.ReadAt(both[2*chunks:], start+parts); err != nil && directory > 0 {
		return damaged(err)
	}
	sum := crc32.Checksum(header[:headerSize-4], checksums)
	if crc32.Update(sum, checksums, both) != binary.LittleEndian.Uint32(header[headerSize-4:]) {
		return damaged(errors.New("a checksum is wrong"))
	}
	s.lengths = both[:2*chunks]
	return s.list(both[2*chunks:], start, start+parts)
}

// list reads the directory of the parts, which fill the file between two places.
func (s *Segment) list(directory []byte, at, end int64) error {
	for entry := range slices.Chunk(directory, directoryEntry) {
		p := part{first: binary.LittleEndian.Uint32(entry), places: at, sum: binary.LittleEndian.Uint32(entry[12:])}
		p.words = p.places + int64(binary.LittleEndian.Uint32(entry[4:]))
		p.end = p.words + int64(binary.LittleEndian.Uint32(entry[8:]))
		if at = p.end; at > end || p.end-p.places > maxPart {
			return damaged(errors.New("a part is outside of it"))
		}
		s.parts = append(s.parts, p)
	}
	if at != end {
		return damaged(errors.New("something is behind its parts"))
	}
	return nil
}

// Close closes the file.
func (s *Segment) Close() error { return s.file.Close() }

// Chunks returns how many chunks the segment has.
func (s *Segment) Chunks() int { return len(s.lengths) / 2 }

// Length returns the length of a chunk, in words.
func (s *Segment) Length(chunk int) int { return int(binary.LittleEndian.Uint16(s.lengths[2*chunk:])) }

// Check reads all of the segment, and fails if any of it differs from what the builder wrote.
func (s *Segment) Check() error {
	var all []byte
	for _, p := range s.parts {
		all = slices.Grow(all[:0], int(p.words-p.places))
		places := all[:p.words-p.places]
		if _, err := s.file.ReadAt(places, p.places); err != nil && len(places) > 0 {
			return damaged(err)
		}
		err := s.words(p, func(_ []byte, at, size int64, sum uint32) error {
			own := places[at-p.places:][:size]
			if crc32.Checksum(own, checksums) != sum {
				return damaged(errors.New("a checksum is wrong"))
			}
			return s.visit(own, func(int, int) error { return nil })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Find calls visit with each chunk that has a word, in order, and how often.
func (s *Segment) Find(word string, visit func(chunk, count int) error) error {
	hash := words.Hash([]byte(word))
	// Words of one hash may be in several parts.
	first := max(0, sort.Search(len(s.parts), func(i int) bool { return s.parts[i].first >= hash })-1)
	for _, p := range s.parts[first:] {
		if p.first > hash {
			break
		}
		found := false
		err := s.words(p, func(other []byte, at, size int64, sum uint32) error {
			if string(other) != word {
				return nil
			}
			found = true
			places := make([]byte, size)
			if err := s.read(places, at, sum); err != nil {
				return err
			}
			return s.visit(places, visit)
		})
		if found || err != nil {
			return err
		}
	}
	return nil
}

// words calls visit with the words of a part, and where their places are in the file.
func (s *Segment) words(p part, visit func(word []byte, at, size int64, sum uint32) error) error {
	s.text = slices.Grow(s.text[:0], int(p.end-p.words))[:p.end-p.words]
	if err := s.read(s.text, p.words, p.sum); err != nil {
		return err
	}
	r := reader{text: s.text}
	for at := p.places; len(r.text) > 0; {
		word := r.bytes(r.number(words.MaxWord))
		size := int64(r.number(maxPart))
		sum := r.bytes(4)
		if r.failed || at+size > p.words {
			return damaged(errors.New("a part has something else than words"))
		}
		if err := visit(word, at, size, binary.LittleEndian.Uint32(sum)); err != nil {
			return err
		}
		at += size
	}
	return nil
}

func (s *Segment) visit(places []byte, visit func(chunk, count int) error) error {
	r := reader{text: places}
	for chunk := -1; len(r.text) > 0; {
		step := r.number(MaxChunks)
		count := r.number(maxCount)
		if chunk < 0 {
			chunk = 0
		} else if step == 0 {
			r.failed = true
		}
		chunk += int(step)
		if r.failed || count == 0 || chunk >= s.Chunks() {
			return damaged(errors.New("a word has places that there are not"))
		}
		if err := visit(chunk, int(count)); err != nil {
			return err
		}
	}
	return nil
}

// maxPart bounds a part. All parts of a segment together have less.
const maxPart = 16 << 20

// read fills a text from a place of the file, and compares its checksum.
func (s *Segment) read(text []byte, at int64, sum uint32) error {
	if _, err := s.file.ReadAt(text, at); err != nil && len(text) > 0 {
		return damaged(err)
	}
	if crc32.Checksum(text, checksums) != sum {
		return damaged(errors.New("a checksum is wrong"))
	}
	return nil
}

// reader takes numbers and bytes from a text. It sets failed if the text does not have them.
type reader struct {
	text   []byte
	failed bool
}

// number returns a number that is not more than limit.
func (r *reader) number(limit uint64) uint64 {
	value, size := binary.Uvarint(r.text)
	if size <= 0 || value > limit {
		r.failed = true
		return 0
	}
	r.text = r.text[size:]
	return value
}

func (r *reader) bytes(count uint64) []byte {
	if r.failed || count > uint64(len(r.text)) {
		r.failed = true
		return nil
	}
	part := r.text[:count]
	r.text = r.text[count:]
	return part
}
