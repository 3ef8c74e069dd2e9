// Package openai is the dialect of OpenAI's Chat Completions, which many other servers speak too.
//
//   - Definitions are the elements of a request's "tools".
//   - Responses are chat completions, and streams of chat.completion.chunk. Of several choices
//     the one with index 0 is read.
//   - Results are messages with the role "tool", of which the content is the JSON of the result,
//     as in the "result" of a record.
//   - Calls are the "tool_calls" of an assistant's message. Arguments are text there, so that
//     they go back as the model wrote them, JSON or not.
//
// A model that was made to call a certain function says "stop" when it has; the finish reason of
// a response that asks for calls is "tool_calls" all the same. Refusals are read as content.
//
// Where a response was cut (finish reason "length", or any but "stop" and "tool_calls"), calls
// that did not come whole are left out: those with arguments that are not JSON, and a custom
// tool's if it is the last. Empty arguments would otherwise pass for those of a tool without any.
//
// Some servers leave out ids and indices, use one index for all calls, send arguments as an
// object, repeat names in each piece, or send an array as content. All of that is read as it is
// meant. A call without an id gets one made from its position: "call_0".
//
// The deprecated function_call is refused. It answers "functions", which Definitions does not offer.
package openai
