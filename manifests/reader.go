package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/spelling"
)

// reader walks a document once, strictly, and collects all problems.
type reader struct {
	file     string
	subject  subject
	problems []Problem
	places   places
	// names are the names that a manifest claims, even if it has problems.
	names []string
	// pathBytes is the total length of the paths of the values read so far.
	pathBytes int
}

// subject describes a kind of document, for messages.
type subject struct {
	name    string
	schema  string // the value of its schema key
	example string // the usual name of its file
	use     string // what to do with one
	split   string // what to do with a second document in one file
	// function means that the tool is a Go function, which has no module.
	function bool
}

var (
	manifestSubject = subject{name: "manifest", schema: SchemaV1, example: "tool.yaml", use: "load it as a tool",
		split: "put each tool into its own file"}
	functionSubject = subject{name: "manifest", schema: SchemaV1, function: true}
	policySubject   = subject{name: "policy", schema: PolicyV1, example: "caisson.yaml", use: "use it as a policy",
		split: "put everything into one document"}
)

// start says how a document of the kind begins.
func (s subject) start() string { return "start a " + s.name + " with schema: " + s.schema }

// field is one key that an object may have.
type field struct {
	key string
	// example, if set, makes the key required. It says what to add.
	example string
	read    func(n *node, path string)
}

// parser reads one value. If it reports a problem, it returns the zero value.
type parser[T any] func(n *node, path string) T

// optional returns the field of a key that may be absent. Its value is stored in to.
func optional[T any](key string, to *T, read parser[T]) field { return required(key, "", to, read) }

// required returns the field of a key that must be present. The example says what to add if it is not.
func required[T any](key, example string, to *T, read parser[T]) field {
	return field{key, example, func(n *node, path string) { *to = read(n, path) }}
}

// pointer returns a parser that tells an absent value from the zero value.
func pointer[T any](read parser[T]) parser[*T] {
	return func(n *node, path string) *T { return new(read(n, path)) }
}

// maxProblems is the maximum number of problems reported. Nobody reads more.
const maxProblems = 1000

func (r *reader) add(at position, path string, kind mistake.Kind, message, fix string) {
	if len(r.problems) >= maxProblems {
		return
	}
	r.problems = append(r.problems, problemAt(r.file, at, path, kind, message, fix))
}

// invalid reports a value of the right type that is not allowed.
func (r *reader) invalid(n *node, path, message, fix string) {
	r.add(n.at, path, mistake.InvalidValue, message, fix)
}

// outOfRange reports a value that is too small or too large.
func (r *reader) outOfRange(n *node, path, message, fix string) {
	r.add(n.at, path, mistake.OutOfRange, message, fix)
}

// conflict reports a value at a path that contradicts another part of the document.
func (r *reader) conflict(path, message, fix string) {
	r.add(r.place(path), path, mistake.Conflict, message, fix)
}

// enter begins a value of a document. It returns false if reading ends, which it has reported.
func (r *reader) enter(at position, path string, depth int) bool {
	r.pathBytes += len(path)
	switch {
	case depth > maxNesting:
		r.add(at, "", mistake.Syntax, fmt.Sprintf("nested deeper than %d levels", maxNesting), "make it flatter")
	case r.pathBytes > maxPathBytes:
		r.add(at, "", mistake.Syntax, "the keys are too long for the number of values below them",
			"make the keys shorter or the document flatter")
	default:
		return true
	}
	return false
}

// addMember adds a member to an object, and reports its key if an earlier member has it. seen has their places.
func (r *reader) addMember(n *node, m member, path string, seen map[string]position) {
	if first, twice := seen[m.key]; twice {
		r.add(m.at, path, mistake.DuplicateKey, fmt.Sprintf("the key appears twice; first on line %d", first.line),
			"keep one of the two")
		n.repeated = append(n.repeated, m)
		return
	}
	seen[m.key] = m.at
	n.members = append(n.members, m)
}

