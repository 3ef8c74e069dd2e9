// Package lint checks the JSON Schemas and the names of tools against what a provider accepts, and makes
// schemas strict. What providers accept is data: [Rules].
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
)

// Rules are one dialect's rules for JSON Schemas. The zero value accepts everything. Check does not
// change them, so they can be shared.
type Rules struct {
	// Property is the rule for the names of an object's properties.
	Property NameRule
	// Keywords has the rules for keywords, by name, in the schema and all schemas within it.
	Keywords map[string]Keyword
	// Root takes precedence over Keywords in the outermost schema.
	Root map[string]Keyword
	// Others is the rule for keywords that Keywords does not name.
	Others Keyword
	// ObjectRoot requires that the outermost schema has type: object and properties.
	ObjectRoot Keyword
	// Closed requires additionalProperties: false in each object. It is added unless the schema allows
	// arbitrary names, as an object without properties does that is not the outermost.
	Closed Keyword
	// AllRequired requires that each property of an object is required. Optional ones become required
	// and nullable.
	AllRequired Keyword
	// NotRecursive requires that no schema refers to itself.
	NotRecursive Keyword
	// Limits are the bounds on a schema's size. A schema that exceeds them is Refused.
	Limits Limits
}

// Keyword is a rule, usually for one keyword. The zero value accepts it.
type Keyword struct {
	// Severity is empty for accepted keywords.
	Severity dialects.Severity
	// Message says what the provider does: "the request is refused", "the keyword is ignored".
	Message string
	// Fix says what to write instead, or how the schema is adapted.
	Fix string
	// Taken says for which schemas the keyword is accepted all the same; nil for none.
	Taken func(schema *Value, keyword string) bool
	// Inside says that the schemas in the keyword's value are checked all the same.
	Inside bool
	// Dropped says that the keyword is removed. It is for strict schemas and for keywords that only
	// narrow the allowed values, since arguments are checked against the tool's own schema.
	Dropped bool
}

// Refused returns the rule for a keyword that makes the provider refuse the request.
func Refused(message, fix string) Keyword {
	return Keyword{Severity: dialects.Refused, Message: "the request is refused: " + message, Fix: fix}
}

// Weakened returns the rule for a keyword that the provider ignores.
func Weakened(message, fix string) Keyword {
	return Keyword{Severity: dialects.Weakened, Message: message, Fix: fix}
}

func (k Keyword) Only(taken func(schema *Value, keyword string) bool) Keyword {
	k.Taken = taken
	return k
}

func (k Keyword) Enter() Keyword {
	k.Inside = true
	return k
}

func (k Keyword) Drop() Keyword {
	k.Dropped = true
	return k
}

// Limits bounds a schema. Zero means unlimited.
type Limits struct {
	Depth      int // of objects within objects, where 1 is the outermost
	Properties int // of all objects together
	Enum       int // values of all enums together
	Text       int // bytes of all names of properties and definitions, and of all strings in enum and const
}

// Narrowing returns the keywords that only narrow what a schema allows and that no strict mode
// supports. A model that does not follow them can be corrected when its arguments are checked.
func Narrowing() []string {
	return []string{
		"not", "dependentRequired", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
		"minProperties", "maxProperties", "contentSchema", "unevaluatedItems",
	}
}

// Shaping returns the keywords that may define properties or items, so that a schema has another meaning
// without them, and that no strict mode supports.
func Shaping() []string {
	return []string{"if", "then", "else", "dependentSchemas", "dependencies", "patternProperties", "prefixItems",
		"additionalItems", "unevaluatedProperties"}
}

// OneOf is for [Keyword.Taken]: the keyword's value is one of these strings.
func OneOf(texts ...string) func(*Value, string) bool {
	return func(schema *Value, keyword string) bool {
		text, ok := schema.Get(keyword).Text()
		return ok && slices.Contains(texts, text)
	}
}

