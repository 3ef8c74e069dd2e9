// Package mcp is the dialect of the Model Context Protocol, for both sides.
//
// A server offers tools with [New]'s Definitions, reads tools/call requests with Response or Stream, and
// answers them with Results. A client, such as a host that uses the tools of servers, reads the offered
// tools with [Offered], writes requests with Calls, or with [Request] for the revisions without batches,
// and reads each answer with [Answer], which does not trust the server. Answers is for a server whose own
// client runs calls: it trusts that client's results.
//
// The messages are those of the revisions 2024-11-05 to 2026-07-28, which differ little here: answers have
// a resultType, which only the last revision requires and the earlier ones ignore, and structuredContent is only
// sent if it is an object, as all but the last require. Transport, handshake, capabilities and _meta are
// not handled here.
//
// # Messages
//
// Documents and events hold one message, a batch of them, or several one after another, as the stdio transport has them
// on lines. Messages that are not tools/call requests are ProviderItems, by their method: nothing here answers a ping.
// Requests among them are marked as waiting.
//
// # Ids
//
// An id of JSON-RPC is a number or a string, which must come back unchanged. A call's ID is the text of
// the number or of the string; a string that could be mistaken for a number, or for a quoted string, keeps
// its quotes.
//
// # Calls without arguments
//
// Absent arguments and null become the empty text, which parses as an empty object. Everything else stays
// as the client wrote it, even if it is not an object.
package mcp
