// Package lint judges the JSON Schemas and the names of tools by what a provider takes, and makes
// schemas strict. What providers take is data: [Rules].
package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
)

// Rules is what one dialect takes of a JSON Schema and of a tool's name. The zero value takes
// everything. Check does not change it, so that it can be shared.
type Rules struct {
	// Property is what the names of an object's properties may look like.
	Property NameRule
	// Keywords says what becomes of keywords, by their names, in every schema within the schema.
	Keywords map[string]Keyword
	// Root is asked before Keywords for the outermost schema.
	Root map[string]Keyword
	// Others is for keywords that Keywords does not name. Its zero value takes them.
	Others Keyword
	// ObjectRoot asks that the outermost schema says type: object and has properties.
	ObjectRoot Keyword
	// Closed asks that each object says additionalProperties: false. It is added unless the schema
	// asks for free names, as an object without properties does that is not the outermost.
	Closed Keyword
	// AllRequired asks that each property of an object is required. Those that are optional become
	// required, and may be null.
	AllRequired Keyword
	// NotRecursive asks that no schema refers to itself.
	NotRecursive Keyword
	// Limits are the bounds on a schema's size. What exceeds them is Refused.
	Limits Limits
}

// Keyword says what becomes of a keyword. The zero value means that it is taken.
type Keyword struct {
	// Severity is empty for what is taken.
	Severity dialects.Severity
	// Message says what the provider does: "the request is refused", "the keyword is ignored".
	Message string
	// Fix says what to write instead, or what is done.
	Fix string
	// Taken says which schemas may have the keyword nevertheless; nil means none.
	Taken func(schema *exact.Value, keyword string) bool
	// Inside says that the schemas in the keyword's value are looked at nevertheless.
	Inside bool
	// Dropped says that the keyword is left out. It is for strict schemas and for keywords that only
	// narrow what is allowed, since arguments are checked against the tool's own schema.
	Dropped bool
}

// Limits bounds a schema. Zero means that there is no bound.
type Limits struct {
	Depth      int // of objects within objects, where 1 is the outermost
	Properties int // of all objects together
	Enum       int // values of all enums together
	Text       int // bytes of all names of properties and definitions, and of all texts in enum and const
}

// Only makes a rule take what taken returns true for.
func (k Keyword) Only(taken func(schema *exact.Value, keyword string) bool) Keyword {
	k.Taken = taken
	return k
}

// Narrowing returns the keywords that only narrow what a schema allows and that no strict mode
// knows. A model that does not read them can be corrected when its arguments are checked.
func Narrowing() []string {
	return []string{
		"not", "dependentRequired", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
		"minProperties", "maxProperties", "contentSchema", "unevaluatedItems",
	}
}

// Shaping returns the keywords in which a schema may say which properties or items there are at
// all, so that it means something else without them, and that no strict mode knows.
func Shaping() []string {
	return []string{"if", "then", "else", "dependentSchemas", "dependencies", "patternProperties", "prefixItems", "additionalItems", "unevaluatedProperties"}
}

// OneOf is for [Keyword.Taken]: the keyword's value is one of these texts.
func OneOf(texts ...string) func(*exact.Value, string) bool {
	return func(schema *exact.Value, keyword string) bool {
		text, ok := schema.Get(keyword).Text()
		return ok && slices.Contains(texts, text)
	}
}

// Each is for [Keyword.Taken]: the keyword's value is an array of which each element is fine.
func Each(fine func(*exact.Value) bool) func(*exact.Value, string) bool {
	return func(schema *exact.Value, keyword string) bool {
		list := schema.Get(keyword)
		return list.IsList() && !slices.ContainsFunc(list.Elements(), func(e *exact.Value) bool { return !fine(e) })
	}
}

// Internal is for [Keyword.Taken] of $ref: it leads into its own document.
func Internal(schema *exact.Value, keyword string) bool {
	target, _ := schema.Get(keyword).Text()
	return strings.HasPrefix(target, "#")
}

// NameRule says what names may look like. The zero value takes every name.
type NameRule struct {
	Most  int    // bytes; zero for no bound
	Extra string // what is allowed beside ASCII letters and digits, such as "_-"; empty for everything
	First string // what the first byte may be beside ASCII letters; empty for everything that is allowed
	// Severity says what becomes of other names; empty for Refused.
	Severity dialects.Severity
	// Message says what the provider does with them; empty for "the request is refused".
	Message string
}

// name returns the finding for the name of a tool, of which there may be none. Names are never
// changed, since calls come back under the name that was offered.
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

// verdict says what becomes of a name that something is wrong with.
func (r NameRule) verdict(fault string) Keyword {
	verdict := Keyword{Severity: dialects.Refused, Message: "the request is refused", Fix: "name it with " + r.allowed()}
	if r.Severity != "" {
		verdict.Severity = r.Severity
	}
	if r.Message != "" {
		verdict.Message = r.Message
	}
	verdict.Message += ": " + fault
	return verdict
}

// fault returns what is wrong with a name, as the end of a sentence, or "".
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
			return fmt.Sprintf("holds %q", c)
		}
	}
	if first := rune(name[0]); r.First != "" && !letter(first) && !strings.ContainsRune(r.First, first) {
		return fmt.Sprintf("begins with %q", first)
	}
	return ""
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// allowed says what names may look like.
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
