package jsontext

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Defaults of [Limits].
const (
	DefaultDepth  = 64
	DefaultValues = 1 << 19
)

// Limits are limits and options for parsing.
type Limits struct {
	// Depth is the maximum nesting of arrays and objects, and Values the maximum number of values and names; 0 means
	// [DefaultDepth] and [DefaultValues].
	Depth, Values int
	// Repeated allows duplicate names in an object.
	Repeated bool
	// Shallow discards the values inside the elements and members of the outermost value. They are still validated, but do
	// not count towards Values.
	Shallow bool
	// Keep selects, by name, which members of the outermost object Shallow keeps; nil keeps all.
	Keep func(name string) bool
	// KeepElements is the number of elements of the outermost array that Shallow keeps; 0 keeps all.
	KeepElements int
	// Name and Number reject names of members and numbers, given their text, anywhere in the text; nil rejects none.
	Name, Number func(text string) error
}

// Outermost returns the limits of the standard library, for only the outermost value.
func Outermost() Limits {
	return Limits{Depth: maxDepth, Values: math.MaxInt32, Repeated: true, Shallow: true}
}

// The reasons to reject a text.
var (
	ErrSyntax   = errors.New("not JSON")
	ErrBehind   = errors.New("text follows the value")
	ErrDepth    = errors.New("nested too deeply")
	ErrValues   = errors.New("too many values")
	ErrRepeated = errors.New("a name occurs twice in one object")
	ErrLimits   = errors.New("a limit is negative")
)

// Error says why a text was rejected, with one of the errors above or that of a function in [Limits], and where.
type Error struct {
	Err    error
	Offset int    // in bytes
	Path   []Step // to the innermost value or name at Offset
	want   string // for ErrSyntax: what should be there
}

