// Package engine runs WebAssembly modules: it compiles a module once per digest, gives
// every call a fresh instance with its own memory, and says how a call ended.
//
// It is the only package that imports wazero, and no exported signature here carries a
// wazero type. It knows nothing of manifests, permissions or WASI: host functions come
// in as [hostfuncs.Function] values and find their state in the call's context.
package engine
