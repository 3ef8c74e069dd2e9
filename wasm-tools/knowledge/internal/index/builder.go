// Package index stores the words of the chunks of documents, in files that may be damaged or forged.
//
// A segment has the words of many chunks, and is never changed. The catalogue says which documents are in which
// segments. All data is checked against checksums and bounds when it is read. If a check fails, the error is
// [ErrDamaged].
package index

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

// ErrDamaged means that a file of the index is missing, or not as it was written.
var ErrDamaged = errors.New("the index is damaged")

// A segment is a header, with the number of chunks, the size of the parts, the size of the directory and a checksum
// over all three and the header; the length of each chunk, in two bytes; parts; and a directory of these. A part is the
// places of some words, as pairs of a chunk, counted from the previous one, and the number of times that it has the
// word; and after them the words themselves, in the order of their hashes, each with the number of bytes of its places
// and their checksum. Numbers are uvarints or little-endian.
const (
	segmentMagic = "caisson segment1"
	headerSize   = len(segmentMagic) + 3*4 + 4
	partSize     = 4 << 10 // of the words, about
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

	// For Write: the places by term, where the next place of a term goes, and the terms by hash.
	sorted, next []uint32
	order        []uint64
}

const (
	maxPostings = 2 << 20
	maxText     = 6 << 20
	maxTerms    = 1 << 19
	spare       = 4096 // postings that a chunk may add
)

// NewBuilder returns an empty builder. It allocates all memory at once, since growing slices would leave garbage.
func NewBuilder() *Builder {
	return &Builder{
		table: make([]uint32, 2*maxTerms), hashes: make([]uint32, 0, maxTerms), starts: make([]uint32, 0, maxTerms),
		last: make([]uint32, 0, maxTerms), text: make([]byte, 0, maxText),
		terms: make([]uint32, 0, maxPostings), places: make([]uint32, 0, maxPostings), sorted: make([]uint32, 0, maxPostings),
		next: make([]uint32, 0, maxTerms+1), order: make([]uint64, 0, maxTerms),
	}
}

// Reset empties the builder, and keeps its memory.
func (b *Builder) Reset() {
	clear(b.table)
	*b = Builder{
		table: b.table, hashes: b.hashes[:0], starts: b.starts[:0], last: b.last[:0], text: b.text[:0],
		terms: b.terms[:0], places: b.places[:0], sorted: b.sorted[:0], next: b.next[:0], order: b.order[:0],
		lengths: b.lengths[:0],
	}
}

// Chunks returns how many chunks there are.
func (b *Builder) Chunks() int { return len(b.lengths) }

// IsFull reports whether the segment has to be written before another chunk.
func (b *Builder) IsFull() bool {
	return len(b.terms)+spare > maxPostings || len(b.text)+spare*words.MaxWord > maxText ||
		len(b.hashes)+spare > maxTerms || len(b.lengths) == MaxChunks
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
	return term
}

// EndChunk ends a chunk. Length is of all of its words.
func (b *Builder) EndChunk(length int) {
	b.lengths = append(b.lengths, uint16(min(length, 1<<16-1)))
	b.chunk = len(b.terms)
}

// Write writes the segment to a new file.
func (b *Builder) Write(file io.WriteSeeker) error {
	lengths := make([]byte, 0, 2*len(b.lengths))
	for _, length := range b.lengths {
		lengths = binary.LittleEndian.AppendUint16(lengths, length)
	}
	b.sort()
	out := bufio.NewWriterSize(file, 64<<10)
	w := partWriter{out: out}
	w.write(make([]byte, headerSize)) // until it is known
	w.write(lengths)
	start := uint32(0)
	for _, entry := range b.order {
		term := uint32(entry)
		if term > 0 {
			start = b.next[term-1]
		} else {
			start = 0
		}
		w.add(uint32(entry>>32), b.word(term), b.sorted[start:b.next[term]])
	}
	w.endPart()
	w.write(w.directory)
	if w.err == nil {
		w.err = out.Flush()
	}
	if w.err != nil {
		return w.err
	}
	header := []byte(segmentMagic)
	for _, size := range []int{len(b.lengths), w.size, len(w.directory)} {
		header = binary.LittleEndian.AppendUint32(header, uint32(size))
	}
	sum := crc32.Checksum(header, checksums)
	sum = crc32.Update(sum, checksums, lengths)
	sum = crc32.Update(sum, checksums, w.directory)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := file.Write(binary.LittleEndian.AppendUint32(header, sum))
	return err
}

// sort sorts the places by term, and the terms by hash. After it, next has where the places of each term end.
func (b *Builder) sort() {
	b.next = b.next[:len(b.hashes)+1]
	clear(b.next)
	for _, term := range b.terms {
		b.next[term+1]++
	}
	for term := range b.hashes {
		b.next[term+1] += b.next[term]
	}
	b.sorted = b.sorted[:len(b.places)]
	for i, term := range b.terms {
		b.sorted[b.next[term]] = b.places[i]
		b.next[term]++
	}
	b.order = b.order[:len(b.hashes)]
	for term, hash := range b.hashes {
		b.order[term] = uint64(hash)<<32 | uint64(term)
	}
	slices.Sort(b.order)
}

// partWriter writes the parts of a segment.
type partWriter struct {
	out *bufio.Writer
	err error

	directory     []byte
	size          int // of all parts
	first         uint32
	places, words []byte // of the part
}

func (w *partWriter) write(text []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(text)
	}
}

// add adds a word to the part.
func (w *partWriter) add(hash uint32, word []byte, places []uint32) {
	if len(w.words) >= partSize {
		w.endPart()
	}
	if len(w.words) == 0 {
		w.first = hash
	}
	start, previous := len(w.places), uint32(0)
	for _, place := range places {
		chunk := place >> 12
		w.places = binary.AppendUvarint(w.places, uint64(chunk-previous))
		w.places = binary.AppendUvarint(w.places, uint64(place&maxCount))
		previous = chunk
	}
	w.words = binary.AppendUvarint(w.words, uint64(len(word)))
	w.words = append(w.words, word...)
	w.words = binary.AppendUvarint(w.words, uint64(len(w.places)-start))
	w.words = binary.LittleEndian.AppendUint32(w.words, crc32.Checksum(w.places[start:], checksums))
}

func (w *partWriter) endPart() {
	if len(w.words) == 0 {
		return
	}
	for _, number := range []uint32{w.first, uint32(len(w.places)), uint32(len(w.words)),
		crc32.Checksum(w.words, checksums)} {
		w.directory = binary.LittleEndian.AppendUint32(w.directory, number)
	}
	w.write(w.places)
	w.write(w.words)
	w.size += len(w.places) + len(w.words)
	w.places, w.words = w.places[:0], w.words[:0]
}
