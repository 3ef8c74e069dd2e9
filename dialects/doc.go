// Package dialects reads and writes the tools, calls and results of language models' APIs: a [Dialect]
// writes definitions and results, and reads responses, whole or as a stream of server-sent events
// ([Events]). Each dialect is a package below this one; package known has all of them.
//
// # What is preserved
//
// Arguments stay the model's own text: where a provider sends an object, its JSON is kept unchanged, so
// that numbers keep their digits. Arguments are validated when a call runs, so that the model is told.
// Empty lists are [], never null.
//
// # What is refused
//
// Responses are untrusted input. Reading one takes time in proportion to its size and memory within
// limits, such as [MaxDocument], and never panics. Every failure is an [*Error],
// worded for the sender of the document.
package dialects
