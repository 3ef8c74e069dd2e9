// Package caisson lets a tool that runs inside Caisson ask its host for what WASI has no
// words for: requests over the network, whether a secret is there, calls of other tools, showing
// something before the call has ended, and what the call is about. It needs nothing but
// the standard library, and a program imports from the host only what it uses of it.
//
// What a tool may do is decided by its manifest and by its operator; only what it shows and what it
// asks about its own call needs nobody's permission. A refusal is an ordinary error, an [*Error] with the host's receipt; so are limits and failures.
//
// A program that calls these functions before it reads its input is started anew for each
// call, which takes longer.
//
// Outside Caisson every function fails with [ErrOutside], so that a tool's logic can be
// compiled and tested like any Go code: let it take a function such as [Do] as a value.
//
// The functions belong to the module's one thread. Goroutines may call them; a call holds up
// all of them until the host has answered.
package caisson
