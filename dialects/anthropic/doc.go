// Package anthropic is the dialect of Anthropic's Messages API, version 2023-06-01.
//
//   - Definitions are what a request has under "tools": {name, description, input_schema}.
//   - Responses are messages. Their tool_use blocks are calls; what the provider runs itself
//     (server_tool_use, mcp_tool_use and their results) is not.
//   - Results are tool_result blocks. All of one turn belong into one user message, before any
//     text.
//
// A call in which a message was cut, by the token limit say, is left out: the finish reason says
// that there may have been one. Since a call without arguments looks like one that was cut at
// its beginning, a stream passes it on only when it is known why the message stopped.
//
// Messages with thinking must go back to the provider as they came, with their signatures: keep
// the response itself for that. Where it is lost, or where the calls are another provider's,
// Calls writes tool_use blocks. A stream passes signatures on as Data of thinking pieces.
package anthropic
