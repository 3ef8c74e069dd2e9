// Package mcp is how the Model Context Protocol writes tools, calls and results, for both sides.
//
// A server offers tools with [New]'s Definitions; it reads tools/call requests with Response or
// Stream, and answers them with Results. A client, such as a host that takes in the tools of servers,
// reads what is offered with [Offered], writes requests with Calls, or one by one with [Request] for
// the revisions without batches, and reads each answer with [Answer], which does not take a server at
// its word. Answers is for a server whose own client answers calls: it takes that client's word for
// what came of them.
//
// The messages are those of the revisions 2024-11-05 to 2026-07-28, which differ little here:
// answers say resultType, which only the last asks for and the others pass over, and
// structuredContent is sent only where it is an object, as all but the last ask. Transport,
// handshake, capabilities and _meta are not here.
//
// # Ids
//
// An id of JSON-RPC is a number or a string, which must come back as it was. A call's ID is
// the number's text or the string's; a string that could be taken for a number, or for a string
// in quotes, is kept with its quotes.
//
// # Calls without arguments
//
// Absent arguments and null are empty text, which is an object without members to whoever parses
// arguments. Everything else is kept as the client wrote it, even if it is no object.
package mcp
