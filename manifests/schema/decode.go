package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// Bounds on JSON text.
const (
	// MaxDepth is how deep objects and arrays may nest, in schemas and in values.
	MaxDepth = 64
	// maxNumberBytes and maxExponent keep numbers cheap: the validator computes with
	// exact fractions, and 1e1000000000 as one would fill the memory.
	maxNumberBytes = 128
	maxExponent    = 400
)

// bounds are what a schema or a value may have of what costs the validator most. It
// writes out the path of everything it looks at, so names count as well as bytes.
type bounds struct {
	bytes     int
	nameBytes int
	// memory is about how many bytes the decoded value may take. Small objects take
	// fifty times as much as their text.
	memory int
}

// document is a decoded JSON text: maps, slices, strings, json.Number, bool and nil.
type document struct {
	root any
	// pathBytes is about the length of the longest path in it, and nameBytes that of
	// the longest name.
	pathBytes, nameBytes int
	// members and elements are how many the largest object and the largest list have.
	members, elements int
}

// isCrowded reports whether an object or a list has too many members for the validator.
func (d document) isCrowded() bool { return d.members > maxMembers || d.elements > maxElements }

// textError is a defect of JSON text at a path inside it.
type textError struct {
	path    string
	message string
}

func (e *textError) Error() string { return at(e.path, e.message) }

// below moves an error into the member or element that segment names.
func below(segment string, err error) error {
	if defect, ok := err.(*textError); ok {
		return &textError{keypath.Join(segment, defect.path), defect.message}
	}
	return err
}

// decode reads one JSON value. It refuses what is over the bounds, not UTF-8, or has a
// key twice in one object. The error is a *textError, or that of a context that has ended.
func decode(ctx context.Context, text []byte, limit bounds) (document, error) {
	if len(text) > limit.bytes {
		return document{}, &textError{"", fmt.Sprintf("%d bytes are over the limit of %d", len(text), limit.bytes)}
	}
	if err := ended(ctx); err != nil {
		return document{}, err
	}
	if !utf8.Valid(text) {
		return document{}, &textError{"", "the text is not valid UTF-8"}
	}
	if !json.Valid(text) {
		return document{}, &textError{"", syntaxMessage(text)}
	}
	d := decoder{ctx: ctx, text: string(text), limit: limit}
	d.space()
	root, err := d.value(position{})
	if err != nil {
		return document{}, err
	}
	return document{root, d.longestPath, d.longestName, d.mostMembers, d.mostElements}, nil
}

func syntaxMessage(text []byte) string {
	var syntax *json.SyntaxError
	var ignored any
	if err := json.Unmarshal(text, &ignored); errors.As(err, &syntax) {
		return fmt.Sprintf("not JSON, at byte %d: %s", syntax.Offset, syntax)
	}
	return "not JSON"
}

type decoder struct {
	ctx         context.Context
	text        string // valid JSON
	offset      int    // of the next byte that is looked at
	limit       bounds
	longestPath int
	longestName int
	memory      int
	values      int

	mostMembers, mostElements int
}

// valuesPerLook is how many values are read between two looks at the context.
const valuesPerLook = 1 << 10

// position says how deep a value is and how long the path to it.
type position struct {
	depth, pathBytes int
}

func (p position) inside(nameBytes int) position {
	return position{p.depth + 1, p.pathBytes + nameBytes + 1}
}

// value reads the value that starts at the offset. The grammar was checked already, so
// that the first byte says what follows.
func (d *decoder) value(at position) (any, error) {
	if d.values++; d.values%valuesPerLook == 1 {
		if err := ended(d.ctx); err != nil {
			return nil, err
		}
	}
	d.longestPath = max(d.longestPath, at.pathBytes)
	switch d.text[d.offset] {
	case '{', '[':
		return d.container(at)
	case '"':
		text, err := d.string()
		if err != nil {
			return nil, err
		}
		if err := d.spend(scalarBytes + len(text)); err != nil {
			return nil, err
		}
		return text, nil
	}
	switch word := d.word(); word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	default:
		return d.number(word)
	}
}

func (d *decoder) number(literal string) (any, error) {
	if err := d.spend(scalarBytes + len(literal)); err != nil {
		return nil, err
	}
	if message := checkNumber(literal); message != "" {
		return nil, &textError{"", message}
	}
	return json.Number(literal), nil
}

func (d *decoder) container(at position) (any, error) {
	if err := d.spend(containerBytes); err != nil {
		return nil, err
	}
	if at.depth >= MaxDepth {
		return nil, &textError{"", fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	if d.text[d.offset] == '{' {
		return d.object(at)
	}
	return d.array(at)
}

func (d *decoder) object(at position) (any, error) {
	members := map[string]any{}
	for d.next('}') {
		key, err := d.string()
		if err != nil {
			return nil, err
		}
		if len(key) > d.limit.nameBytes {
			return nil, &textError{"", fmt.Sprintf("a name is %d bytes long, over the limit of %d", len(key), d.limit.nameBytes)}
		}
		d.longestName = max(d.longestName, len(key))
		if err := d.takeMember(len(members), key); err != nil {
			return nil, err
		}
		if _, twice := members[key]; twice {
			return nil, &textError{keypath.Key("", key), "the key stands twice in one object; give it once"}
		}
		d.space()
		d.offset++ // the colon
		d.space()
		value, err := d.value(at.inside(len(key)))
		if err != nil {
			return nil, below(keypath.Key("", key), err)
		}
		members[key] = value
	}
	d.mostMembers = max(d.mostMembers, len(members))
	return members, nil
}

func (d *decoder) array(at position) (any, error) {
	elements := []any{}
	for d.next(']') {
		if err := d.spend(elementBytes); err != nil {
			return nil, err
		}
		element, err := d.value(at.inside(len("000")))
		if err != nil {
			return nil, below(keypath.Index("", len(elements)), err)
		}
		elements = append(elements, element)
	}
	d.mostElements = max(d.mostElements, len(elements))
	return elements, nil
}

// About how many bytes decoded values take beside their text.
const (
	containerBytes   = 64  // an object or an array without what is in it
	elementBytes     = 40  // the place of an element in an array that grows
	scalarBytes      = 24  // a string or a number
	firstMemberBytes = 304 // room for the first eight members of an object
	memberBytes      = 96  // the place of another member
	fewMembers       = 8
)

// takeMember counts the memory of a member's place and name.
func (d *decoder) takeMember(before int, key string) error {
	switch {
	case before == 0:
		return d.spend(firstMemberBytes + len(key))
	case before < fewMembers:
		return d.spend(len(key))
	default:
		return d.spend(memberBytes + len(key))
	}
}

func (d *decoder) spend(bytes int) error {
	if d.memory += bytes; d.memory > d.limit.memory {
		return &textError{"", "too many values; make it smaller"}
	}
	return nil
}

// checkNumber says what is wrong with the size of a number, or "".
func checkNumber(literal string) string {
	if len(literal) > maxNumberBytes {
		return fmt.Sprintf("a number has %d characters, over the limit of %d", len(literal), maxNumberBytes)
	}
	at := strings.IndexByte(literal, 'e')
	if at < 0 {
		at = strings.IndexByte(literal, 'E')
	}
	if at < 0 {
		return "" // that many digits are less than the largest number
	}
	value, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(value, 0) {
		return fmt.Sprintf("the number %s is too large", literal)
	}
	exponent, err := strconv.Atoi(literal[at+1:])
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return fmt.Sprintf("the number %s has an exponent that is out of range", literal)
	}
	return ""
}
