// Package responses is the dialect of OpenAI's Responses API.
//
//   - Definitions are the elements of a request's "tools": functions, custom tools and local_shell.
//   - Responses are response objects, and streams of the events response.created to
//     response.completed, response.incomplete or response.failed.
//   - Results are items function_call_output, custom_tool_call_output and local_shell_call_output, which
//     has the call's id as its own.
//     Their output is what a model reads of the result, as text. Nothing but that text says that a call
//     failed, so a failure is the JSON of the result, as in the "result" of a record. The output of a
//     result with images or files is an array of parts: the text, followed by the images and files. A
//     local shell's output is always text.
//   - Calls are items function_call, custom_tool_call and local_shell_call. Arguments are text there, so
//     they are sent back as the model wrote them, valid JSON or not; those of a local shell are its action,
//     without its type and without null members. A local shell's calls run the tool local_shell.
//   - Answers are items with outputs, from any client, and mcp_approval_response.
//
// The id of a call is the item's call_id, by which its output is matched. If a server omits it, it is the
// item's id, or else derived from the position among the calls: "call_0".
//
// The finish reason of a completed response is "tool_calls" if it has calls, and "stop" otherwise. Refusals
// are read as content. All other items but reasoning are ProviderItems: what the provider runs itself
// (web_search_call, mcp_call, …), requests for the approval of that (mcp_approval_request), and calls of
// tools that Definitions does not offer and the client would have to run (computer_call, shell_call, …).
// The last two are marked as waiting.
//
// If a response is incomplete, calls that may be half are marked as incomplete: those that the provider marks so or as
// in progress, those with arguments that did not end or are not JSON, and the last call if it is a custom tool's or a
// local shell's. Empty arguments could otherwise be mistaken for those of a tool without parameters. Those without a
// name are left out.
//
// A call's namespace, caller and async, if it has them, are its Origin, and go back with the call; the
// caller, and a function's namespace, also go back with its result.
//
// Reasoning models need their reasoning items back with the calls: continue from the response with
// previous_response_id, or keep the response's items for that.
//
// # Events of a batch
//
// [Events] stream a batch in the form in which the API streams a response, so that existing clients can
// follow it. Every event has the next sequence_number, from 0. Each call is an item: its output_index
// counts items in the order in which they were added, and its item_id is derived from the call's id. The
// type of the item depends on who runs the call:
//
//   - A call that the client runs is a function_call, custom_tool_call or local_shell_call, by the call's
//     type, with the checked arguments; a custom tool's input is as the model wrote it. The call_id is the
//     provider's, or our own if the provider's is ambiguous.
//   - A call that needs approval is an mcp_approval_request. Its id encodes the call and the fingerprint,
//     which Answers reads from the mcp_approval_response.
//   - A call that is run here is, by its tool's category, a web_search_call, file_search_call or
//     image_generation_call, and otherwise an mcp_call. The first three go from in_progress to searching
//     or generating with the call's first emission, or with its end if it succeeds, and then to
//     completed. Only mcp_call has an event for failure; in the other types the item's status reports it.
//   - A call whose output is shown to the user (behavior.final) is also a message, which starts with the
//     first text that the call emits and continues with the rest of the output. An output that does not
//     continue the emitted text is another part of the message.
//
// Partial images are partial_image events; a complete one is the item's result, unless the record has
// one. Links become sources of a web search, and so do the pages that its data lists (results, each with
// url). The API has no form for other emissions: they are left out,
// and so are hidden calls, calls that tools made, and outputs that clients have submitted.
//
// A batch that pauses ends its response with response.completed, as the API ends one with calls for the
// client. A resumed batch is another response, which may name the previous one.
//
// A response repeats its items at the end. With large images it can be longer than Stream reads.
//
// # Design
//
// A call of ours is an mcp_call, the API's item for calls that the server makes of tools it does not
// know. Clients show its name, arguments, output and error without knowing about us, and do not run it.
// Tools whose manifest has the category web_search, file_search or image_generation use those items
// instead, because clients display them better. We rejected function_call items, which every client
// knows: a client would take them for its own to run.
package responses
