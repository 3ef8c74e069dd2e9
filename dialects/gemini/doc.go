// Package gemini is the dialect of Google's generateContent and streamGenerateContent, of the
// Gemini API (v1beta) and of Vertex AI.
//
//   - Definitions are what a request has under "tools": one tool with functionDeclarations, whose
//     schemas stand under parametersJsonSchema. The provider holds the model to them by
//     toolConfig.functionCallingConfig.mode, for all tools at once, and not by definition, so
//     that Strict changes nothing.
//   - Responses are GenerateContentResponses, or an array of them, as streamGenerateContent sends
//     without alt=sse. Of several candidates the first is read.
//   - Results are parts with a functionResponse each. All of one turn belong into one content of
//     the role "user", in the order of the calls. Images are inlineData within it, which models
//     before Gemini 3 do not take.
//
// Calls without an id, as older models make them, get one from their position: "gemini-call-0".
// Such an id is never sent; the provider matches these by name and order, so that Results puts
// them in order.
//
// Models of Gemini 3 refuse a request in which their own call comes back without the
// thoughtSignature that stood beside it: of calls in parallel the first has one. It is the call's
// Signature, which Calls writes back. Where it is lost, or where the calls are another provider's,
// there is none. Signatures beside text are wanted back too, though nothing is refused without:
// send the response's content as it came. A stream passes them on as Data {"thought_signature"} of
// the pieces that they stood beside.
//
// Vertex AI streams arguments in pieces of its own (partialArgs), which are no JSON text. Such a
// call is passed on when it is whole, without tool_delta pieces before. One in which a response
// was cut, by the token limit say, is left out.
package gemini
