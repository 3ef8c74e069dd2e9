// Package schema checks JSON values against JSON Schemas that nobody vouches for.
//
// It knows drafts 2020-12, 2019-09, 7 and 6; 2020-12 where $schema does not say. Neither a
// hostile schema nor a hostile value can read a file, reach the network, panic, or cost more
// than a bounded amount of work:
//
//   - References work inside the schema only. They start with # and name a place
//     where a schema stands. A nested $id is refused, since it would change what they
//     mean. As there is one $id at most, $dynamicRef and $recursiveRef lead where $ref does.
//   - Schemas, values, names, numbers, patterns, the values of const and enum, and the
//     work of one validation have upper bounds, given by the constants below. The most
//     costly validation takes about half a second and a hundred megabytes.
//   - A validation ends with its context: it looks at that as it goes, also within the match
//     of one pattern, and is back in some tens of milliseconds on a machine of its own.
//   - Patterns use the syntax of Go's regexp package (RE2): no lookahead and no
//     backreferences.
//   - format and the content keywords are annotations, which is what drafts 2019-09
//     and 2020-12 make of them. They are not checked in any draft.
//   - Empty enumerations, keys that occur twice and misspelt keywords are refused
//     rather than ignored.
//
// [Compile] makes a tree of [Node]s and checks the schema against that of its draft, which is
// all that a library is used for. A value is checked against the tree up to the first thing
// that does not fit; one that does not is gone through again for all that is wrong with it.
//
// Messages are for the reader who can act on them: an author reads [Error], a language
// model [ViolationError]. Neither shows a path or an address of the host.
package schema
