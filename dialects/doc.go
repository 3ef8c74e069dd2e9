// Package dialects says how language models' APIs write tools, the calls of a model and what
// came of them, whichever provider's API it is: a [Dialect] writes definitions and results and
// reads responses, whole or as a stream of server-sent events ([Events]). Each dialect is a
// package below this one; package known has them all.
//
// # What is kept
//
// Arguments stay the model's own text: where a provider sends an object, its JSON is taken as it
// is, so that numbers keep their digits. Whether they are valid is for whoever runs the call to
// say, to the model. Empty lists are [], never null.
//
// # What is refused
//
// Responses are input that somebody else wrote. Reading one takes time in proportion to its size
// and memory within the bounds of this package ([MaxDocument] and the others), and never panics.
// Every failure is an [*Error], worded for whoever sent the document.
package dialects
