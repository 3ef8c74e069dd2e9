// Package abi is what guests can ask of the host beside WASI: the modules caisson:*, each of
// one version, which is part of its name. It is stateless between calls: everything that
// belongs to a call is in a [Session], which travels in the call's context.
//
// A function takes a request, which is JSON, and some take a body beside it. It returns a
// status and the length of a response, which the host holds until the guest calls the next
// function of these modules; caisson:io@1.read copies it into the guest's memory, piece by
// piece. Whatever the guest gets wrong, and whatever it is refused, is a status that it can
// read, and never ends it.
package abi
