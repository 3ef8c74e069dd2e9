// Package wasm reads WebAssembly binary modules without compiling them.
//
// [Inspect] says what a module imports, exports and declares. It stands in front of the
// compiler, which trusts the counts in a module: no count is believed here before it was
// held against the bytes that are left, so whatever the input, Inspect allocates at most
// a small multiple of its length. What is too large to be meant well is refused by
// [Bounds], and what needs a proposal that is switched off is refused by the proposal's
// name.
//
// The format is that of WebAssembly core 2.0, chapter 5; section numbers in this package
// are of that specification. Inspect reads; it does not validate function bodies
// (chapter 3), which is the compiler's task.
package wasm
