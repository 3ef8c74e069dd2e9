// Package hostfuncs is the contract between a guest and what the host offers it: a
// [Function] that a module imports, and the [Memory] through which the two exchange
// bytes. Each capability is a package below this one.
//
// The contract is Caisson's own, so that no capability depends on the WebAssembly
// engine. The engine adapts it.
//
// The packages below this one are for the runtime: their APIs promise no compatibility.
package hostfuncs
