package schema

import (
	"encoding/json"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
)

// Types is a set of JSON types. The zero value is the empty set.
type Types uint8

// The JSON types. A number counts as Integer by its value, so that 5.0 and 5e3 do.
const (
	Null Types = 1 << iota
	Boolean
	Integer
	Fraction // a number that is not whole
	String
	Array
	Object

	Number  = Integer | Fraction
	AnyType = Null | Boolean | Number | String | Array | Object
)

// Has reports whether all the given types are in the set.
func (t Types) Has(types Types) bool { return t&types == types }

// TypeOf returns the type of a JSON value from its text, which must be valid JSON without
// space around it. A number that no value may hold, such as 1e999, counts as a Fraction.
func TypeOf(text string) Types {
	switch text[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Boolean
	case 'n':
		return Null
	}
	if checkNumber(text) != nil {
		return Fraction
	}
	kind, _ := typeOfNumber(text)
	return kind
}

// typeOfNumber returns the type of a number that values may hold, and whether it is written in digits only.
func typeOfNumber(text string) (kind Types, digits bool) {
	switch {
	case isInteger(text):
		return Integer, true
	case parseDecimal(text).isWhole():
		return Integer, false
	}
	return Fraction, false
}

// isInteger reports whether a number is written without a fraction and an exponent.
func isInteger(literal string) bool {
	for _, c := range []byte(literal) {
		if c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return true
}

// typesNamed are the types by the names that a schema uses.
var typesNamed = map[string]Types{
	"null": Null, "boolean": Boolean, "integer": Integer, "number": Number, "string": String, "array": Array,
	"object": Object,
}

const typeNames = "string, number, integer, boolean, object, array, null"

func typeName(v jsontext.Value) string {
	if v.Kind() == jsontext.Number && isInteger(v.Text()) {
		return "integer"
	}
	return [...]string{
		jsontext.Null: "null", jsontext.Bool: "boolean", jsontext.Number: "number", jsontext.String: "string",
		jsontext.Array: "array", jsontext.Object: "object",
	}[v.Kind()]
}

// Node is one of the schemas inside a schema, compiled. Its exported fields are its demands on the form of values, as
// far as they are known without evaluating a value. A value that fits the schema meets all of them; the reverse is not
// true.
//
// Nodes are linked as their schemas refer to each other, so there may be cycles.
type Node struct {
	// Types are those that type, enum and const allow together.
	Types Types
	// Properties are the schemas of members by name; Required names those that there must be.
	Properties map[string]*Node
	Required   map[string]bool
	// Patterned says that members whose names match a pattern have schemas that are not shown.
	Patterned bool
	// Additional is for the members that neither Properties nor a pattern names; nil where nothing is said about them.
	Additional *Node
	// Prefix are the schemas of an array's first elements, and Items is that of the
	// others; nil where nothing is said about them.
	Prefix []*Node
	Items  *Node
	// Also are schemas that apply to the same value: the targets of references, and allOf. It
	// leaves out the targets of references that depend on how a validation got to them.
	Also []*Node
	// Unions are anyOf and oneOf.
	Unions []Union
	// The bounds of a number as written; empty where there is none.
	Minimum, Maximum, ExclusiveMinimum, ExclusiveMaximum string
	// Default takes the place of a member that is absent; nil where there is none. Nothing says that it fits the schema.
	Default json.RawMessage

	never    bool     // the schema is false
	typed    []string // the types that type names; nil where it is absent
	allowed  Types    // the same as a set
	checks   []check
	required []string // the names of Required in the order of the schema
	known    []string // the names of Properties, sorted
	patterns []patternedNode
	names    *Node // of the names of members
	// dependents are for objects that have a member of a name.
	dependents []dependent
	// closedList says that no elements may follow Prefix, which older drafts say of the array and not of its elements.
	closedList               bool
	unique                   bool
	contains                 *Node
	minContains, maxContains int // maxContains is negative where there is none
	// containsCounts says that elements that contains accepts count as evaluated.
	containsCounts                          bool
	not                                     *Node
	condition, then, otherwise              *Node
	unevaluatedProperties, unevaluatedItems *Node
	dynamic                                 []dynamicReference
	// within is the resource that the schema is part of. It is nil where that makes no difference to validations.
	within *resource
}

// Values returns the values that enum or const lists, as JSON, in the schema's order. It returns none if neither is
// there.
func (n *Node) Values() (values []json.RawMessage) {
	for _, c := range n.checks {
		switch c.keyword {
		case "enum":
			for _, element := range c.want.Elements() {
				values = append(values, json.RawMessage(element.Text()))
			}
		case "const":
			values = append(values, json.RawMessage(c.want.Text()))
		}
	}
	return values
}

// Union is a list of schemas of which a value must fit one.
type Union struct {
	// ExactlyOne says that it must not fit a second one.
	ExactlyOne bool
	Branches   []*Node
}

type patternedNode struct {
	pattern
	node *Node
}

// dependent is a condition on an object that has a member of a name: it has other members, too, or it fits a schema.
type dependent struct {
	name   string
	others []string
	node   *Node
}

// MemberPath returns the path, as in [Violation], of a member of the object at path.
func MemberPath(path, name string) string { return keypath.Key(path, name) }

// ElementPath returns the path, as in [Violation], of an element of the array at path.
func ElementPath(path string, index int) string { return keypath.Index(path, index) }

// TypesOf returns the types that a schema allows together with those in its Also and Unions, and keeps them in known. A
// nil schema allows all. For a schema that is inside itself it may return more.
func TypesOf(n *Node, known map[*Node]Types) Types {
	if n == nil {
		return AnyType
	}
	if types, ok := known[n]; ok {
		return types
	}
	known[n] = AnyType
	types := n.Types
	for _, also := range n.Also {
		types &= TypesOf(also, known)
	}
	for _, u := range n.Unions {
		types &= u.TypesOf(known)
	}
	known[n] = types
	return types
}

// TypesOf returns the types that the branches of a union allow, as the function does.
func (u Union) TypesOf(known map[*Node]Types) (types Types) {
	for _, branch := range u.Branches {
		types |= TypesOf(branch, known)
	}
	return types
}
