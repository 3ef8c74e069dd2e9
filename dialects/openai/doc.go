// Package openai is the dialect of OpenAI's Chat Completions, which many other servers support too.
//
//   - Definitions are the elements of a request's "tools".
//   - Responses are chat completions, and streams of chat.completion.chunk. If there are several choices,
//     the one with index 0 is read; Remarks names the other ones that have calls.
//   - Results are messages with the role "tool". Their content is what a model reads of the result, as
//     text. Nothing but that text says that a call failed, so a failure is the JSON of the result, as in
//     the "result" of a record.
//   - Calls are the "tool_calls" of an assistant's message. Arguments are text there, so they are sent back
//     as the model wrote them, valid JSON or not.
//
// A response with calls has the finish reason "tool_calls", even if the model was forced to call a function
// and therefore says "stop". Refusals are read as content.
//
// If a response was truncated (finish reason "length", or any but "stop" and "tool_calls"), calls that may be
// half are marked as incomplete: those with arguments that are not JSON, and the last call if it is a custom
// tool's. Empty arguments could otherwise be mistaken for those of a tool without parameters. The provider
// wants a result for these calls, too. Those without a name are left out.
//
// Some servers omit ids and indices, use one index for all calls, send arguments as an object, repeat names
// in each piece, or send content as an array. All of that is read as intended. A call without an id gets
// one derived from its position: "call_0".
//
// The deprecated function_call is refused. It answers "functions", which Definitions does not offer.
package openai
