package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/triples"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

// relation is a statement that has an entity.
type relation struct {
	Subject   string `json:"subject"`
	Predicate string `json:"predicate"`
	Object    string `json:"object"`
	Source    string `json:"source"` // the file and the line
	Depth     int    `json:"depth"`
}

type graphData struct {
	// Entities are the entities that the query names.
	Entities []string `json:"entities"`
	// Exact is false if no entity has the name that was asked for, and these have its words.
	Exact      bool       `json:"exact"`
	Relations  []relation `json:"relations"`
	Total      int        `json:"total"` // of the relations, as far as they were looked for
	NextOffset int        `json:"next_offset,omitempty"`
	Complete   bool       `json:"complete"`
	Files      int        `json:"files"` // of triples
	skipped
}

const (
	defaultRelations = 50
	maxEntities      = 50   // that a query means
	maxFrontier      = 5000 // entities whose relations are looked for at once
	maxName          = 300  // characters of a name that is shown
	longestEntity    = 200  // bytes; a longer text is not a name
)

// graph is one query.
type graph struct {
	*tools
	files []documents.Document
	found graphData
	words words.Scanner
	read  int // triples

	frontier map[string]bool // entities whose relations are looked for
	visited  map[string]bool // those whose relations have been found
}

func (t *tools) graph(a arguments) (call.Result, error) {
	list, problems, err := t.project.List(a.KnowledgeBaseIDs)
	if err != nil {
		return call.Result{}, err
	}
	g := &graph{tools: t, visited: map[string]bool{}}
	g.found.Entities, g.found.Relations, g.found.Complete = []string{}, []relation{}, true
	g.found.add(problems...)
	for _, d := range list {
		if triples.FormatOf(d.ID) != nil {
			g.files = append(g.files, d)
		}
	}
	g.found.Files = len(g.files)
	g.frontier = g.resolve(a.Query)
	limit := cmp.Or(a.Limit, defaultRelations)
	for depth := 1; depth <= cmp.Or(a.Depth, 1) && len(g.frontier) > 0 && g.found.Complete; depth++ {
		g.level(depth, a.Offset, limit)
	}
	if next := a.Offset + len(g.found.Relations); len(g.found.Relations) > 0 && next < g.found.Total {
		g.found.NextOffset = next
	}
	return call.Result{Output: g.found.text(a.Query), Data: g.found}, nil
}

// each calls visit with all triples. It reports problems of files only if first is set, so that each is reported once.
func (g *graph) each(first bool, visit func(file string, t triples.Triple) error) {
	for _, d := range g.files {
		err := g.eachOf(d, first, visit)
		if errors.Is(err, errLate) {
			g.found.Complete = false
			return
		}
		if err != nil && first {
			g.found.failed(d, documents.Reason(err))
		}
	}
}

func (g *graph) eachOf(d documents.Document, first bool, visit func(file string, t triples.Triple) error) error {
	file, err := os.Open(path.Join(g.project.Root, d.ID))
	if err != nil {
		return err
	}
	defer file.Close()
	wrong := 0
	var problem string
	err = triples.Read(file, triples.FormatOf(d.ID), func(t triples.Triple) error {
		if g.read++; g.read%lateAfter == 0 && g.isLate() {
			return errLate
		}
		return visit(d.ID, t)
	}, func(line int, err error) {
		if wrong++; wrong == 1 {
			problem = fmt.Sprintf("line %d: %v", line, err)
		}
	})
	if wrong > 1 {
		problem += fmt.Sprintf(" (and %s)", count(wrong-1, "more line", "more lines"))
	}
	if wrong > 0 && first {
		g.found.add(documents.Problem{Path: d.ID, Reason: problem})
	}
	return err
}

// key returns the folded words of a name, by which names are compared.
func (g *graph) key(name string) string {
	var b strings.Builder
	g.words.Each([]byte(name), func(word []byte, _ uint32) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.Write(word)
	})
	if b.Len() == 0 { // a name such as "+"
		return strings.TrimSpace(name)
	}
	return b.String()
}

// identity returns the text by which mentions of the same entity are recognized.
func (g *graph) identity(file string, t triples.Term) string {
	switch {
	case strings.HasPrefix(t.IRI, "_:"):
		return t.IRI + " " + file
	case t.IRI != "":
		return "<" + t.IRI
	}
	return g.key(t.Name)
}