// Error returns the reason. For a repeated name, it says which one.
func (e *Error) Error() string {
	if e.Err == ErrRepeated && len(e.Path) > 0 {
		return fmt.Sprintf("the name %.64q occurs twice in one object", e.Path[len(e.Path)-1].Name)
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Read parses one JSON value, which white space may surround. A nil ctx is never done. The error is an
// [*Error] or the context's.
func Read(ctx context.Context, text string, limits Limits) (*Document, error) {
	if limits.Depth == 0 {
		limits.Depth = DefaultDepth
	}
	if limits.Values == 0 {
		limits.Values = DefaultValues
	}
	d := &Document{text: text}
	if limits.Depth < 0 || limits.Values < 0 {
		return nil, &Error{Err: ErrLimits}
	}
	if len(text) > math.MaxInt32 {
		return nil, &Error{Err: ErrValues}
	}
	estimate := 8 + strings.Count(text, ",") + strings.Count(text, ":")
	if limits.Shallow {
		estimate = 16
	}
	d.entries = make([]entry, 0, min(limits.Values, estimate+estimate/4, 8+len(text)/4))
	r := reader{Document: d, ctx: ctx, limits: limits}
	r.space()
	if r.value(0) {
		if r.space(); r.at == len(text) {
			return d, nil
		}
		r.fail(ErrBehind)
	}
	if wrong, ok := r.err.(*Error); ok { //nolint:errorlint // the reader has set it
		wrong.Path = d.path(wrong.Offset)
	}
	return nil, r.err
}

// Parse is [Read] without a context.
func Parse(text string, limits Limits) (*Document, error) {
	var unending context.Context
	return Read(unending, text, limits)
}

// reader parses a document. Its methods return false after err is set.
type reader struct {
	*Document
	ctx    context.Context
	limits Limits
	at     int // the next byte
	look   int // where to check the context
	err    error
}

// lookEvery is the number of bytes that are parsed between checks of the context.
const lookEvery = 64 << 10

func (r *reader) fail(err error) bool {
	r.err = &Error{Err: err, Offset: r.at}
	return false
}

// expect fails because the text does not continue with the wanted part of JSON.
func (r *reader) expect(want string) bool {
	r.err = &Error{Err: ErrSyntax, Offset: r.at, want: want}
	return false
}

// add adds an entry that starts here, inside depth containers.
func (r *reader) add(depth int) bool {
	if r.at >= r.look && r.ctx != nil {
		r.look = r.at + lookEvery
		if r.err = r.ctx.Err(); r.err != nil {
			return false
		}
	}
	if len(r.entries) >= r.limits.Values && (depth <= 1 || !r.limits.Shallow) {
		return r.fail(ErrValues)
	}
	r.entries = append(r.entries, entry{start: int32(r.at)})
	return true
}

func (r *reader) value(depth int) bool {
	kind := r.kind()
	index := len(r.entries)
	if kind == 0 {
		return r.expect(aValue)
	}
	if !r.add(depth) {
		return false
	}
	count, ok := int32(0), false
	switch kind {
	case Object:
		count, ok = r.object(depth + 1)
	case Array:
		count, ok = r.array(depth + 1)
	case String:
		ok = r.string(index)
	case Number:
		ok = r.number()
	case Bool:
		ok = r.word("true") || r.word("false") || r.expect(aValue)
	default:
		ok = r.word("null") || r.expect(aValue)
	}
	if !ok {
		return false
	}
	if r.limits.Shallow && depth > 0 {
		r.entries = r.entries[:index+1]
	}
	e := &r.entries[index]
	e.end, e.next, e.count = int32(r.at), int32(len(r.entries)), e.count+count
	return true
}

// kind returns the kind of the value that starts here, or 0.
func (r *reader) kind() Kind {
	if r.at == len(r.text) {
		return 0
	}
	return kindOf(r.text[r.at])
}

func (r *reader) array(depth int) (count int32, ok bool) {
	if depth > r.limits.Depth {
		return 0, r.fail(ErrDepth)
	}
	for first := true; r.open(']', first); first = false {
		index := len(r.entries)
		if !r.value(depth) {
			return 0, false
		}
		if count++; r.limits.Shallow && (depth > 1 || r.limits.KeepElements > 0 && int(count) > r.limits.KeepElements) {
			r.entries = r.entries[:index]
		}
	}
	return count, r.err == nil
}

func (r *reader) object(depth int) (count int32, ok bool) {
	if depth > r.limits.Depth {
		return 0, r.fail(ErrDepth)
	}
	var seen nameSet
	for first := true; r.open('}', first); first = false {
		name, names := len(r.entries), len(r.names)
		if r.kind() != String {
			return 0, r.expect("a name in double quotes")
		}
		if !r.add(depth) || !r.name(name) {
			return 0, false
		}
		said := Value{r.Document, int32(name)}.String()
		if err := r.check(said, &seen); err != nil {
			r.at = int(r.entries[name].start)
			return 0, r.fail(err)
		}
		if r.space(); !r.eat(':') {
			return 0, r.expect("a colon")
		}
		if r.space(); !r.value(depth) {
			return 0, false
		}
		if r.limits.Shallow && (depth > 1 || r.limits.Keep != nil && !r.limits.Keep(said)) {
			r.entries, r.names = r.entries[:name], r.names[:names]
			if depth == 1 {
				continue
			}
		}
		count++
	}
	return count, r.err == nil
}

func (r *reader) check(name string, seen *nameSet) error {
	if r.limits.Name != nil {
		if err := r.limits.Name(name); err != nil {
			return err
		}
	}
	if !r.limits.Repeated && !seen.add(name) {
		return ErrRepeated
	}
	return nil
}

// open advances to the first or next element of a container. It returns false at its end, or if none can follow.
func (r *reader) open(closing byte, first bool) bool {
	if first {
		r.at++ // the opening bracket
	}
	r.space()
	switch {
	case r.eat(closing):
		return false
	case !first && !r.eat(','):
		return r.expect("a comma or " + string(closing))
	}
	r.space()
	return true
}

// name parses a name and resolves its escapes at once, because names are looked up often.
func (r *reader) name(index int) bool {
	if !r.string(index) {
		return false
	}
	e := &r.entries[index]
	e.end, e.next = int32(r.at), int32(index+1)
	r.extent.Name = max(r.extent.Name, r.at-int(e.start)-len(`""`))
	if e.count > 0 {
		r.names = append(r.names, unescape(r.text[e.start+1:e.end-1]))
		e.count = int32(len(r.names)) + 1
	}
	return true
}

// string parses a string. It sets the entry's count to 1 if it has escapes.
func (r *reader) string(index int) bool {
	for r.at++; ; r.at++ {
		r.at += plainLength(r.text[r.at:])
		switch {
		case r.at == len(r.text):
			return r.expect("a double quote")
		case r.text[r.at] == '"':
			r.at++
			return true
		case r.text[r.at] < ' ':
			return r.expect(`an escape such as \n`)
		}
		r.entries[index].count = 1
		if r.at++; !r.escape() {
			return r.expect(`an escape such as \n or \u00e9 after the backslash`)
		}
	}
}

// plainLength returns the offset of the first quote, backslash or control character, or the length: 8 bytes at a time.
func plainLength(text string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		t := text[n : n+8]
		x := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		quotes, slashes := x^('"'*ones), x^('\\'*ones)
		// The highest bit is set for a byte that is less than the one subtracted from it. The subtraction borrows from the
		// following bytes, so only the first one is reliable.
		found := ((quotes-ones)&^quotes | (slashes-ones)&^slashes | (x-' '*ones)&^x) & high
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// escape advances from the byte after a backslash to the last byte of the escape.
func (r *reader) escape() bool {
	if r.at == len(r.text) || strings.IndexByte(`"\/bfnrtu`, r.text[r.at]) < 0 {
		return false
	}
	if r.text[r.at] != 'u' {
		return true
	}
	if r.at += 4; r.at >= len(r.text) {
		return false
	}
	_, valid := hexadecimal(r.text[r.at-3 : r.at+1])
	return valid
}

func (r *reader) number() bool {
	start := r.at
	r.eat('-')
	if !r.eat('0') && !r.digits() {
		return r.expect(aDigit)
	}
	if r.eat('.') && !r.digits() {
		return r.expect(aDigit)
	}
	if r.eat('e') || r.eat('E') {
		r.extent.Exponents = true
		if !r.eat('+') {
			r.eat('-')
		}
		if !r.digits() {
			return r.expect(aDigit)
		}
	}
	r.extent.Number = max(r.extent.Number, r.at-start)
	if r.limits.Number != nil {
		if err := r.limits.Number(r.text[start:r.at]); err != nil {
			r.at = start
			return r.fail(err)
		}
	}
	return true
}

func (r *reader) digits() bool {
	rest := r.text[r.at:]
	n := 0
	for n < len(rest) && isDigit(rest[n]) {
		n++
	}
	r.at += n
	return n > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (r *reader) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

func (r *reader) eat(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\n', '\t', '\r':
			r.at++
		default:
			return
		}
	}
}

// nameSet is the set of names of one object. It uses a map only for objects with many members.
type nameSet struct {
	few   [8]string
	count int // of few
	many  map[string]struct{}
}

func (s *nameSet) add(name string) bool {
	if slices.Contains(s.few[:s.count], name) {
		return false
	}
	if s.count < len(s.few) {
		s.few[s.count] = name
		s.count++
		return true
	}
	if s.many == nil {
		s.many = map[string]struct{}{}
	}
	before := len(s.many)
	s.many[name] = struct{}{}
	return len(s.many) > before
}
