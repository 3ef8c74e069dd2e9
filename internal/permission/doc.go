// Package permission implements the values of permissions. What a manifest requests, what a policy
// or a flag grants, what is denied and what a guest uses are all parsed into these values, only
// here: two parsers of one text could disagree on what it allows.
//
// Each value is parsed from text and has one canonical form. String returns it, and it parses to
// the same value. Matches reports whether a value includes something that a guest names, Covers
// whether it includes all of another value, and Intersect returns what two values have in common.
// Zero values include nothing.
//
// Parse errors are of type [*Error] and match [ErrInvalid]. Texts may come from untrusted sources,
// and no function panics. All values are immutable and safe for concurrent use.
package permission
