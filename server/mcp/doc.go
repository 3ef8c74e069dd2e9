// Package mcp offers the tools of a [caisson.Host] to clients of the Model Context Protocol, over
// standard input and output ([Server.ServeLines]) and over HTTP ([Server.ServeHTTP]).
//
// It is the only package that knows the official SDK. Definitions and results are those of package
// dialects/mcp, so that this server, the command line and a program with a server of its own
// write the same. The registry decides which tool has a name before the SDK sees any.
//
// # Who calls
//
// Over HTTP, each request has an [auth.Caller], who is put into its context by whatever authenticates it;
// requests without one are refused. A session belongs to the caller who began it: to others it does not
// exist. Over lines, there is one session, which the program passes.
//
// # Sessions
//
// Requests of the revision 2026-07-28 or later, which say so in the header MCP-Protocol-Version, need no
// handshake and have no session: all of a caller share one session of the executor. Clients of earlier
// revisions begin a session with initialize, on the same path.
//
// # Questions
//
// Calls that need an approval, and tools that the client runs, are put to the user of a client that offers
// elicitation. For other clients, such calls fail and say why. See docs/mcp.md.
package mcp
