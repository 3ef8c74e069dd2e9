// Package caisson gives a tool that runs inside Caisson access to what WASI does not provide: network requests, the
// existence of secrets, calls of other tools, streaming of progress and partial output, and the context of the current
// call. It depends only on the standard library, and a program imports only the host functions that it uses.
//
// The tool's manifest and the operator decide what a tool may do. Only streaming and the context of the call need no
// permission. A denial is an ordinary error, an [*Error] with the host's receipt, and so are limits and failures.
//
// A program that calls these functions before it reads its input cannot be resumed from a snapshot,
// so each call takes longer.
//
// Outside Caisson, every function fails with [ErrOutside], so a tool's logic can be compiled and
// tested like any other Go code. To test it, pass functions such as [Do] as values.
//
// The module has a single thread. Any goroutine may call these functions, but a call blocks all
// goroutines until the host responds.
package caisson
