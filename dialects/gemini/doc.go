// Package gemini is the dialect of Google's generateContent and streamGenerateContent, of the Gemini API
// (v1beta) and of Vertex AI.
//
//   - Definitions are the "tools" of a request: one tool with functionDeclarations, whose schemas are
//     parametersJsonSchema. The provider enforces them for all tools at once, by
//     toolConfig.functionCallingConfig.mode, so Strict changes nothing.
//   - Responses are GenerateContentResponses, or an array of them, as streamGenerateContent sends without
//     alt=sse. A stream in either form without a finishReason broke off. If there are several
//     candidates, the first is read; Remarks names the other ones that have calls, and has a finishMessage, unusual
//     reasons to finish, and the reason why a prompt was blocked. Parts other than text and functionCall, such as
//     executableCode and toolCall, are ProviderItems.
//   - Results are parts with a functionResponse each. All results of one turn belong in one content with
//     the role "user", in the order of the calls. Images are inlineData within it, which models before
//     Gemini 3 do not accept.
//
// Calls without an id, as older models make them, get one derived from their position: "gemini-call-0". It
// is never sent; the provider matches such calls by name and order, so Results puts them in order.
//
// Gemini 3 models refuse a request if their own call comes back without its part's thoughtSignature; of
// parallel calls only the first has one. It is the call's Signature, which Calls writes back. It is absent if
// it was lost, or if the calls are another provider's. The provider also wants the signatures of text parts
// back, but does not require them: for that, send the response's content back unchanged. A stream passes them
// on as Data {"thought_signature"} of the pieces that they belong to.
//
// Vertex AI can stream arguments in a separate format (partialArgs), which is not JSON text. Such a call is
// passed on when it is complete, without tool_delta pieces. If the response is truncated within it, by the
// token limit for example, it is incomplete, and has the arguments that came until then.
//
// Members are read under both their names, finishReason and finish_reason: the provider's Python client
// writes the second. This package writes the first.
package gemini
