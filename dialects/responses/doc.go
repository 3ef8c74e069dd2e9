// Package responses is the dialect of OpenAI's Responses API.
//
//   - Definitions are the elements of a request's "tools".
//   - Responses are response objects, and streams of the events response.created to
//     response.completed, response.incomplete or response.failed.
//   - Results are items function_call_output and custom_tool_call_output. Their output is the JSON
//     of the result, as in the "result" of a record. A result with images or files has an array of
//     parts: that JSON, in which their data is left out, and behind it the images and files.
//   - Calls are items function_call and custom_tool_call. Arguments are text there, so that they
//     go back as the model wrote them, JSON or not.
//
// The id of a call is the item's call_id, by which its output is matched. Where a server leaves
// it out, it is the item's id, or else made from the position among the calls: "call_0".
//
// The finish reason of a completed response is "tool_calls" if it asks for calls, or else "stop".
// Refusals are read as content. What the provider runs itself (web_search_call, mcp_call, …) is no
// call; what it would have the client run (computer_call, shell_call, …) Definitions does not offer.
//
// Where a response is incomplete, calls that did not come whole are left out: those that the
// provider marks so, those with arguments that are not JSON, and a custom tool's if it is the
// last. Empty arguments would otherwise pass for those of a tool without any.
//
// A model that reasons wants its reasoning items back with the calls: continue from the response
// with previous_response_id, or keep the response's items for that.
package responses
