// Package permission implements the values of permissions. The requests of manifests, the grants of policies and flags,
// denials, and the uses of guests are all parsed into these values, only here: two parsers of one text could disagree
// on its meaning.
//
// Each value is parsed from text and has one canonical form. String returns it, and it parses to the same value.
// Matches reports whether a value includes something that a guest names, Covers whether it includes all of another
// value, and Intersect returns what two values have in common. Zero values include nothing.
//
// Parse errors are of type [*Error] and match [ErrInvalid]. Texts may come from untrusted sources,
// and no function panics. All values are immutable and safe for concurrent use.
//
// # Design
//
// One parser for hosts and one for paths serve manifests, policies, flags, secrets and requests. We
// rejected a parser for each purpose, which could be exactly as strict as its purpose needs: they
// disagreed on non-ASCII case, the root's dot and brackets. A host in a permission may not end in the
// root's dot; a request's URL may, because programs get URLs from elsewhere, and the host is the same.
//
// A path or a host directory is parsed once, and the parsed value is the enforced one. An invalid text becomes a value
// that includes nothing, and loading a tool reports it. We rejected a constructor that returns an error for each path:
// it reports a mistake earlier, but a list of grants could not be written as a literal.
//
// [Rules.Decide] returns rules and denials separately, because "all of *.example.com without /admin" is
// not a rule: a denial takes away a whole grant or is checked again at each use. We rejected rules that
// contain exceptions, one value that needs no second check: each kind of permission would need its own
// difference, where such code goes wrong, and receipts name the denial by its line anyway. For files
// there is one rule for reading and one for writing, so a denial takes away whole rules. Package
// network matches denials of requests more loosely than grants, as lax servers read paths.
package permission
