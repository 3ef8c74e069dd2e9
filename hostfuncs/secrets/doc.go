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
//   - What a guest wrote into a secret's place is replaced, never sent beside the secret.
//   - No error, receipt, decision or printed form of a [Set] shows a value.
//   - [Set.Mask] finds a value of at least [MinValue] bytes as it is; in hexadecimal, Base32
//     and Base64, also inside a larger encoded text, whatever came before it, and across
//     line breaks; in letters of either case; in UTF-16 and UTF-32; and where any of its bytes
//     are escaped as in URLs, JSON strings or HTML, also one of these inside another, up to
//     three deep.
//
// # What it does not hold
//
//   - A server that means to tell a guest the secret can: in reverse, in two halves, or in a
//     code of its own. Masking is for servers that echo what they got. Bind secrets to
//     origins that you trust with them.
//   - Values of less than [MinValue] bytes are refused, since masking would tell a guest
//     whether it guessed one. With [manifests.SecretGrant.Force] they are injected, and
//     responses that repeat them are not masked.
//   - Values stay in the host's memory until nothing refers to the set. Go cannot erase them:
//     the environment and the HTTP client keep copies of their own.
package secrets
