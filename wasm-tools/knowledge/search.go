package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/index"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/ranking"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

// result is a chunk that answers a query.
type result struct {
	KnowledgeID string   `json:"knowledge_id"`
	ChunkID     string   `json:"chunk_id"`
	Score       float64  `json:"score"`
	Headings    []string `json:"headings,omitempty"`
	Content     string   `json:"content"`
}

type searchData struct {
	Results []result `json:"results"`
	// Complete is false if there was no time for all documents.
	Complete  bool `json:"complete"`
	Documents int  `json:"documents"` // that were searched
	Chunks    int  `json:"chunks"`
	Index     struct {
		State     indexState `json:"state"`
		Documents int        `json:"documents"` // that did not have to be read
	} `json:"index"`
	skipped
}

type indexState string

const (
	indexUsed    indexState = "used"
	indexAbsent  indexState = "absent"
	indexDamaged indexState = "damaged"
)

const (
	defaultResults = 10
	// large is the size of documents that take long to read again for a result, in bytes.
	large = 4 << 20
)

// indexFolder is where the index of a project is. Documents cannot be there, since it starts with a dot.
const indexFolder = ".caisson-knowledge"

func (t *tools) indexFolder() string { return filepath.Join(t.project.Root, indexFolder) }

// searcher is one search.
type searcher struct {
	*tools
	list    []documents.Document
	ranking *ranking.Ranking
	found   searchData
	reader  documents.Reader
	words   words.Scanner
	read    int // chunks
	// reread is the estimated time for reading the large documents again to show their chunks.
	reread time.Duration
}

var errLate = errors.New("there was no time")

func (t *tools) search(a arguments) (call.Result, error) {
	list, problems, err := t.project.List(a.KnowledgeBaseIDs)
	if err != nil {
		return call.Result{}, err
	}
	known, err := index.Load(t.indexFolder())
	state := indexUsed
	if err != nil {
		if known, state = nil, indexDamaged; errors.Is(err, fs.ErrNotExist) {
			state = indexAbsent
		}
	}
	s, err := t.searchWith(list, a, known)
	if errors.Is(err, index.ErrDamaged) {
		state = indexDamaged
		s, err = t.searchWith(list, a, nil)
	}
	if err != nil {
		return call.Result{}, err
	}
	s.found.Index.State = state
	s.found.add(problems...)
	return call.Result{Output: s.found.text(len(list)), Data: s.found}, nil
}

// searchWith searches all documents, of which an index, if there is one, knows some.
func (t *tools) searchWith(list []documents.Document, a arguments, known *index.Catalogue) (*searcher, error) {
	s := &searcher{tools: t, list: list}
	var err error
	if s.ranking, err = ranking.New(a.Queries); err != nil {
		return nil, err
	}
	s.words.Filter = s.ranking.Filter
	s.found.Results, s.found.Complete = []result{}, true
	covered := make([]bool, len(list))
	if known != nil {
		if err := s.lookUp(known, covered); err != nil {
			return nil, err
		}
	}
	for number, d := range list {
		if covered[number] {
			continue
		}
		if err := s.scan(number, d); errors.Is(err, errLate) {
			s.found.Complete = false
			break
		} else if errors.Is(err, ranking.ErrTooMany) {
			return nil, err
		} else if err != nil {
			s.found.failed(d, err)
			continue
		}
		s.found.Documents++
	}
	s.found.Chunks = s.ranking.Chunks()
	return s, s.show(s.ranking.Best(cmp.Or(a.Limit, defaultResults)), covered)
}