// object reads the members of an object. It returns false if n is none, or a document of another kind.
func (r *reader) object(n *node, path string, fields ...field) bool {
	if n.schema != nil {
		n.noteFields(fields)
		return false
	}
	keys := keysOf(fields)
	if path == "" && n.kind != objectNode {
		r.add(n.at, "", mistake.OtherDocument,
			fmt.Sprintf("this is not a %s: want keys and values, got %s", r.subject.name, n.kind), r.subject.start())
		return false
	}
	if !r.kind(n, path, objectNode, "write keys and values below it: "+strings.Join(keys, ", ")) {
		return false
	}
	meant := func(m member) bool {
		return slices.Contains(keys, m.key) || m.key == "wasm" || spelling.Nearest(m.key, keys) != ""
	}
	if path == "" && len(n.members) > 0 && !slices.ContainsFunc(n.members, meant) {
		r.add(n.at, "", mistake.OtherDocument, fmt.Sprintf("this is not a %s: it has no key of one", r.subject.name),
			r.subject.start())
		return false
	}
	for _, m := range n.members {
		inner := keypath.Key(path, m.key)
		if i := slices.Index(keys, m.key); i < 0 {
			r.unknownKey(m, inner, keys)
		} else if r.hasValue(m, inner) {
			fields[i].read(m.value, inner)
		}
	}
	for _, f := range fields {
		if f.example != "" && n.get(f.key) == nil {
			r.add(n.at, keypath.Key(path, f.key), mistake.Missing, "the key "+f.key+" is required", "add "+f.example)
		}
	}
	return true
}

// mapping reads the members of an object whose keys are chosen by the author.
func (r *reader) mapping(n *node, path string, limit int, read func(m member, path string)) {
	if !r.kind(n, path, objectNode, "write names and values below it") {
		n.noteMembers(limit, func(m member) { read(m, path) })
		return
	}
	if len(n.members) > limit {
		r.outOfRange(n, path, fmt.Sprintf("%d keys are over the limit of %d", len(n.members), limit), "remove some")
		return
	}
	for _, m := range n.members {
		if inner := keypath.Key(path, m.key); r.hasValue(m, inner) {
			read(m, inner)
		}
	}
}

// hasValue reports whether the value of a member is to be read, and adds a problem if it is null.
func (r *reader) hasValue(m member, path string) bool {
	if m.value.kind == nullNode && !m.value.reported {
		r.add(m.at, path, mistake.Missing, "the key has no value", "give it a value or remove the key")
	}
	return m.value.kind != nullNode && !m.value.reported
}

// key reports a key that does not match a pattern.
func (r *reader) key(m member, path string, pattern *regexp.Regexp, fix string) bool {
	if m.value.note("propertyNames", objectOf(keyed("pattern", textOf(pattern.String())))) || pattern.MatchString(m.key) {
		return true
	}
	r.add(m.at, path, mistake.InvalidValue, fmt.Sprintf("the key %q is not allowed here", clip(m.key)), fix)
	return false
}

func (r *reader) unknownKey(m member, path string, keys []string) {
	fix := "remove it; known keys are " + strings.Join(keys, ", ")
	if near := spelling.Nearest(m.key, keys); near != "" {
		fix = "did you mean " + near + "?"
	}
	if m.key == "$schema" && slices.Contains(keys, "schema") {
		fix = "remove it; an editor takes the schema from its settings or, in YAML, from a comment: # " +
			"yaml-language-server: $schema=…"
	}
	if m.key == "wasm" && slices.Contains(keys, "module") {
		fix = r.fixForExtism()
	}
	r.add(m.at, path, mistake.UnknownKey, "unknown key "+strconv.Quote(clip(m.key)), fix)
}

func (r *reader) fixForExtism() string {
	_, isCaissons := r.places["schema"]
	switch {
	case !isJSON(r.file):
		return "if this is a manifest of Extism, give the file a name that ends in .json; else write module"
	case isCaissons:
		return "if this is a manifest of Extism, remove schema; else write module"
	}
	return "if this is a manifest of Extism, load it with package runtime/extism; else write module"
}

// kind reports whether n has the kind, and adds a problem if not.
func (r *reader) kind(n *node, path string, want nodeKind, fix string) bool {
	if n.note("type", textOf([...]string{"null", "boolean", "number", "string", "array", "object"}[want])) {
		return false
	}
	if n.kind == want {
		return true
	}
	r.add(n.at, path, mistake.WrongType, fmt.Sprintf("want %s, got %s", want, n.kind), fix)
	return false
}

// text returns the text of a node. If it has none, it adds a problem and returns "".
func (r *reader) text(n *node, path string) string {
	fix := "write text"
	if n.kind == numberNode || n.kind == boolNode {
		fix = "put the value into quotes"
	}
	if !r.kind(n, path, textNode, fix) {
		return ""
	}
	return n.text
}

func choice[W ~string](r *reader, words ...W) parser[W] {
	known := make([]string, len(words))
	for i, word := range words {
		known[i] = string(word)
	}
	return func(n *node, path string) W {
		text := r.text(n, path)
		if n.noteWords(known) || n.kind != textNode || slices.Contains(known, text) {
			return W(text)
		}
		r.invalid(n, path, "unknown value "+strconv.Quote(clip(text)), choiceFix(text, known))
		return ""
	}
}

