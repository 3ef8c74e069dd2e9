// Package network is the one way from a guest to the network: HTTP requests to the hosts
// that its manifest asks for and the operator grants.
//
//	client, err := network.New(network.Options{Tool: "fetch", Requests: requests, Grants: grants})
//	defer client.Close()
//	session := client.Open(network.Limits{})
//	defer session.Close()
//	answer, err := session.Do(ctx, network.Request{URL: "https://api.example.com/v1"})
//
// A [Client] belongs to a tool, a [Session] to one call.
//
// # What a permission means
//
// The effective permission is what a request of the manifest and a grant have in common,
// less what is denied. It is computed once, and the same values enforce it.
//
//   - A host is a name, an address, "*" for every host, or "*." and a name for the names
//     below that one, at any depth: *.example.com is a.example.com and a.b.example.com, but
//     neither example.com nor evilexample.com.
//   - Names are compared in lower case, addresses by value. Names that are not ASCII, and
//     addresses in the forms of inet_aton, are refused. The dot of the root may end the name in
//     a URL, and none in a permission.
//   - A path prefix is of whole segments: /v1 is /v1 and what is below it, /v1/ only what is
//     below. Paths are compared decoded. One that a server could clean, decode again or cut
//     into another path fits no prefix but /, and every denied one.
//   - Methods are compared as they are; GET does not bring HEAD. CONNECT and TRACE cannot be
//     granted.
//
// # What it holds
//
//   - Every address is checked when a connection to it is about to be made, whoever resolved
//     it and when. Without a grant that says so, only the public internet is reached:
//     [manifests.NetworkGrant.Addresses] add to it, for the requests of that very grant,
//     as does a grant whose host is an address or is localhost.
//   - Requests of two sessions share no connections, nor do those that may go to different
//     addresses. When a session is closed, so are its connections.
//   - What a server sends is read while a request waits for it, and within bounds. A connection
//     on which it sends anything else is closed. No library writes to the process's log.
//   - Each hop of a redirect is a request like the first: read as strictly, decided anew,
//     with the secrets of its own origin. Another origin gets none of the guest's headers but
//     Accept, Accept-Language, Range, User-Agent and, with the body, Content-Type.
//   - No environment variable, proxy, cookie jar or cache has a say.
//   - Requests, bytes, redirects, headers, connections and time are bounded, by default.
//   - What a guest reads holds no address that it did not name, and no value of a secret.
//   - What is refused leaves a receipt ([tool.Denial]).
//
// # What it does not hold
//
//   - HTTP/1.1 is spoken, and HTTP/2 is not: a server that speaks that alone is not reached.
//   - The host's own public addresses are a part of the public internet. Deny them where
//     services of the host listen on them without authentication.
//   - A server decides what a path means. One that ignores case, or rewrites paths, may serve
//     under an allowed prefix what the operator keeps under another.
//   - A server that means to tell a guest a secret that it was sent can. A guest that asks
//     for ranges of bytes can have a server cut a secret before it is masked.
//
// It is for the runtime: its API promises no compatibility.
package network
