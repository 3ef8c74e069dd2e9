// Package schema checks JSON values against JSON Schemas that nobody vouches for.
//
// It wraps a validator (drafts 2020-12, 2019-09, 7 and 6; 2020-12 where $schema does
// not say) so that neither a hostile schema nor a hostile value can read a file, reach
// the network, panic, or cost more than a bounded amount of work:
//
//   - References work inside the schema only. They start with # and name a place
//     where a schema stands. A nested $id is refused, since it would change what they
//     mean.
//   - Schemas, values, names, numbers, patterns, the values of const and enum, and the
//     work of one validation have upper bounds, given by the constants below. The most
//     costly validation takes about half a second and a hundred megabytes.
//   - A validation ends with its context: it looks at that as it goes, also within the match
//     of one pattern, and is back in some tens of milliseconds on a machine of its own. What
//     it cannot look from has bounds: values with objects of more than 65,536 members or lists
//     of more than 262,144 elements pass by the direct way alone, see the next point, and
//     patterns of names are matched with about a million steps for each object. Large schemas
//     have one validator, for which validations wait.
//   - The validator applies schemas and resolves references. The keywords that look at
//     a value only are checked here, where they are paid for. A value that fits a
//     schema without references and alternatives is accepted without the validator, by
//     the same checks at the same charge; every refusal is the validator's.
//   - Patterns use the syntax of Go's regexp package (RE2): no lookahead and no
//     backreferences.
//   - format and the content keywords are annotations, which is what drafts 2019-09
//     and 2020-12 make of them. They are not checked in any draft.
//   - Empty enumerations, keys that stand twice and misspelt keywords are refused
//     rather than ignored.
//
// Messages are for the reader who can act on them: an author reads [Error], a language
// model [ViolationError]. Neither shows a path or an address of the host.
package schema
