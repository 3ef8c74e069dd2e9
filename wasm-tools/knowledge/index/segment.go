package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/words"
)

// Segment is an open segment. It is not safe for concurrent use.
type Segment struct {
	file      *os.File
	lengths   []byte
	directory []byte
	places    int64 // where they start in the file
	sizes     [4]int64
}

const directoryEntry = 4 * 4 // bytes

// OpenSegment opens a segment, and reads what is not of single words.
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
	for i := range s.sizes {
		s.sizes[i] = int64(binary.LittleEndian.Uint32(header[len(segmentMagic)+4*i:]))
	}
	chunks, places, blocks, directory := s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[3]
	s.places = int64(headerSize) + 2*chunks + directory
	if chunks > MaxChunks || directory%directoryEntry != 0 || directory > blocks+directoryEntry || s.places+places+blocks != info.Size() {
		return damaged(errors.New("its parts are not as large as it says"))
	}
	both := make([]byte, 2*chunks+directory)
	if _, err := io.ReadFull(s.file, both); err != nil {
		return damaged(err)
	}
	sum := crc32.Checksum(header[:headerSize-4], checksums)
	if crc32.Update(sum, checksums, both) != binary.LittleEndian.Uint32(header[headerSize-4:]) {
		return damaged(errors.New("a checksum is wrong"))
	}
	s.lengths, s.directory = both[:2*chunks], both[2*chunks:]
	return nil
}

// Close closes the file.
func (s *Segment) Close() error { return s.file.Close() }

// Chunks returns how many chunks the segment has.
func (s *Segment) Chunks() int { return len(s.lengths) / 2 }

// Length returns the length of a chunk, in words.
func (s *Segment) Length(chunk int) int { return int(binary.LittleEndian.Uint16(s.lengths[2*chunk:])) }

// Check reads all of the segment, and fails if anything in it is not what was written.
func (s *Segment) Check() error {
	count := len(s.directory) / directoryEntry
	start := int64(0)
	for number := range count {
		b := s.block(number, start)
		end := s.sizes[1]
		if number+1 < count {
			end = s.block(number+1, 0).places
		}
		if start += b.size; start > s.sizes[2] || b.places > end || end > s.sizes[1] || end-b.places > maxBlock {
			return damaged(errors.New("a block is outside of it"))
		}
		places := make([]byte, end-b.places)
		if _, err := s.file.ReadAt(places, s.places+b.places); err != nil {
			return damaged(err)
		}
		err := s.words(b, func(_ []byte, at, size int64, sum uint32) error {
			if at+size > end {
				return damaged(errors.New("a word has places outside of its block"))
			}
			part := places[at-b.places : at-b.places+size]
			if crc32.Checksum(part, checksums) != sum {
				return damaged(errors.New("a checksum is wrong"))
			}
			return s.visit(part, func(int, int) error { return nil })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type block struct {
	first         uint32 // hash
	start, places int64
	size          int64
	sum           uint32
}

func (s *Segment) block(number int, start int64) block {
	entry := s.directory[number*directoryEntry:]
	return block{
		first: binary.LittleEndian.Uint32(entry), size: int64(binary.LittleEndian.Uint32(entry[4:])), start: start,
		places: int64(binary.LittleEndian.Uint32(entry[8:])), sum: binary.LittleEndian.Uint32(entry[12:]),
	}
}

// Find calls visit with each chunk that has a word, in order, and how often.
func (s *Segment) Find(word string, visit func(chunk, count int) error) error {
	hash := words.Hash([]byte(word))
	count := len(s.directory) / directoryEntry
	// Words of one hash may be in several blocks.
	number := max(0, sort.Search(count, func(i int) bool { return s.block(i, 0).first >= hash })-1)
	start := int64(0)
	for i := range number {
		start += s.block(i, 0).size
	}
	for ; number < count; number++ {
		b := s.block(number, start)
		if b.first > hash {
			return nil
		}
		start += b.size
		if start > s.sizes[2] {
			return damaged(errors.New("a block is outside of it"))
		}
		found := false
		err := s.words(b, func(other []byte, at, size int64, sum uint32) error {
			if string(other) != word {
				return nil
			}
			found = true
			places, err := s.read(s.places+at, size, sum)
			if err != nil {
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

// words calls visit with the words of a block, and where their places are.
func (s *Segment) words(b block, visit func(word []byte, at, size int64, sum uint32) error) error {
	text, err := s.read(s.places+s.sizes[1]+b.start, b.size, b.sum)
	if err != nil {
		return err
	}
	r := reader{text: text}
	for at := b.places; len(r.text) > 0; {
		word := r.bytes(r.number(words.MaxWord))
		size := int64(r.number(uint64(s.sizes[1])))
		sum := r.bytes(4)
		if r.failed || at+size > s.sizes[1] {
			return damaged(errors.New("a block has something else than words"))
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

// maxBlock bounds the places of a block's words. All words of a segment have fewer.
const maxBlock = 32 << 20

// maxRead bounds what is read of a segment at once. The places of a word in all chunks are less.
const maxRead = 8 << 20

func (s *Segment) read(at, size int64, sum uint32) ([]byte, error) {
	if size > maxRead {
		return nil, damaged(errors.New("a part is larger than any"))
	}
	text := make([]byte, size)
	if _, err := s.file.ReadAt(text, at); err != nil {
		return nil, damaged(err)
	}
	if crc32.Checksum(text, checksums) != sum {
		return nil, damaged(errors.New("a checksum is wrong"))
	}
	return text, nil
}

// reader takes numbers and bytes from a text. It notes if there is not what is wanted.
type reader struct {
	text   []byte
	failed bool
}

// number returns a number that is not more than most.
func (r *reader) number(most uint64) uint64 {
	value, size := binary.Uvarint(r.text)
	if size <= 0 || value > most {
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
