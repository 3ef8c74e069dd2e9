package lint

import "github.com/caisson-run/caisson/dialects"

// Rules is what one dialect takes of a JSON Schema and of a tool's name, as data. The zero
// value takes everything. Check does not change it, so that it can be shared.
type Rules struct {
	// Name is what the names of tools may look like.
	Name NameRule
	// Property is what the names of an object's properties may look like.
	Property NameRule
	// Keywords says what becomes of keywords, by their names, in every schema within the schema.
	Keywords map[string]Keyword
	// Root is asked before Keywords for the outermost schema.
	Root map[string]Keyword
	// Others is for keywords that Keywords does not name. Its zero value takes them.
	Others Keyword
	// Booleans is for the schemas true and false; its Adapt gets the schema and no keyword.
	Booleans Keyword
	// ObjectRoot asks that the outermost schema says type: object and has properties. Its Adapt
	// is not used: both are added where they are missing.
	ObjectRoot Keyword
	// Closed asks that each object says additionalProperties: false. Its Adapt is not used: it is
	// said where the schema does not ask for free names. An object without properties, unless it
	// is the outermost, is taken to ask for them.
	Closed Keyword
	// AllRequired asks that each property of an object is required. Its Adapt is not used: all
	// become required, and those that were optional may be null.
	AllRequired Keyword
	// Flat asks that there is no $ref. Its Adapt is not used: what it refers to is put in its place.
	Flat Keyword
	// NotRecursive asks that no schema refers to itself. It is never adapted.
	NotRecursive Keyword
	// Limits are the bounds on a schema's size. What exceeds them is Refused, and never adapted.
	Limits Limits
}

// Keyword says what becomes of a keyword. The zero value means that it is taken.
type Keyword struct {
	// Severity is empty for what is taken.
	Severity dialects.Severity
	// Message says what the provider does: "the request is refused", "the keyword is ignored".
	Message string
	// Fix says what to write instead, or what Adapt does.
	Fix string
	// Taken says which schemas may have the keyword nevertheless; nil means none.
	Taken func(schema *Value, keyword string) bool
	// Adapt changes the schema so that the provider takes it; nil where that cannot be done.
	Adapt Adaptation
	// Inside says that the schemas in the keyword's value are looked at nevertheless, since
	// Adapt keeps them.
	Inside bool
	// First says that Adapt is done before the schema is looked at any further; what it brings
	// is then judged as the schema's own. It is for allOf.
	First bool
}

// Adaptation changes a schema that has the keyword. It returns false, and leaves the schema
// alone, where it cannot. The schemas within the schema have been adapted before, unless
// [Keyword.First] is set.
type Adaptation func(schema *Value, keyword string) bool

// Limits bounds a schema. Zero means that there is no bound.
type Limits struct {
	Depth      int // of objects within objects, where 1 is the outermost
	Properties int // of all objects together
	Enum       int // values of all enums together
	Text       int // bytes of all names of properties and definitions, and of all texts in enum and const
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
