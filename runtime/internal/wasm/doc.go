// Package wasm reads, validates and rewrites WebAssembly binary modules without compiling them.
//
// [Inspect] returns the imports, exports and declarations of a module. It runs before the compiler, which trusts the
// counts in a module. Inspect checks every count against the number of remaining bytes before using it. So for any
// input it allocates at most a small multiple of the input's length. [Bounds] reject modules that are too large to be
// legitimate. A module that needs a disabled proposal is rejected with the proposal's name.
//
// [Validate] checks a module against all rules of validation, including function bodies, and
// against bounds that limit the compiler's time.
//
// [Rewrite] adds the code to a validated module that a host needs to stop it, count its instructions, bound its
// recursion, and restore an instance to an earlier state.
//
// The format is that of WebAssembly core 2.0, chapter 5, and validation that of chapter 3. Section
// numbers in this package refer to that specification.
package wasm
