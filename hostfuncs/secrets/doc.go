// Package secrets puts the operator's secrets into the requests that may carry them, and
// takes them out of what comes back.
//
//	set, err := secrets.New(secrets.Options{Tool: "web_search", Requests: requests, Grants: grants, LookupEnv: os.LookupEnv})
//	body, err = set.Inject(request, body)
//	answer = set.Mask(answer)
//
// A guest never holds a secret's value. It asks whether a name exists ([Set.Check]), and
// the host adds the value to requests that go to the origin to which the operator bound
// it: scheme, host and port, all three.
//
// # What it holds
//
//   - A secret goes to its own origin alone. Whoever sends a request asks anew for each hop.
//   - What a guest wrote into a secret's place is replaced, never sent beside the secret; so are
//     headers, and parameters of queries and forms, whose names differ in case and in characters
//     other than letters and digits alone, since many servers take them for one.
//   - No error, receipt, decision or printed form of a [Set] shows a value.
//   - [Set.Mask] finds a value of at least [MinValue] bytes in these forms, one at a time: as it
//     is; percent-encoded (RFC 3986), whichever of its bytes are escaped; with the escapes of
//     JSON's strings (RFC 8259), whichever of its characters are escaped; in Base64 of either
//     alphabet, padded or not, also inside a larger encoded text, whatever comes before it; and in
//     hexadecimal of either case. Between two characters of Base64 there may be spaces, tabs and
//     line breaks, of hexadecimal also ":" and "-", up to [MaxBetween] of them in a row.
//
// # What it does not hold
//
//   - A server that means to tell a guest the secret can: in reverse, in two halves, or in a
//     code of its own. Masking is for servers that echo what they got. Bind secrets to
//     origins that you trust with them.
//   - A form inside another is not looked for, such as Base64 whose slashes are escaped in JSON,
//     or a value that is percent-encoded twice. Nor is any other code: Base32, the character
//     references of HTML, UTF-16, "+" for a space, or letters in another case, as in the name of a
//     header.
//   - What is escaped is found where it decodes to the value. A "%" of the value's own that stands
//     unescaped before two hexadecimal digits, while other bytes are percent-encoded, decodes to
//     something else; so does a backslash of its own in JSON, and a "%" or backslash right in front
//     of a value that makes an escape of its first characters.
//   - In a JSON body, names are compared as they are, and the secret comes last: readers that
//     ignore case take the last member. A server that parts parameters at ";" as well as at "&"
//     may find another one with the secret's name inside a value.
//   - Values of less than [MinValue] bytes are refused, since masking would tell a guest
//     whether it guessed one. With [manifests.SecretGrant.Force] they are injected, and
//     responses that repeat them are not masked.
//   - Values stay in the host's memory until nothing refers to the set. Go cannot erase them:
//     the environment and the HTTP client keep copies of their own.
//
// It is for the runtime: its API promises no compatibility.
package secrets
