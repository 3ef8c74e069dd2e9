// Package network provides the only access that a guest has to the network: HTTP requests to
// hosts that its manifest requests and the operator grants.
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
// The effective permission is the intersection of the manifest's requests and the grants, minus
// the denials. It is computed once, and the same values enforce it.
//
//   - A host is a name, an address, "*" for every host, or "*." followed by a name, for the names
//     below that one at any depth: *.example.com matches a.example.com and a.b.example.com, but
//     neither example.com nor evilexample.com.
//   - Names are compared in lower case, addresses by value. Non-ASCII names and addresses in
//     inet_aton forms are rejected. A name may end with the root's dot in a URL, but not in a
//     permission.
//   - A path prefix consists of whole segments: /v1 matches /v1 and everything below it, /v1/ only paths below it.
//     Paths are compared decoded. A path that a server could clean, decode again or cut into another path matches no
//     granted prefix except /, and every denied one.
//   - Methods are compared exactly; GET does not include HEAD. CONNECT and TRACE cannot be
//     granted.
//
// # Guarantees
//
//   - Every address is checked immediately before the connection to it is made, no matter how
//     and when it was resolved. By default only the public internet is reachable.
//     [manifests.NetworkGrant.Addresses] adds to it, for requests under that grant only, as does
//     a grant whose host is an address or localhost.
//   - Sessions do not share connections, and neither do requests that may go to different
//     addresses. Closing a session closes its connections.
//   - A server's bytes are read only while a request waits for them, and within limits. A
//     connection on which a server sends anything else is closed. No library writes to the
//     process's log.
//   - Each hop of a redirect is treated like the first request: it is parsed as strictly and checked again, and it gets
//     the secrets of the hop's origin. Another origin gets only these headers of the guest: Accept, Accept-Language,
//     Range, User-Agent and, if the body is sent, Content-Type.
//   - Environment variables, proxies, cookie jars and caches have no effect.
//   - Requests, bytes, redirects, headers, connections and time have limits by default.
//   - A guest sees no address that it did not name, and no value of a secret.
//   - Every denial leaves a receipt ([tool.Denial]).
//
// # Limitations
//
//   - Only HTTP/1.1 is supported. A server that speaks only HTTP/2 cannot be reached.
//   - The host's own public addresses are part of the public internet. Deny them if services of
//     the host listen on them without authentication.
//   - A server decides what a path means. One that ignores case or rewrites paths may serve
//     under an allowed prefix what the operator keeps under another.
//   - A server can deliberately reveal to a guest a secret that it was sent. A guest that
//     requests byte ranges can make a server split a secret before it is masked.
//
// The package is for the runtime. Its API carries no compatibility promise.
package network
