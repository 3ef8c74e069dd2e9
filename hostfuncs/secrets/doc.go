// Package secrets injects the operator's secrets into the requests that may carry them, and masks them in responses.
//
//	set, err := secrets.New(secrets.Options{
//		Tool: "web_search", Requests: requests, Grants: grants, LookupEnv: os.LookupEnv,
//	})
//	body, err = set.Inject(request, body)
//	answer = set.Mask(answer)
//
// A guest never holds a secret's value. It can check whether a name exists ([Set.Check]). The host
// adds the value to requests to the origin that the operator bound it to: scheme, host and port.
//
// # Guarantees
//
//   - A secret is sent only to its own origin. Callers call [Set.Inject] again for each hop.
//   - A secret replaces what a guest wrote in its place; the two are never sent together. It also
//     replaces headers and parameters of queries and forms whose names differ only in case and in
//     characters other than letters and digits, since many servers treat them as the same name.
//   - No error, receipt, decision or printed form of a [Set] shows a value.
//   - [Set.Mask] finds a value of at least 16 bytes in each of these forms: plain;
//     percent-encoded (RFC 3986), whichever of its bytes are escaped; as a JSON string (RFC 8259),
//     whichever of its characters are escaped; in Base64 with either alphabet, padded or not, also
//     at any position inside a larger encoded text; and in hexadecimal in either case. Between two
//     Base64 characters there may be spaces, tabs and line breaks, and between hexadecimal digits
//     also ":" and "-", up to 32 of them in a row.
//
// # Limitations
//
//   - A server can deliberately reveal the secret to a guest: reversed, in two halves, or in a private encoding.
//     Masking is for servers that echo their input. Bind secrets only to origins that you trust with them.
//   - Nested forms are not found, such as Base64 whose slashes are escaped in JSON, or a value that
//     is percent-encoded twice. Other encodings are not found either: Base32, HTML character
//     references, UTF-16, "+" for a space, or letters in another case, as in the name of a header.
//   - Escaped text is found only if it decodes to the value. If the value contains a "%" that stays
//     unescaped before two hexadecimal digits while other bytes are percent-encoded, the text
//     decodes to something else. The same goes for an unescaped backslash of the value in JSON, and
//     for a "%" or backslash directly before the value that forms an escape with its first
//     characters.
//   - In a JSON body, names are compared exactly, and the secret comes last: readers that ignore
//     case use the last member. A server that splits parameters at ";" as well as at "&" may find
//     another parameter with the secret's name inside a value.
//   - Values shorter than 16 bytes are rejected, since masking would tell a guest whether
//     it guessed one. With [manifests.SecretGrant.Force] they are injected, and responses that
//     repeat them are not masked.
//   - Values stay in the host's memory until nothing refers to the set. Go cannot erase them, and
//     the environment and the HTTP client keep their own copies.
//
// The package is for the runtime. Its API carries no compatibility promise.
package secrets
