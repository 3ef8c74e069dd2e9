// Package anthropic is the dialect of Anthropic's Messages API, version 2023-06-01.
//
//   - Definitions are the "tools" of a request: {name, description, input_schema}.
//   - Responses are messages. Their tool_use blocks are calls; what the provider runs itself
//     (server_tool_use, mcp_tool_use and their results) are ProviderItems.
//   - Results are tool_result blocks. All results of one turn belong in one user message, before any text.
//
// A call in which a message was truncated, by the token limit for example, is marked as incomplete. A call
// without arguments looks like one that was truncated at its beginning, so a stream passes it on only when it
// is known why the message stopped.
//
// A call's caller and toolset_name, if it has them, are its Origin. Both go back with the call, and
// toolset_name also with its result.
//
// Messages with thinking must be sent back to the provider unchanged, with their signatures: keep the
// response itself for that. If it is lost, or if the calls are another provider's, Calls writes tool_use
// blocks. A stream passes signatures on as Data of thinking pieces.
package anthropic
