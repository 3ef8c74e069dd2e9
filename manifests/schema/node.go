package schema

import "encoding/json"

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
func TypeOf(text json.RawMessage) Types {
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
	if checkNumber(string(text)) == "" && parseDecimal(string(text)).isWhole() {
		return Integer
	}
	return Fraction
}

// Node is one of the schemas inside a schema: what it demands of the form of values, as
// far as that can be said without evaluating anything. A value that fits the schema meets
// all of it; the reverse does not hold, since there is more in schemas than a Node shows.
//
// Nodes are linked as their schemas refer to each other, which may be in circles.
type Node struct {
	pointer string
	// Types are those that type, enum and const allow together.
	Types Types
	// Properties are the schemas of members by name; Required names those that there
	// must be.
	Properties map[string]*Node
	Required   map[string]bool
	// Patterned says that members whose names match a pattern have schemas that are
	// not shown.
	Patterned bool
	// Additional is for the members that neither Properties nor a pattern names; nil
	// where nothing is said about them.
	Additional *Node
	// Prefix are the schemas of an array's first elements, and Items is that of the
	// others; nil where nothing is said about them.
	Prefix []*Node
	Items  *Node
	// Also are schemas that apply to the same value: the target of $ref, and allOf.
	Also []*Node
	// Unions are anyOf and oneOf.
	Unions []Union
	// The bounds of a number as they are written; empty where there is none.
	Minimum, Maximum, ExclusiveMinimum, ExclusiveMaximum string
	// Default is what stands in for a member that is absent; nil where there is none.
	// Nothing says that it fits the schema.
	Default json.RawMessage
}

// Union is a list of schemas of which a value must fit one.
type Union struct {
	// ExactlyOne says that it must not fit a second one.
	ExactlyOne bool
	Branches   []*Node
}

// Structure returns the schema's root as a new graph of nodes, which is the caller's.
func (s *Schema) Structure() *Node {
	r := nodeReader{draft: s.plan.draft, nodes: map[string]*Node{}, anchors: map[string]*Node{}}
	root := r.schema(s.plan.original, "")
	r.link()
	return root
}
