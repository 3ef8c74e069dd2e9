// Package hostfuncs defines the contract between guests and the host: a [Function] that a module imports, and the
// [Memory] through which guest and host exchange bytes. Each capability is a subpackage.
//
// The contract does not depend on the WebAssembly engine, and so neither does any capability. The engine adapts it.
//
// Requests to the network, calls of other tools and emissions fail with an [Error].
//
// The subpackages are for the runtime. Their APIs carry no compatibility promise.
package hostfuncs
