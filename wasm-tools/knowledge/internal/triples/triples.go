// Package triples reads statements about things, a line each, from files of three formats.
//
//   - NAME.triples.tsv: subject, predicate and object, with tabs between them
//   - NAME.triples.jsonl: objects with the texts subject, predicate and object
//   - NAME.nt: N-Triples of RDF 1.1
//
// Empty lines and lines that start with # are left out, as is a first line that names the columns.
package triples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Term is a thing or a value in a triple.
type Term struct {
	Name string // for people
	// IRI identifies a thing of RDF, and is empty for other things. That of a blank node starts with "_:" and is only
	// unique in its file.
	IRI string
	// IsValue means that the term is not a thing, but a value such as a number or a text.
	IsValue bool
}

// Triple is one statement.
type Triple struct {
	Subject, Predicate, Object Term
	Line                       int // in its file, counted from 1
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 10

// Format reads one line.
type Format func(line []byte) (Triple, error)

// FormatOf returns the format of a file, by its name, or nil if the file has no triples.
func FormatOf(name string) Format {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, ".triples.tsv"):
		return tabs
	case strings.HasSuffix(name, ".triples.jsonl"):
		return object
	case strings.HasSuffix(name, ".nt"):
		return nTriples
	}
	return nil
}

// Read calls visit with each triple of a file, and bad with each malformed line. It ends with the error of visit.
func Read(file io.Reader, format Format, visit func(Triple) error, bad func(line int, err error)) error {
	r := bufio.NewReaderSize(file, maxLine)
	for number := 1; ; number++ {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			bad(number, fmt.Errorf("it has more than %d bytes", maxLine))
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			line = nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		line = bytes.TrimRight(line, "\r\n")
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && !(number == 1 && isHeader(text)) {
			triple, wrong := format(line)
			if wrong != nil {
				bad(number, wrong)
			} else {
				triple.Line = number
				if err := visit(triple); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

func isHeader(line []byte) bool {
	return strings.EqualFold(string(line), "subject\tpredicate\tobject")
}

func tabs(line []byte) (t Triple, err error) {
	fields := strings.Split(string(line), "\t")
	if len(fields) != 3 {
		return t,
			fmt.Errorf("it has %d fields; write a subject, a predicate and an object, with tabs between them", len(fields))
	}
	return named(fields[0], fields[1], fields[2])
}

func object(line []byte) (t Triple, err error) {
	var fields struct{ Subject, Predicate, Object *string }
	if err := json.Unmarshal(line, &fields); err != nil {
		return t, fmt.Errorf("it is not a JSON object of texts: %w", err)
	}
	if fields.Subject == nil || fields.Predicate == nil || fields.Object == nil {
		return t, errors.New("it lacks subject, predicate or object")
	}
	return named(*fields.Subject, *fields.Predicate, *fields.Object)
}

func named(texts ...string) (t Triple, err error) {
	for i, term := range []*Term{&t.Subject, &t.Predicate, &t.Object} {
		if term.Name = strings.TrimSpace(texts[i]); term.Name == "" || !utf8.ValidString(term.Name) {
			return t, errors.New("a part is empty, or not UTF-8")
		}
	}
	return t, nil
}

// nTriples reads a line of N-Triples.
func nTriples(line []byte) (t Triple, err error) {
	if !utf8.Valid(line) {
		return t, errors.New("it is not UTF-8")
	}
	p := parser{rest: string(line)}
	t.Subject, t.Predicate, t.Object = p.term(), p.term(), p.term()
	p.space()
	if !p.failed && strings.HasPrefix(p.rest, ".") {
		p.rest = p.rest[1:]
		p.space()
		if p.rest != "" && p.rest[0] != '#' {
			p.failed = true
		}
	} else {
		p.failed = true
	}
	if p.failed || t.Subject.IsValue || t.Predicate.IsValue || strings.HasPrefix(t.Predicate.IRI, "_:") {
		return t,
			errors.New("it is not like <http://example.org/a> <http://example.org/knows> <http://example.org/b> . of N-Triples")
	}
	return t, nil
}

type parser struct {
	rest   string
	failed bool
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *parser) term() (t Term) {
	p.space()
	switch {
	case strings.HasPrefix(p.rest, "<"):
		t.IRI = p.until('>')
		t.Name = local(t.IRI)
	case strings.HasPrefix(p.rest, "_:"):
		end := strings.IndexAny(p.rest, " \t")
		if end < 3 {
			p.failed = true
			return t
		}
		t.IRI = p.rest[:end]
		t.Name, p.rest = t.IRI, p.rest[end:]
	case strings.HasPrefix(p.rest, `"`):
		t.Name, t.IsValue = p.until('"'), true
		if strings.HasPrefix(p.rest, "^^<") {
			p.rest = p.rest[2:]
			p.until('>')
		} else if strings.HasPrefix(p.rest, "@") {
			end := strings.IndexAny(p.rest, " \t")
			p.failed = p.failed || end < 2
			p.rest = p.rest[max(end, 0):]
		}
	default:
		p.failed = true
	}
	p.failed = p.failed || t.Name == "" && !t.IsValue
	return t
}

// until returns the text between the first character and the last one, with escapes decoded.
func (p *parser) until(last byte) string {
	for i := 1; i < len(p.rest); i++ {
		switch p.rest[i] {
		case last:
			text, ok := unescape(p.rest[1:i])
			p.rest, p.failed = p.rest[i+1:], p.failed || !ok
			return text
		case '\\':
			i++
		}
	}
	p.failed = true
	return ""
}

var escapes = map[byte]string{'t': "\t", 'b': "\b", 'n': "\n", 'r': "\r", 'f': "\f", '"': `"`, '\'': "'", '\\': `\`}

func unescape(text string) (string, bool) {
	if strings.IndexByte(text, '\\') < 0 {
		return text, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", false
		}
		size := map[byte]int{'u': 4, 'U': 8}[text[i]]
		plain, ok := escapes[text[i]]
		switch {
		case ok:
			b.WriteString(plain)
		case size > 0 && i+size < len(text):
			code, err := strconv.ParseUint(text[i+1:i+1+size], 16, 32)
			if err != nil || !utf8.ValidRune(rune(code)) {
				return "", false
			}
			b.WriteRune(rune(code))
			i += size
		default:
			return "", false
		}
	}
	return b.String(), true
}

// local returns the part of an IRI that names the thing.
func local(iri string) string {
	name := strings.TrimRight(iri, "/#")
	if at := strings.LastIndexAny(name, "/#"); at >= 0 {
		name = name[at+1:]
	}
	if plain, err := url.PathUnescape(name); err == nil && utf8.ValidString(plain) {
		name = plain
	}
	if name = strings.ReplaceAll(name, "_", " "); strings.TrimSpace(name) == "" {
		return iri
	}
	return name
}
