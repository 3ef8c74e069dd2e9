// Package ranking orders chunks by how well they answer queries: by BM25, which counts a word for more the fewer
// chunks have it, the more often a chunk has it, and the shorter the chunk is.
package ranking

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

// The constants of BM25.
const (
	saturation    = 1.2  // k1: how soon a word that is repeated counts for no more
	normalization = 0.75 // b: how much the length of a chunk matters
)

// MaxTerms bounds the words of all queries together.
const MaxTerms = 1000

// ErrTooMany means that more chunks have words of the queries than there is memory for.
var ErrTooMany = errors.New("too many chunks have words of the queries; use rarer words or fewer knowledge bases")

// MaxHits bounds the memory of a [Ranking]: 4 bytes for each word of the queries in each chunk.
const MaxHits = 6 << 20

// Ranking collects the chunks that have words of queries. It is not safe for concurrent use.
type Ranking struct {
	// Terms are the words of all queries, each once.
	Terms   []string
	queries [][]int // the terms of each query

	// Filter passes the terms.
	Filter *words.Filter

	table  []int16 // terms by hash; -1 is none
	hashes []uint32

	chunks     int
	length     int64
	frequency  []int // of chunks that have a term, by term
	candidates []candidate
	hits       []hit
	counts     []uint16 // of the terms in one chunk
}

// hit counts a term in a chunk.
type hit struct{ term, count uint16 }

type candidate struct {
	document, ordinal int32
	length            int32
	first, end        int32 // of its hits
}

// New returns a ranking for queries. It fails if they have no words, or too many.
func New(queries []string) (*Ranking, error) {
	r := &Ranking{}
	var scanner words.Scanner
	numbers := map[string]int{}
	for _, query := range queries {
		var terms []int
		for _, word := range scanner.Query(query) {
			number, ok := numbers[word]
			if !ok {
				number = len(r.Terms)
				numbers[word] = number
				r.Terms = append(r.Terms, word)
			}
			terms = append(terms, number)
		}
		if len(terms) > 0 {
			r.queries = append(r.queries, terms)
		}
	}
	if len(r.Terms) == 0 {
		return nil, errors.New("the queries have no words; write what to look for")
	}
	if len(r.Terms) > MaxTerms {
		return nil, errors.New("the queries have too many words; write shorter ones")
	}
	r.index()
	r.frequency = make([]int, len(r.Terms))
	r.counts = make([]uint16, len(r.Terms))
	return r, nil
}

// index fills the table.
func (r *Ranking) index() {
	size := 256
	for size < 8*len(r.Terms) {
		size *= 2
	}
	r.table = slices.Repeat([]int16{-1}, size)
	r.Filter = &words.Filter{}
	for i, term := range r.Terms {
		r.Filter.Add([]byte(term))
		hash := words.Hash([]byte(term))
		r.hashes = append(r.hashes, hash)
		at := int(hash) & (size - 1)
		for r.table[at] >= 0 {
			at = (at + 1) & (size - 1)
		}
		r.table[at] = int16(i)
	}
}

// Count counts a word of a chunk. It is a visitor for [words.Scanner.Each].
func (r *Ranking) Count(word []byte, hash uint32) {
	at := int(hash) & (len(r.table) - 1)
	for {
		term := r.table[at]
		if term < 0 {
			return
		}
		if r.hashes[term] == hash && string(word) == r.Terms[term] {
			r.counts[term]++
			return
		}
		at = (at + 1) & (len(r.table) - 1)
	}
}

// Counted ends a chunk whose words were counted. Length is of all of its words.
func (r *Ranking) Counted(document, ordinal, length int) error {
	r.Passed(1, int64(length))
	first := len(r.hits)
	for term, count := range r.counts {
		if count > 0 {
			r.hits = append(r.hits, hit{uint16(term), count})
			r.frequency[term]++
			r.counts[term] = 0
		}
	}
	if len(r.hits) > first {
		r.candidates = append(r.candidates,
			candidate{int32(document), int32(ordinal), int32(length), int32(first), int32(len(r.hits))})
	}
	if len(r.hits) > MaxHits {
		return ErrTooMany
	}
	return nil
}

// Matches reports whether the words that were counted, and the length, are those of a result, and forgets them.
func (r *Ranking) Matches(result Result, length int) bool {
	c := r.candidates[result.candidate]
	same := int(c.length) == length
	counted := make([]uint16, len(r.counts))
	for _, h := range r.hits[c.first:c.end] {
		counted[h.term] = h.count
	}
	same = same && slices.Equal(counted, r.counts)
	clear(r.counts)
	return same
}

// Passed counts chunks and their words that were not read because an index knows them.
func (r *Ranking) Passed(chunks int, length int64) {
	r.chunks += chunks
	r.length += length
}

// Chunks returns how many chunks there were.
func (r *Ranking) Chunks() int { return r.chunks }

// Known adds chunks that an index knows to have a term: after [Ranking.Passed] for all of them, chunk by chunk, and
// in a chunk term by term.
func (r *Ranking) Known(document, ordinal, length, term, count int) error {
	last := len(r.candidates) - 1
	if last < 0 || r.candidates[last].document != int32(document) || r.candidates[last].ordinal != int32(ordinal) {
		r.candidates = append(r.candidates,
			candidate{int32(document), int32(ordinal), int32(length), int32(len(r.hits)), int32(len(r.hits))})
		last++
	}
	r.hits = append(r.hits, hit{uint16(term), uint16(count)})
	r.frequency[term]++
	r.candidates[last].end++
	if len(r.hits) > MaxHits {
		return ErrTooMany
	}
	return nil
}

// Result is a chunk that answers a query.
type Result struct {
	Document, Ordinal int
	Score             float64
	candidate         int
}

// Best returns the chunks with the best scores, the best first. A chunk's score is that for the query that it
// answers best. Equal ones are in the order of documents.
func (r *Ranking) Best(limit int) []Result {
	weights := make([]float64, len(r.Terms))
	for term, frequency := range r.frequency {
		n := float64(frequency)
		weights[term] = math.Log(1 + (float64(r.chunks)-n+0.5)/(n+0.5))
	}
	average := float64(r.length) / float64(max(r.chunks, 1))
	var best []Result
	counts := make([]float64, len(r.Terms))
	for i, c := range r.candidates {
		for _, h := range r.hits[c.first:c.end] {
			counts[h.term] = float64(h.count)
		}
		relative := saturation * (1 - normalization + normalization*float64(c.length)/average)
		score := 0.0
		for _, query := range r.queries {
			sum := 0.0
			for _, term := range query {
				if count := counts[term]; count > 0 {
					sum += weights[term] * (count * (saturation + 1) / (count + relative))
				}
			}
			score = max(score, sum)
		}
		for _, h := range r.hits[c.first:c.end] {
			counts[h.term] = 0
		}
		best = insert(best, Result{int(c.document), int(c.ordinal), score, i}, limit)
	}
	return best
}

// insert adds a result to the best ones, which are sorted.
func insert(best []Result, result Result, limit int) []Result {
	if len(best) == limit && compare(result, best[limit-1]) > 0 {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, result, compare)
	best = slices.Insert(best, at, result)
	return best[:min(len(best), limit)]
}

func compare(a, b Result) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Ordinal, b.Ordinal))
}