// lookUp adds the indexed chunks that have terms to the ranking, and marks the documents that the index covers.
func (s *searcher) lookUp(known *index.Catalogue, covered []bool) error {
	entries := make(map[string]*index.Entry, len(known.Entries))
	for i := range known.Entries {
		entries[known.Entries[i].Path] = &known.Entries[i]
	}
	placed := make([][]placed, len(known.Segments))
	for number, d := range s.list {
		e := entries[d.ID]
		if e == nil || !e.Knows(d.Size, d.Modified) || e.State == index.TooLong {
			continue
		}
		covered[number] = true
		s.found.Index.Documents++
		if e.State == index.Binary {
			s.found.Binary++
			continue
		}
		s.found.Documents++
		s.ranking.Passed(e.Chunks(), e.Length)
		ordinal := 0
		for _, run := range e.Runs {
			placed[run.Segment] = append(placed[run.Segment], place(run, number, ordinal))
			ordinal += run.Count
		}
	}
	for segment, runs := range placed {
		if len(runs) > 0 {
			if err := s.lookUpIn(filepath.Join(s.indexFolder(), known.Segments[segment]), runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// placed is chunks of a document in a segment.
type placed struct {
	first, end        int // of the segment's chunks
	document, ordinal int // of the first
}

func place(run index.Run, document, ordinal int) placed {
	return placed{run.First, run.First + run.Count, document, ordinal}
}

// occurrence is a term in a chunk of a segment.
type occurrence struct {
	chunk       int32
	term, count uint16
}

func (s *searcher) lookUpIn(name string, runs []placed) error {
	segment, err := index.OpenSegment(name)
	if err != nil {
		return err
	}
	defer segment.Close()
	slices.SortFunc(runs, func(a, b placed) int { return cmp.Compare(a.first, b.first) })
	for i, run := range runs {
		if run.end > segment.Chunks() || i > 0 && run.first < runs[i-1].end {
			return index.ErrDamaged
		}
	}
	var all []occurrence
	for term, word := range s.ranking.Terms {
		at := 0
		err := segment.Find(word, func(chunk, count int) error {
			for at < len(runs) && runs[at].end <= chunk {
				at++
			}
			if at < len(runs) && runs[at].first <= chunk {
				all = append(all, occurrence{int32(chunk), uint16(term), uint16(count)})
			}
			if len(all) > ranking.MaxHits {
				return ranking.ErrTooMany
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.term, b.term))
	})
	at := 0
	for _, o := range all {
		for runs[at].end <= int(o.chunk) {
			at++
		}
		run := runs[at]
		if err := s.ranking.Known(run.document, run.ordinal+int(o.chunk)-run.first, segment.Length(int(o.chunk)), int(o.term),
			int(o.count)); err != nil {
			return err
		}
	}
	return nil
}

// scan reads a document.
func (s *searcher) scan(number int, d documents.Document) error {
	started := s.now()
	_, err := s.reader.Read(s.project, d, func(c *documents.Chunk) error {
		if s.read++; s.read%lateAfter == 0 {
			// Reading without counting takes half as long.
			if now := s.now(); !now.Add(s.reread + now.Sub(started)/2).Before(s.deadline) {
				return errLate
			}
		}
		return s.ranking.Counted(number, c.Ordinal, s.count(c))
	})
	if d.Size > large {
		s.reread += s.now().Sub(started) / 2
	}
	return err
}

// count counts the words of a chunk, and returns its length.
func (s *searcher) count(c *documents.Chunk) int {
	length := 0
	if len(c.Header) > 0 {
		length = s.words.Each(c.Header, s.ranking.Count)
	}
	return min(length+s.words.Each(c.Text, s.ranking.Count), math.MaxUint16)
}

// show reads the best chunks. It fails with [index.ErrDamaged] if a chunk does not match its entry in the index.
func (s *searcher) show(best []ranking.Result, covered []bool) error {
	s.found.Results = make([]result, len(best))
	byDocument := map[int][]int{}
	for i, r := range best {
		byDocument[r.Document] = append(byDocument[r.Document], i)
	}
	for _, document := range slices.Sorted(maps.Keys(byDocument)) {
		results := byDocument[document]
		d := s.list[document]
		left := len(results)
		_, err := s.reader.Read(s.project, d, func(c *documents.Chunk) error {
			for _, i := range results {
				if best[i].Ordinal != c.Ordinal {
					continue
				}
				if !s.ranking.Matches(best[i], s.count(c)) && covered[document] {
					return index.ErrDamaged
				}
				shown := shownChunk(d, c)
				s.found.Results[i] = result{d.ID, shown.ChunkID, rounded(best[i].Score), shown.Headings, shown.Content}
				left--
			}
			if left == 0 {
				return documents.ErrStop
			}
			return nil
		})
		if left > 0 && covered[document] {
			return index.ErrDamaged
		}
		if err != nil {
			s.found.failed(d, err)
		}
	}
	s.found.Results = slices.DeleteFunc(s.found.Results, func(r result) bool { return r.ChunkID == "" }) // gone since
	return nil
}

// rounded returns a score with as many digits as mean something.
func rounded(score float64) float64 { return math.Round(score*10_000) / 10_000 }

func (d *searchData) text(documents int) string {
	var b strings.Builder
	for _, r := range d.Results {
		fmt.Fprintf(&b, "[%s, score %.2f", label(r.ChunkID), r.Score)
		if len(r.Headings) > 0 {
			b.WriteString(", " + strings.Join(r.Headings, " > "))
		}
		b.WriteString("]\n" + r.Content + "\n\n")
	}
	if len(d.Results) == 0 {
		b.WriteString("(nothing found)\n")
	}
	if !d.Complete {
		fmt.Fprintf(&b,
			"[there was time for %d of %d documents: name fewer knowledge bases, or call knowledge_index first]\n", d.Documents,
			documents)
	}
	if d.Index.State == indexDamaged {
		b.WriteString("[the index is damaged and was not used: call knowledge_index with rebuild: true to make it anew]\n")
	}
	b.WriteString(d.notes())
	return strings.TrimRight(b.String(), "\n")
}
