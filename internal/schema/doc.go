// Package schema validates JSON values against JSON Schemas from untrusted sources.
//
// It supports drafts 2020-12, 2019-09, 7 and 6. The default without $schema is 2020-12. Neither a hostile schema nor a
// hostile value can read a file, reach the network, cause a panic, or consume unbounded time or memory:
//
//   - References must point to a subschema of the same document: by a JSON pointer, by an anchor, or
//     by the address that a subschema has from its $id. An address is only a name. Nothing is loaded,
//     not even the meta-schema of a draft.
//   - The sizes of schemas, values, names, numbers, patterns, and the values of const and enum are
//     limited by the constants below, and so is the work of one validation, and of those that share a
//     [Budget]. The most expensive validation takes about half a second and a hundred megabytes.
//   - A validation stops when its context is done. It checks the context regularly, even while it
//     matches a single pattern, and returns within some tens of milliseconds on an idle machine.
//   - Patterns use the syntax of Go's regexp package (RE2), without lookahead and backreferences.
//   - format and the content keywords are annotations, as in drafts 2019-09 and 2020-12. No draft
//     checks them.
//   - Empty enumerations, duplicate keys and misspelt keywords are errors.
//
// [Compile] builds a tree of [Node]s and validates the schema against the meta-schema of its
// draft; only that uses a library. A value is first validated up to its first violation. If there
// is one, a second pass collects all violations.
//
// Messages are for the reader that can act on them: [Error] for the author of a schema, [ViolationError] for a language
// model. Neither contains a path or an address of the host.
//
// # Design
//
// One compiled tree validates, explains, and tells the repair of arguments which values a schema requires, under one
// step counter that checks the context. We rejected validating with jsonschema/v5, which is complete and tested: it
// reads files named in $ref, panics on large numbers, and prepares the explanation of an error before there is one. It
// checks schemas against their meta-schemas, and is the reference: tests compare every verdict on random schemas and
// values of all drafts. Long texts are matched through a reader, the only way to interrupt Go's regexp. We rejected a
// limit on the size of a match, which is simpler but refuses megabytes that a simple pattern handles at once, and
// goroutines that are abandoned, which keep processors busy.
//
// Two schemas of each draft in the official test suite are refused although the library accepts them:
// they refer to the draft's meta-schema, which is not in the document. Providers of language models
// agree only on JSON pointers from the top, so [Flatten] replaces an $id by these. We rejected refusing
// each $id within a schema, which is simpler, but refuses schemas that generators write.
package schema
