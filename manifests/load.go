package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/mistake"
)

// MaxBytes is the maximum size of a manifest or a policy.
const MaxBytes = 1 << 20

// ErrFile is wrapped by the errors of [Load] and [LoadPolicy] if the file cannot be read.
var ErrFile = errors.New("cannot read the file")

// IsManifestName reports whether base is the base name of a manifest: tool.yaml, tool.yml,
// tool.json, or one of these with a prefix, as in file_read.tool.yaml. Case matters.
func IsManifestName(base string) bool {
	for _, name := range [...]string{"tool.yaml", "tool.yml", "tool.json"} {
		if base == name || strings.HasSuffix(base, "."+name) && len(base) > len(name)+1 {
			return true
		}
	}
	return false
}

// Load reads and checks the manifest in a file. The error wraps [ErrFile] if path is not a regular
// file, is larger than [MaxBytes] or cannot be read, and is an [*Error] if the manifest is invalid.
func Load(path string) (*Manifest, error) { return load(path, Parse) }

func load[T any](path string, parse func(file string, source []byte) (*T, error)) (*T, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, source)
}

func readFile(path string) (source []byte, err error) {
	file, info, err := hostfile.Open(path, hostfile.Follow)
	if errors.Is(err, hostfile.ErrIrregular) {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrFile, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer func() { _ = file.Close() }()
	var content bytes.Buffer
	content.Grow(int(min(info.Size(), MaxBytes)) + bytes.MinRead) // or it would be read in many small pieces
	if _, err := content.ReadFrom(io.LimitReader(file, MaxBytes+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	source = content.Bytes()
	if bytes.HasPrefix(source, []byte("\x00asm")) || filepath.Ext(path) == ".wasm" {
		return nil,
			&Error{Problems: []Problem{{File: path, Line: 1, Column: 1, Kind: mistake.Syntax,
				Message: "this is a WebAssembly module, not its manifest",
				Fix: "name the manifest, such as tool.yaml, which names the module with module: {path: " + filepath.Base(path) +
					"}; caisson inspect prints one to start from"}}}
	}
	if len(source) > MaxBytes {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrFile, path, MaxBytes)
	}
	return source, nil
}

// Parse checks a manifest and fills in its defaults. The source is read as JSON if the file name
// ends in .json, and as YAML otherwise. The error is an [*Error] with all problems.
func Parse(file string, source []byte) (*Manifest, error) {
	return parse(file, source, manifestSubject, (*reader).manifest)
}

// ParseFunction checks the manifest of a tool that is a Go function of the host's program, as JSON. It
// is as for [Parse], except that its execution is host, and that it has no module.
func ParseFunction(source []byte) (*Manifest, error) {
	return parse("", source, functionSubject, (*reader).manifest)
}

// Place is where in a text something is written.
type Place struct {
	Key          string // such as "memory.max_pages"
	Line, Column int    // from 1
}

// ParseTranslated is like [Parse] for a manifest that a program has made of another text in the file,
// which is where its problems are to be mended. Origin returns the place in that text from which a key of
// the manifest comes, such as "limits.memory".
func ParseTranslated(file string, source []byte, origin func(path string) Place) (*Manifest, error) {
	m, err := Parse(file, source)
	if invalid, ok := errors.AsType[*Error](err); ok {
		for i, p := range invalid.Problems {
			at := origin(p.Path)
			invalid.Problems[i].Path, invalid.Problems[i].Line, invalid.Problems[i].Column = at.Key, at.Line, at.Column
		}
	}
	if err != nil {
		return nil, err
	}
	m.origin = origin
	return m, nil
}

func parse[T any](file string, source []byte, of subject, read func(*reader, *node) *T) (*T, error) {
	r := &reader{file: file, subject: of}
	var parsed *T
	switch root := r.document(source); {
	case r.isForeign(root):
		r.problems = nil
		r.add(position{1, 1}, "", mistake.OtherDocument, "this is not a "+of.name,
			fmt.Sprintf("name a %s, such as %s, which begins with schema: %s", of.name, of.example, of.schema))
	case root != nil:
		parsed = read(r, root)
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int {
			return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Path, b.Path))
		})
		return nil, &Error{r.problems, r.names}
	}
	return parsed, nil
}

// isForeign reports whether a file is neither YAML nor JSON by its name, and has a text without keys.
func (r *reader) isForeign(root *node) bool {
	switch filepath.Ext(r.file) {
	case "", ".yaml", ".yml", ".json":
		return false
	}
	return root == nil || root.kind != objectNode
}

// isOther adds a problem if a document says that it is of another kind, such as a manifest in place of a policy.
func (r *reader) isOther(root *node, other subject) bool {
	n := root.get("schema")
	if n == nil || n.kind != textNode || n.text != other.schema {
		return false
	}
	r.add(n.at, "schema", mistake.OtherDocument, fmt.Sprintf("this is a %s, not a %s", other.name, r.subject.name),
		fmt.Sprintf("%s, or write %s if it is a %s", other.use, r.subject.schema, r.subject.name))
	return true
}

// document reads the source into a tree. On failure it returns nil and adds a problem.
func (r *reader) document(source []byte) *node {
	start := position{1, 1}
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	switch {
	case len(source) > MaxBytes:
		r.add(start, "", mistake.Syntax, fmt.Sprintf("%d bytes are over the limit of %d", len(source), MaxBytes),
			"make the "+r.subject.name+" smaller")
		return nil
	case !utf8.Valid(source):
		r.add(lastPosition(source[:validPrefix(source)]), "", mistake.Syntax, "the text is not valid UTF-8",
			"save the file as UTF-8")
		return nil
	case len(bytes.TrimSpace(source)) == 0:
		return r.empty()
	case r.subject.function, isJSON(r.file):
		return r.json(source)
	default:
		return r.yaml(source)
	}
}

func (r *reader) empty() *node {
	r.add(position{1, 1}, "", mistake.Syntax, "the "+r.subject.name+" is empty", "start with schema: "+r.subject.schema)
	return nil
}

// validPrefix returns the length of the longest prefix of source that is valid UTF-8.
func validPrefix(source []byte) int {
	for i := 0; i < len(source); {
		c, size := utf8.DecodeRune(source[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(source)
}

// lastPosition returns the position just after the source.
func lastPosition(source []byte) position {
	line := 1 + bytes.Count(source, []byte("\n"))
	start := bytes.LastIndexByte(source, '\n') + 1
	return position{line, 1 + utf8.RuneCount(source[start:])}
}