func choiceFix(wrong string, words []string) string {
	all := strings.Join(words, ", ")
	if len(words) == 1 {
		return "write " + all
	}
	if near := spelling.Nearest(wrong, words); near != "" {
		return "did you mean " + near + "? It is one of " + all
	}
	return "write one of " + all
}

func (r *reader) boolean(n *node, path string) bool {
	return r.kind(n, path, boolNode, "write true or false") && n.text == "true"
}

func integer[N int | int64](r *reader, minimum, maximum N) parser[N] {
	fix := fmt.Sprintf("write a whole number from %d to %d", minimum, maximum)
	return func(n *node, path string) N {
		if !r.kind(n, path, numberNode, fix) {
			n.noteRange(int64(minimum), int64(maximum))
			return 0
		}
		if strings.ContainsAny(n.text, ".eE") {
			r.invalid(n, path, n.text+" is not written as a whole number", fix)
			return 0
		}
		value, err := strconv.ParseInt(n.text, 10, 64)
		if err != nil || value < int64(minimum) || value > int64(maximum) {
			r.outOfRange(n, path, clip(n.text)+" is out of range", fix)
			return 0
		}
		return N(value)
	}
}

func (r *reader) bytes(minimum, maximum Bytes) parser[Bytes] {
	fix := fmt.Sprintf("write a size from %s to %s, such as 16MiB or 256KiB", minimum, maximum)
	return quantity(r, "bytes", "a size", fix, minimum, maximum, ParseBytes, textNode, numberNode)
}

// duration reads a duration from minimum to maximum. The others are further allowed values, for the fix.
func (r *reader) duration(minimum, maximum time.Duration, others ...string) parser[time.Duration] {
	fix := fmt.Sprintf("write a duration from %s to %s, such as 10s, 1m30s or 1.5s", brief(minimum), brief(maximum))
	fix = strings.Join(append([]string{fix}, others...), ", or ")
	return quantity(r, "duration", "a positive duration with a unit", fix, minimum, maximum, ParseDuration, textNode)
}

// brief returns a duration without units that are zero: 24h.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// quantity reads a value from minimum to maximum that is written as one of several kinds.
func quantity[Q Bytes | time.Duration](
	r *reader, definition, what, fix string, minimum, maximum Q, parse func(string) (Q, error), kinds ...nodeKind,
) parser[Q] {
	return func(n *node, path string) Q {
		if n.note("$ref", textOf("#/$defs/"+definition)) {
			return 0
		}
		if !slices.Contains(kinds, n.kind) {
			r.add(n.at, path, mistake.WrongType, "want "+what+", got "+n.kind.String(), fix)
			return 0
		}
		value, err := parse(n.text)
		switch {
		case err != nil:
			r.invalid(n, path, strconv.Quote(clip(n.text))+" is not "+what, fix)
			return 0
		case value < minimum || value > maximum:
			r.outOfRange(n, path, clip(n.text)+" is out of range", fix)
			return 0
		}
		return value
	}
}

func (r *reader) list(n *node, path string, limit int, read func(n *node, path string)) {
	if !r.kind(n, path, listNode, "write a list, such as [a, b]") {
		n.noteElements(limit, func(n *node) { read(n, path) })
		return
	}
	if len(n.elements) > limit {
		r.outOfRange(n, path, fmt.Sprintf("%d elements are over the limit of %d", len(n.elements), limit), "remove some")
		return
	}
	for i, element := range n.elements {
		if !element.reported {
			read(element, keypath.Index(path, i))
		}
	}
}

func listOf[E any](r *reader, limit int, read parser[E]) parser[[]E] {
	return func(n *node, path string) []E {
		var all []E
		r.list(n, path, limit, func(n *node, path string) { all = append(all, read(n, path)) })
		return all
	}
}

func distinctOf[E comparable](r *reader, limit int, read parser[E]) parser[[]E] {
	return func(n *node, path string) []E {
		var all []E
		var invalid E
		n.note("uniqueItems", boolOf(true))
		r.list(n, path, limit, func(n *node, path string) {
			element := read(n, path)
			switch {
			case element == invalid:
			case slices.Contains(all, element):
				r.repeated(n, path, strconv.Quote(fmt.Sprint(element)))
			default:
				all = append(all, element)
			}
		})
		return all
	}
}

// repeated reports the second of two equal elements of a list.
func (r *reader) repeated(n *node, path, element string) {
	r.add(n.at, path, mistake.DuplicateKey, element+" appears twice in the list", "keep one of the two")
}

// place returns the position of the value at path, or of the nearest enclosing value.
func (r *reader) place(path string) position {
	return cmp.Or(r.places.near(path), r.places[""], position{1, 1})
}
