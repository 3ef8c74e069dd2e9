// Package abi implements the host modules caisson:*, which guests can import in addition to WASI.
// The version of each module is part of its name. The package keeps no state between calls:
// everything that belongs to a call is in a [Session] in the call's context.
//
// A function takes a request in JSON, and sometimes also a body. It returns a status and the
// length of a response. The host holds the response until the guest calls the next of these
// functions; caisson:io@1.read copies it into the guest's memory in pieces. Invalid and denied
// requests return a status that the guest can read, and never end the guest.
package abi
