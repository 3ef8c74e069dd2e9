package documents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
)

// ErrBinary means that a file has no text.
var ErrBinary = errors.New("it is not text")

// ErrStop ends reading early, as [Reader.Read] is told by its visitor.
var ErrStop = errors.New("no more chunks are wanted")

// About is the metadata of a document, which reading it finds.
type About struct {
	Encoding string
	// Title, Description and Language are those of an HTML document's metadata.
	Title, Description, Language string
	// Columns is the first record of a CSV file, unparsed.
	Columns string
	Records int // of a CSV file, without the first
	Lines   int // line breaks; 0 for HTML
}

// Reader reads documents one after the other. Its zero value is ready. It is not safe for concurrent use.
type Reader struct {
	// Heading, if set, is called with each heading, in their order.
	Heading func(Heading)

	buffered *bufio.Reader
	splitter splitter
}

// bufferSize is the number of bytes read at once.
const bufferSize = 64 << 10

// Read passes the chunks of a document to visit, which may keep nothing of them. If visit fails, Read ends with
// its error, or without one after [ErrStop].
func (r *Reader) Read(p Project, d Document, visit func(*Chunk) error) (About, error) {
	file, err := os.Open(path.Join(p.Root, d.ID))
	if err != nil {
		return About{}, Reason(err)
	}
	defer file.Close()
	if r.buffered == nil {
		r.buffered = bufio.NewReaderSize(nil, bufferSize)
	}
	about, err := r.read(file, d.Kind(), visit)
	if errors.Is(err, ErrStop) {
		err = nil
	}
	return about, err
}

func (r *Reader) read(file io.Reader, kind Kind, visit func(*Chunk) error) (about About, err error) {
	r.buffered.Reset(file)
	start, err := r.buffered.Peek(sniffSize)
	if err != nil && err != io.EOF {
		return about, Reason(err)
	}
	if bytes.IndexByte(start, 0) >= 0 && !bytes.HasPrefix(start, []byte("\xff\xfe")) &&
		!bytes.HasPrefix(start, []byte("\xfe\xff")) {
		return about, ErrBinary
	}
	text, name, err := page.Decode(r.buffered, kind == HTML)
	if err != nil {
		return about, Reason(err)
	}
	about.Encoding = name
	s := &r.splitter
	s.reset(kind, r.Heading, visit)
	if kind == HTML {
		p, err := page.ConvertText(text, s)
		if err == nil {
			err = s.end()
		}
		if p != nil {
			about.Title, about.Description, about.Language = p.Title, p.Description, p.Language
		}
		return about, err
	}
	if err = s.readFrom(text); err == nil {
		err = s.end()
	}
	about.Lines, about.Records, about.Columns = s.lines, s.records, string(s.header)
	return about, err
}

// sniffSize is the number of bytes at the start of a file that are searched for a zero byte, which text does not have.
const sniffSize = 8 << 10
