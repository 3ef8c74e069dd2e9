// Package index keeps which words the chunks of documents have, in files that may be damaged or made by anyone.
//
// A segment has the words of many chunks, and is never changed. The catalogue says which documents are in which
// segments. Everything that is read is checked against checksums and bounds, and what is wrong is [ErrDamaged].
package index

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/words"
)

// ErrDamaged means that a file of the index is not what was written.
var ErrDamaged = errors.New("the index is damaged")

// A segment is a header; the length of each chunk, in two bytes; the places of each word, as pairs of a chunk,
// counted from the one before, and how often it has the word; blocks of words, in the order of their hashes, each
// with how many bytes its places have and their checksum; and the directory of the blocks. Numbers are uvarints or
// little-endian.
const (
	segmentMagic = "caisson segment1"
	headerSize   = len(segmentMagic) + 4*4 + 4
	blockSize    = 4 << 10
	// MaxChunks bounds the chunks of a segment.
	MaxChunks = 1 << 20
	maxCount  = 1<<12 - 1 // how often a chunk has a word
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

// Builder collects the words of chunks for a segment. Make one with [NewBuilder]. It is not safe for concurrent use.
type Builder struct {
	table  []uint32 // terms by hash, plus 1
	hashes []uint32
	starts []uint32 // of the words in text
	last   []uint32 // the newest posting of each term, plus 1
	text   []byte

	terms   []uint32 // of the postings, in the order of chunks
	places  []uint32 // a chunk and a count
	chunk   int      // the postings before the chunk
	lengths []uint16
}

const (
	maxPostings = 3 << 20
	maxText     = 6 << 20
	maxTerms    = 1 << 19
	spare       = 4096 // postings that a chunk may add
)

// NewBuilder returns an empty builder, which has its memory at once: what grows leaves garbage.
func NewBuilder() *Builder {
	return &Builder{table: make([]uint32, 1<<16), terms: make([]uint32, 0, maxPostings), places: make([]uint32, 0, maxPostings)}
}

// Reset empties the builder, and keeps its memory.
func (b *Builder) Reset() {
	clear(b.table)
	*b = Builder{
		table: b.table, hashes: b.hashes[:0], starts: b.starts[:0], last: b.last[:0], text: b.text[:0],
		terms: b.terms[:0], places: b.places[:0], lengths: b.lengths[:0],
	}
}

// Chunks returns how many chunks there are.
func (b *Builder) Chunks() int { return len(b.lengths) }

// IsFull reports whether the segment has to be written before another chunk.
func (b *Builder) IsFull() bool {
	return len(b.terms)+spare > maxPostings || len(b.text)+spare*words.MaxWord > maxText || len(b.hashes)+spare > maxTerms || len(b.lengths) == MaxChunks
}

// Add adds a word of the next chunk.
func (b *Builder) Add(word []byte, hash uint32) {
	mask := uint32(len(b.table) - 1)
	at := hash & mask
	var term uint32
	for {
		entry := b.table[at]
		if entry == 0 {
			term = b.newTerm(word, hash, at)
			break
		}
		if term = entry - 1; b.hashes[term] == hash && string(b.word(term)) == string(word) {
			break
		}
		at = (at + 1) & mask
	}
	if posting := int(b.last[term]); posting > b.chunk {
		if b.places[posting-1]&maxCount < maxCount {
			b.places[posting-1]++
		}
		return
	}
	b.terms = append(b.terms, term)
	b.places = append(b.places, uint32(len(b.lengths))<<12|1)
	b.last[term] = uint32(len(b.terms))
}

func (b *Builder) word(term uint32) []byte {
	end := len(b.text)
	if int(term)+1 < len(b.starts) {
		end = int(b.starts[term+1])
	}
	return b.text[b.starts[term]:end]
}

func (b *Builder) newTerm(word []byte, hash uint32, at uint32) uint32 {
	term := uint32(len(b.hashes))
	b.table[at] = term + 1
	b.hashes = append(b.hashes, hash)
	b.starts = append(b.starts, uint32(len(b.text)))
	b.last = append(b.last, 0)
	b.text = append(b.text, word...)
	if len(b.hashes)*2 > len(b.table) {
		b.table = make([]uint32, 2*len(b.table))
		mask := uint32(len(b.table) - 1)
		for other, hash := range b.hashes {
			at := hash & mask
			for b.table[at] != 0 {
				at = (at + 1) & mask
			}
			b.table[at] = uint32(other) + 1
		}
	}
	return term
}

// EndChunk ends a chunk. Length is of all of its words.
func (b *Builder) EndChunk(length int) {
	b.lengths = append(b.lengths, uint16(min(length, 1<<16-1)))
	b.chunk = len(b.terms)
}

// Write writes the segment, and returns its size.
func (b *Builder) Write(file io.Writer) (int64, error) {
	w := &segmentWriter{out: bufio.NewWriterSize(file, 64<<10)}
	lengths := make([]byte, 0, 2*len(b.lengths))
	for _, length := range b.lengths {
		lengths = binary.LittleEndian.AppendUint16(lengths, length)
	}
	sorted, ends := b.sorted()
	order := make([]uint64, len(b.hashes))
	for term, hash := range b.hashes {
		order[term] = uint64(hash)<<32 | uint64(term)
	}
	slices.Sort(order)

	var body, blocks, directory, places []byte
	blockStart, placesSize, placesStart := 0, 0, 0
	first := uint32(0)
	endBlock := func() {
		if len(blocks) > blockStart {
			directory = binary.LittleEndian.AppendUint32(directory, first)
			directory = binary.LittleEndian.AppendUint32(directory, uint32(len(blocks)-blockStart))
			directory = binary.LittleEndian.AppendUint32(directory, uint32(placesStart))
			directory = binary.LittleEndian.AppendUint32(directory, crc32.Checksum(blocks[blockStart:], checksums))
			blockStart, placesStart = len(blocks), placesSize
		}
	}
	for _, entry := range order {
		term := uint32(entry)
		if len(blocks)-blockStart >= blockSize {
			endBlock()
		}
		if len(blocks) == blockStart {
			first = uint32(entry >> 32)
		}
		places = places[:0]
		start := uint32(0)
		if term > 0 {
			start = ends[term-1]
		}
		previous := uint32(0)
		for _, place := range sorted[start:ends[term]] {
			chunk := place >> 12
			places = binary.AppendUvarint(places, uint64(chunk-previous))
			places = binary.AppendUvarint(places, uint64(place&maxCount))
			previous = chunk
		}
		body = append(body, places...)
		placesSize += len(places)
		word := b.word(term)
		blocks = binary.AppendUvarint(blocks, uint64(len(word)))
		blocks = append(blocks, word...)
		blocks = binary.AppendUvarint(blocks, uint64(len(places)))
		blocks = binary.LittleEndian.AppendUint32(blocks, crc32.Checksum(places, checksums))
	}
	endBlock()

	header := []byte(segmentMagic)
	for _, size := range []int{len(b.lengths), placesSize, len(blocks), len(directory)} {
		header = binary.LittleEndian.AppendUint32(header, uint32(size))
	}
	sum := crc32.Checksum(header, checksums)
	sum = crc32.Update(sum, checksums, lengths)
	sum = crc32.Update(sum, checksums, directory)
	w.write(binary.LittleEndian.AppendUint32(header, sum))
	for _, part := range [][]byte{lengths, directory, body, blocks} {
		w.write(part)
	}
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.size, w.err
}

// sorted returns the places of all postings by term, and where those of each term end.
func (b *Builder) sorted() (sorted, ends []uint32) {
	next := make([]uint32, len(b.hashes)+1)
	for _, term := range b.terms {
		next[term+1]++
	}
	for term := range b.hashes {
		next[term+1] += next[term]
	}
	sorted = make([]uint32, len(b.places))
	for i, term := range b.terms {
		sorted[next[term]] = b.places[i]
		next[term]++
	}
	return sorted, next[:len(b.hashes)]
}

type segmentWriter struct {
	out  *bufio.Writer
	size int64
	err  error
}

func (w *segmentWriter) write(part []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(part)
		w.size += int64(len(part))
	}
}