// Each is for [Keyword.Taken]: the keyword's value is an array and fine returns true for each element.
func Each(fine func(*Value) bool) func(*Value, string) bool {
	return func(schema *Value, keyword string) bool {
		list := schema.Get(keyword)
		return list.IsList() && !slices.ContainsFunc(list.Elements(), func(e *Value) bool { return !fine(e) })
	}
}

// Single is for [Keyword.Taken] of items: it is one schema, where drafts of JSON Schema before 2020-12 also have a
// list of them.
func Single(schema *Value, keyword string) bool { return !schema.Get(keyword).IsList() }

// Number is for [Keyword.Taken]: the keyword's value is a number, where draft 4 of JSON Schema also has true.
func Number(schema *Value, keyword string) bool {
	literal := schema.Get(keyword).Literal()
	return literal != "" && (literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9')
}

// Internal is for [Keyword.Taken] of $ref: it refers to the same document.
func Internal(schema *Value, keyword string) bool {
	target, _ := schema.Get(keyword).Text()
	return strings.HasPrefix(target, "#")
}

// NestedID is the message of a rule for "$id" in a schema within another one: references there are relative
// to it. The outermost schema may have one.
const NestedID = "references below an $id within a schema are read from the top"

// PointersOnly is the fix of a rule with NestedID, and of rules for $dynamicRef and $recursiveRef.
const PointersOnly = "refer with $ref to a JSON pointer from the top, as #/$defs/item, and leave $id out"

// NameRule is the rule for names. The zero value accepts every name.
type NameRule struct {
	Most  int    // bytes; zero means unlimited
	Extra string // characters allowed in addition to ASCII letters and digits, such as "_-"; empty allows all
	First string // first bytes allowed in addition to ASCII letters; empty allows every allowed byte
	// Severity of other names; empty for Refused.
	Severity dialects.Severity
	// Message says what the provider does with other names; empty for "the request is refused".
	Message string
}

// name returns the findings for a tool's name, which is never changed: calls come back under the name that was offered.
func (r NameRule) name(name string) []dialects.Finding {
	fault := r.fault(name)
	if fault == "" {
		return nil
	}
	verdict := r.verdict("the name " + fault)
	return []dialects.Finding{{
		Keyword: "name", Severity: verdict.Severity, Message: verdict.Message,
		Fix: "offer the tool under another name: " + r.allowed(),
	}}
}

// verdict returns the rule that a name with the given fault breaks.
func (r NameRule) verdict(fault string) Keyword {
	return Keyword{
		Severity: cmp.Or(r.Severity, dialects.Refused),
		Message:  cmp.Or(r.Message, "the request is refused") + ": " + fault,
		Fix:      "name it with " + r.allowed(),
	}
}

// fault returns the fault of a name as the end of a sentence, or "" if it has none.
func (r NameRule) fault(name string) string {
	if name == "" && (r.Most > 0 || r.Extra != "") {
		return "is empty"
	}
	if r.Most > 0 && len(name) > r.Most {
		return fmt.Sprintf("has %d bytes, more than %d", len(name), r.Most)
	}
	if r.Extra == "" {
		return ""
	}
	for _, c := range name {
		if !letter(c) && !(c >= '0' && c <= '9') && !strings.ContainsRune(r.Extra, c) {
			return fmt.Sprintf("contains %q", c)
		}
	}
	if first := rune(name[0]); r.First != "" && !letter(first) && !strings.ContainsRune(r.First, first) {
		return fmt.Sprintf("begins with %q", first)
	}
	return ""
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (r NameRule) allowed() string {
	var parts []string
	if r.Extra != "" {
		parts = append(parts, "ASCII letters, digits and "+strings.Join(strings.Split(r.Extra, ""), " "))
	}
	if r.First != "" {
		parts = append(parts, "a letter or one of "+r.First+" at the beginning")
	}
	if r.Most > 0 {
		parts = append(parts, fmt.Sprintf("at most %d bytes", r.Most))
	}
	return strings.Join(parts, ", ")
}