// labels are the predicates, by the ends of their IRIs, whose objects name their subjects.
var labels = map[string]bool{"label": true, "prefLabel": true, "altLabel": true, "name": true}

// resolve returns the entities of a name: those that have it or, if there are none, those that have its words.
func (g *graph) resolve(query string) map[string]bool {
	wanted := g.key(query)
	iri := strings.TrimSuffix(strings.TrimPrefix(query, "<"), ">") // as N-Triples write it, or bare
	var exact, partial entities
	g.each(true, func(file string, t triples.Triple) error {
		for _, term := range []triples.Term{t.Subject, t.Object} {
			if len(term.Name) > longestEntity {
				continue
			}
			key := g.key(term.Name)
			switch {
			case key == wanted || term.IRI != "" && term.IRI == iri:
				exact.add(g.identity(file, term), term.Name)
				if term.IsValue && labels[t.Predicate.Name] {
					exact.add(g.identity(file, t.Subject), t.Subject.Name)
				}
			case hasWords(key, wanted):
				partial.add(g.identity(file, term), term.Name)
				if term.IsValue && labels[t.Predicate.Name] {
					partial.add(g.identity(file, t.Subject), t.Subject.Name)
				}
			}
		}
		return nil
	})
	g.found.Exact = len(exact.known) > 0
	if !g.found.Exact {
		exact = partial
	}
	if exact.names != nil {
		g.found.Entities = exact.names
	}
	return exact.known
}

// entities are up to maxEntities different entities.
type entities struct {
	known map[string]bool
	names []string
}

func (e *entities) add(identity, name string) {
	if e.known == nil {
		e.known = map[string]bool{}
	}
	if !e.known[identity] && len(e.known) < maxEntities {
		e.known[identity] = true
		e.names = append(e.names, plain.Line(name, maxName))
	}
}

// hasWords reports whether a name has the words of another one, in their order and next to each other.
func hasWords(key, wanted string) bool {
	return strings.Contains(" "+key+" ", " "+wanted+" ")
}

// level finds the relations of the entities in the frontier, whose other ends are the next frontier.
func (g *graph) level(depth, offset, limit int) {
	next := map[string]bool{}
	g.each(false, func(file string, t triples.Triple) error {
		subject, object := g.identity(file, t.Subject), g.identity(file, t.Object)
		if g.visited[subject] || g.visited[object] || !g.frontier[subject] && !g.frontier[object] {
			return nil
		}
		if g.found.Total++; g.found.Total > offset && len(g.found.Relations) < limit {
			g.found.Relations = append(g.found.Relations, relation{
				plain.Line(t.Subject.Name, maxName), plain.Line(t.Predicate.Name, maxName), plain.Line(t.Object.Name, maxName),
				file + ":" + strconv.Itoa(t.Line), depth,
			})
		}
		for _, end := range []string{subject, object} {
			if !g.frontier[end] && len(end) <= longestEntity && len(next) < maxFrontier {
				next[end] = true
			}
		}
		return nil
	})
	for entity := range g.frontier {
		g.visited[entity] = true
	}
	g.frontier = next
}

func (d *graphData) text(query string) string {
	var b strings.Builder
	if !d.Exact && len(d.Entities) > 0 {
		fmt.Fprintf(&b, "[nothing is named %s; these are: %s]\n", plain.Line(query, maxName), strings.Join(d.Entities, ", "))
	}
	for _, r := range d.Relations {
		fmt.Fprintf(&b, "%s | %s | %s (%s)\n", r.Subject, r.Predicate, r.Object, label(r.Source))
	}
	switch {
	case d.Files == 0:
		b.WriteString("(there are no files of triples, such as people.triples.tsv, people.triples.jsonl or people.nt)\n")
	case len(d.Entities) == 0:
		fmt.Fprintf(&b, "(nothing is named %s)\n", plain.Line(query, maxName))
	case len(d.Relations) == 0:
		fmt.Fprintf(&b, "(no more relations: there are %d)\n", d.Total)
	case d.NextOffset > 0:
		fmt.Fprintf(&b, "[%d of %d relations: go on at offset %d]\n", len(d.Relations), d.Total, d.NextOffset)
	}
	if !d.Complete {
		b.WriteString("[there was no time for all files: name fewer knowledge bases, or less depth]\n")
	}
	b.WriteString(d.notes())
	return strings.TrimSuffix(b.String(), "\n")
}
