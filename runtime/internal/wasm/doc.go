// Package wasm reads and validates WebAssembly binary modules without compiling them.
//
// [Inspect] says what a module imports, exports and declares. It stands in front of the
// compiler, which trusts the counts in a module: no count is believed here before it was
// held against the bytes that are left, so whatever the input, Inspect allocates at most
// a small multiple of its length. What is too large to be meant well is refused by
// [Bounds], and what needs a proposal that is switched off is refused by the proposal's
// name.
//
// [Validate] holds a module to all rules of validation, function bodies included, and to
// the bounds that keep a compiler's time in check.
//
// [Rewrite] adds to a validated module what lets a host stop it, count its instructions and
// bound its recursion, and put an instance back to an earlier state.
//
// The format is that of WebAssembly core 2.0, chapter 5, and validation that of chapter 3;
// section numbers in this package are of that specification.
package wasm
