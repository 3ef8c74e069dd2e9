package main

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
)

// chunk is a chunk in the form of results.
type chunk struct {
	ChunkID  string   `json:"chunk_id"`
	Line     int      `json:"line,omitempty"` // absent in HTML
	Headings []string `json:"headings,omitempty"`
	Content  string   `json:"content"`
}

type listData struct {
	KnowledgeID string  `json:"knowledge_id"`
	Chunks      []chunk `json:"chunks"`
	Total       int     `json:"total"`
	// Counted is false if there was no time to count all chunks.
	Counted    bool `json:"counted"`
	NextOffset int  `json:"next_offset,omitempty"`
}

const defaultChunks = 20

func (t *tools) list(a arguments) (call.Result, error) {
	d, err := t.project.Get(a.KnowledgeID)
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %w", a.KnowledgeID, err)
	}
	found := listData{KnowledgeID: d.ID, Chunks: []chunk{}, Counted: true}
	var reader documents.Reader
	_, err = reader.Read(t.project, d, func(c *documents.Chunk) error {
		found.Total++
		if c.Ordinal >= a.Offset && len(found.Chunks) < cmp.Or(a.Limit, defaultChunks) {
			found.Chunks = append(found.Chunks, shownChunk(d, c))
		}
		if found.Total%lateAfter == 0 && t.isLate() {
			found.Counted = false
			return documents.ErrStop
		}
		return nil
	})
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %w", a.KnowledgeID, err)
	}
	if next := a.Offset + len(found.Chunks); len(found.Chunks) > 0 && next < found.Total {
		found.NextOffset = next
	}
	if !found.Counted && len(found.Chunks) == 0 {
		return call.Result{}, fmt.Errorf("%s: there was no time to read as far as offset %d, only to %d", a.KnowledgeID,
			a.Offset, found.Total)
	}
	return call.Result{Output: found.text(a.Offset), Data: found}, nil
}

// shownChunk returns a chunk in the form of results.
func shownChunk(d documents.Document, c *documents.Chunk) chunk {
	shown := chunk{ChunkID: documents.ID(d.ID, c.Ordinal), Line: c.Line, Headings: c.Headings(),
		Content: strings.TrimRight(plain.Lines(c.Content()), " \t\n")}
	if d.Kind() == documents.HTML {
		shown.Line = 0
	}
	return shown
}

func (d *listData) text(offset int) string {
	var b strings.Builder
	for _, c := range d.Chunks {
		b.WriteString("[" + label(c.ChunkID))
		if len(c.Headings) > 0 {
			b.WriteString(", " + strings.Join(c.Headings, " > "))
		}
		b.WriteString("]\n" + c.Content + "\n\n")
	}
	switch {
	case d.Total == 0:
		b.WriteString("(the document has no text)")
	case len(d.Chunks) == 0:
		fmt.Fprintf(&b, "(no chunk is at offset %d: there are %d)", offset, d.Total)
	case d.NextOffset > 0 && d.Counted:
		fmt.Fprintf(&b, "[%d of %d chunks: go on at offset %d]", len(d.Chunks), d.Total, d.NextOffset)
	case d.NextOffset > 0:
		fmt.Fprintf(&b, "[%d of more than %d chunks: go on at offset %d]", len(d.Chunks), d.Total, d.NextOffset)
	}
	return strings.TrimRight(b.String(), "\n")
}

// about describes a document.
type about struct {
	KnowledgeID string `json:"knowledge_id"`
	Error       string `json:"error,omitempty"`
	*described
}

type described struct {
	Type         documents.Kind      `json:"type"`
	Title        string              `json:"title"`
	Description  string              `json:"description,omitempty"`
	Language     string              `json:"language,omitempty"`
	Encoding     string              `json:"encoding"`
	Size         int64               `json:"size"` // in bytes
	Modified     time.Time           `json:"modified"`
	Chunks       int                 `json:"chunks"`
	Characters   int                 `json:"characters"`
	Lines        int                 `json:"lines,omitempty"`
	Columns      string              `json:"columns,omitempty"`
	Records      int                 `json:"records,omitempty"`
	Headings     []documents.Heading `json:"headings"`
	MoreHeadings bool                `json:"more_headings,omitempty"`
	// Partial means that the numbers are of the part that there was time to read.
	Partial bool `json:"partial,omitempty"`
}

// maxHeadings is the maximum number of headings listed of a document.
const maxHeadings = 50

func (t *tools) info(a arguments) (call.Result, error) {
	var all struct {
		Documents []about `json:"documents"`
	}
	var b strings.Builder
	for _, id := range a.KnowledgeIDs {
		found := about{KnowledgeID: id}
		described, err := t.describe(id)
		if err != nil {
			found.Error = err.Error()
			fmt.Fprintf(&b, "%s: %v\n", label(id), err)
		} else {
			found.described = described
			described.write(&b, id)
		}
		all.Documents = append(all.Documents, found)
	}
	return call.Result{Output: strings.TrimSuffix(b.String(), "\n"), Data: all}, nil
}

func (t *tools) describe(id string) (*described, error) {
	d, err := t.project.Get(id)
	if err != nil {
		return nil, err
	}
	found := &described{Type: d.Kind(), Size: d.Size, Modified: d.Modified.UTC().Truncate(time.Second),
		Headings: []documents.Heading{}}
	reader := documents.Reader{Heading: func(h documents.Heading) {
		if len(found.Headings) == maxHeadings {
			found.MoreHeadings = true
			return
		}
		found.Headings = append(found.Headings, h)
	}}
	read, err := reader.Read(t.project, d, func(c *documents.Chunk) error {
		found.Chunks++
		found.Characters += utf8.RuneCount(c.Text)
		if found.Partial = found.Chunks%lateAfter == 0 && t.isLate(); found.Partial {
			return documents.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found.Encoding, found.Language, found.Description = read.Encoding, read.Language, read.Description
	found.Lines, found.Records, found.Columns = read.Lines, read.Records, plain.Line(read.Columns, maxLine)
	found.Title = read.Title
	if found.Title == "" && len(found.Headings) > 0 {
		found.Title = found.Headings[0].Text
	}
	found.Title = cmp.Or(found.Title, path.Base(d.ID))
	return found, nil
}

func (d *described) write(b *strings.Builder, id string) {
	fmt.Fprintf(b, "%s: %s, %q, %d bytes, %s, %d characters, modified %s", label(id), d.Type, d.Title, d.Size,
		count(d.Chunks, "chunk", "chunks"), d.Characters, d.Modified.Format(time.RFC3339))
	if d.Language != "" {
		b.WriteString(", language " + d.Language)
	}
	if d.Encoding != "utf-8" {
		b.WriteString(", encoding " + d.Encoding)
	}
	if d.Columns != "" {
		fmt.Fprintf(b, ", %s of %s", count(d.Records, "record", "records"), d.Columns)
	}
	if d.Partial {
		b.WriteString(" (of the part that there was time to read)")
	}
	b.WriteString("\n")
	for _, h := range d.Headings {
		fmt.Fprintf(b, "%s%s %s\n", "  ", strings.Repeat("#", h.Level), h.Text)
	}
	if d.MoreHeadings {
		b.WriteString("  [and more headings]\n")
	}
}
