// Package registry maps names to tools. The first tool that registers a name keeps
// it: no later one can take its place, whatever its source. A look-alike tool that
// replaced another hijacked the other's calls in advisory GHSA-67q9-58vj-32qx.
//
//	r := registry.New()
//	err := r.Load(ctx, registry.Directory("wasm-tools"), open)
//	outcome, err := r.Invoke(ctx, tool.Invocation{Tool: "calculator", Arguments: arguments})
//
// # Names
//
// Names and aliases share one space. A name is held by the first tool that registers
// it. A real name beats an alias: an alias that was there first yields to it. Names
// that a reader would confuse with one that is held ([tool.LookAlike]) are kept out as
// well. A tool that is unavailable still holds its names.
//
// Nothing is dropped in silence: [Registry.Duplicates] reports all that was kept out,
// and a name that was kept out is never promoted later. A source with a tool whose name
// only looks like another tool's is not loaded at all.
//
// # Ownership
//
// A registry is a value; there is no global one. It owns the tools that were
// registered with it, and its Close closes those. What [Registry.Clone],
// [Registry.With] and [Registry.Without] return shares the tools of the original but
// owns only what it registered itself.
package registry
