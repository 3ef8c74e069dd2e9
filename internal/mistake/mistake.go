// Package mistake has the kinds of problems that a manifest or a policy can have.
package mistake

// Kind classifies problems.
type Kind string

// Kinds of problems.
const (
	Syntax       Kind = "syntax"        // not YAML or JSON, or a disallowed feature of them
	UnknownKey   Kind = "unknown_key"   // the key is not known
	DuplicateKey Kind = "duplicate_key" // a key or an element of a list is repeated
	Missing      Kind = "missing"       // a required key is absent
	WrongType    Kind = "wrong_type"    // for example, text instead of a number
	InvalidValue Kind = "invalid_value" // the right type, but not allowed
	OutOfRange   Kind = "out_of_range"  // too small or too large
	Conflict     Kind = "conflict"      // two parts of the document contradict each other
	// OtherDocument marks a text that is not a document of the wanted kind at all, such as a policy where a manifest is
	// wanted. Its path is schema if the document names its kind.
	OtherDocument Kind = "other_document"
	BadSchema     Kind = "schema" // a JSON Schema inside the manifest is wrong
	// NotEnforced marks well-formed requests that this version of the runtime cannot enforce. Only the runtime reports
	// it.
	NotEnforced Kind = "not_enforced"
	// NoEquivalent marks the parts of a manifest of Extism that Caisson does not support, or not by a manifest.
	NoEquivalent Kind = "no_equivalent"
)
