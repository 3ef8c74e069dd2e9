package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/patterns"
)

// match is a chunk with lines that match.
type match struct {
	KnowledgeID string   `json:"knowledge_id"`
	ChunkID     string   `json:"chunk_id"`
	Headings    []string `json:"headings,omitempty"`
	Count       int      `json:"count"` // of the lines that match
	Lines       []line   `json:"lines"`
}

type line struct {
	Line    int    `json:"line,omitempty"` // in the file; absent in HTML
	Text    string `json:"text"`
	Matches bool   `json:"matches"`
}

type grepData struct {
	Matches   []match `json:"matches"`
	Truncated bool    `json:"truncated"`
	// Next is the chunk at which to continue, if the result is truncated.
	Next     string `json:"next,omitempty"`
	Searched struct {
		Documents int   `json:"documents"`
		Bytes     int64 `json:"bytes"`
	} `json:"searched"`
	skipped
}

const (
	defaultMaxResults = 50
	// maxLine is the maximum number of characters shown of a line.
	maxLine = 300
	// maxLines is the maximum number of lines shown of a chunk.
	maxLines = 20
	// maxText bounds the lines of a result together, in bytes.
	maxText = 200_000
	// lateAfter is the number of chunks read between two checks of the deadline.
	lateAfter = 500
)

// grepper is one search.
type grepper struct {
	*tools
	arguments
	set    *patterns.Set
	found  grepData
	size   int // of the lines, in bytes
	chunks int // read
}

func (t *tools) grep(a arguments) (call.Result, error) {
	set, err := patterns.Compile(a.Patterns, patterns.Options{Regex: a.Regex, CaseSensitive: a.CaseSensitive})
	if err != nil {
		return call.Result{}, err
	}
	from, ordinal, ok := documents.ParseID(a.From)
	if a.From != "" && !ok {
		return call.Result{},
			fmt.Errorf("from is %q and should be the id of a chunk, such as docs/guide.md#12", plain.Line(a.From, maxLine))
	}
	list, problems, err := t.project.List(a.KnowledgeBaseIDs)
	if err != nil {
		return call.Result{}, err
	}
	g := &grepper{tools: t, arguments: a, set: set}
	g.found.Matches = []match{}
	g.found.add(problems...)
	var reader documents.Reader
	for _, d := range list {
		first := 0
		switch order := documents.Compare(d.ID, from); {
		case order < 0:
			continue
		case order == 0:
			first = ordinal
		}
		_, err := reader.Read(t.project, d, func(c *documents.Chunk) error { return g.visit(d, c, first) })
		if g.found.Truncated {
			break
		}
		if err != nil {
			g.found.failed(d, err)
			continue
		}
		g.found.Searched.Documents++
		g.found.Searched.Bytes += d.Size
	}
	return call.Result{Output: g.found.text(), Data: g.found}, nil
}

// visit looks at a chunk, unless it is before the first.
func (g *grepper) visit(d documents.Document, c *documents.Chunk, first int) error {
	if c.Ordinal < first {
		return nil
	}
	if g.chunks++; g.chunks%lateAfter == 0 && g.isLate() {
		return g.stop(d, c)
	}
	m, size := g.match(d, c)
	if m == nil {
		return nil
	}
	if len(g.found.Matches) == cmp.Or(g.MaxResults, defaultMaxResults) ||
		len(g.found.Matches) > 0 && g.size+size > maxText {
		return g.stop(d, c)
	}
	g.size += size
	g.found.Matches = append(g.found.Matches, *m)
	return nil
}

// stop ends the search before a chunk.
func (g *grepper) stop(d documents.Document, c *documents.Chunk) error {
	g.found.Truncated, g.found.Next = true, documents.ID(d.ID, c.Ordinal)
	return documents.ErrStop
}

// match returns a chunk's matching lines, or nil, and their size in bytes.
func (g *grepper) match(d documents.Document, c *documents.Chunk) (*match, int) {
	var found []patterns.Line
	text, before := c.Text[:len(c.Text)+len(c.Following)], c.Line-1
	if c.Ordinal == 0 && len(c.Header) > 0 {
		text, before = []byte(string(c.Header)+"\n"+string(text)), 0
	}
	g.set.Find(text, len(text)-len(c.Following), func(l patterns.Line) bool {
		found = append(found, l)
		return true
	})
	if len(found) == 0 {
		return nil, 0
	}
	m := &match{KnowledgeID: d.ID, ChunkID: documents.ID(d.ID, c.Ordinal), Headings: c.Headings(), Count: len(found)}
	size := 0
	for _, l := range g.lines(text, found) {
		size += len(l.Text)
		if l.Line += before; d.Kind() == documents.HTML {
			l.Line = 0
		}
		m.Lines = append(m.Lines, l)
	}
	return m, size
}

// lines returns the lines that match and those around them, numbered from 1.
func (g *grepper) lines(text []byte, found []patterns.Line) (shown []line) {
	all := bytes.Split(text, []byte("\n"))
	at, number := 0, 0
	matches := map[int]patterns.Line{}
	wanted := map[int]bool{}
	for i, l := range all {
		for number < len(found) && found[number].Start <= at+len(l) {
			f := found[number]
			f.MatchStart, f.MatchEnd = f.MatchStart-at, f.MatchEnd-at
			matches[i] = f
			for near := i - g.ContextLines; near <= i+g.ContextLines; near++ {
				wanted[near] = true
			}
			number++
		}
		at += len(l) + 1
	}
	for i, l := range all {
		if !wanted[i] || len(shown) == maxLines {
			continue
		}
		f, ok := matches[i]
		shown = append(shown, line{Line: i + 1, Text: excerpt(l, f.MatchStart, f.MatchEnd), Matches: ok})
	}
	return shown
}

// excerpt returns a line, or the part of it around a match.
func excerpt(text []byte, from, to int) string {
	const before = 100 // bytes
	start := 0
	if from > before && to > maxLine {
		start = from - before
		for start < from && text[start]&0xc0 == 0x80 {
			start++
		}
	}
	shown := truncate(string(text[start:]), maxLine)
	if start > 0 {
		shown = "…" + shown
	}
	return shown
}

// truncate returns the start of a text, without invisible characters.
func truncate(text string, limit int) string {
	shown := strings.TrimRight(plain.Lines(text), " \t\n")
	if first := plain.First(shown, limit); len(first) < len(shown) {
		return first + "…"
	}
	return shown
}

func (d *grepData) text() string {
	var b strings.Builder
	for _, m := range d.Matches {
		b.WriteString(label(m.ChunkID))
		if len(m.Headings) > 0 {
			b.WriteString(" (" + strings.Join(m.Headings, " > ") + ")")
		}
		b.WriteString("\n")
		for i, l := range m.Lines {
			if i > 0 && l.Line > m.Lines[i-1].Line+1 {
				b.WriteString("  --\n")
			}
			mark := "-"
			if l.Matches {
				mark = ":"
			}
			if l.Line > 0 {
				fmt.Fprintf(&b, "  %d%s %s\n", l.Line, mark, l.Text)
			} else {
				fmt.Fprintf(&b, "  %s\n", l.Text)
			}
		}
	}
	if len(d.Matches) == 0 {
		b.WriteString("(nothing matches)\n")
	}
	if d.Truncated {
		fmt.Fprintf(&b, "[there may be more: go on with from: %q]\n", d.Next)
	}
	b.WriteString(d.notes())
	return strings.TrimSuffix(b.String(), "\n")
}
