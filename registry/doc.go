// Package registry maps names to tools. The first tool that registers a name keeps it, and no later tool can replace
// it, whatever its source. In advisory GHSA-67q9-58vj-32qx a look-alike tool replaced another and hijacked its calls.
//
//	r := registry.New()
//	err := r.Load(ctx, registry.Directory("wasm-tools", nil), open)
//	outcome, err := r.Invoke(ctx, tool.Invocation{Tool: "calculator", Arguments: arguments})
//
// # Names
//
// Names and aliases share one namespace. The first tool that registers a name holds it. A real name beats an alias,
// even one registered earlier. Names that people may confuse with a registered one are rejected as well, such as
// fiIe_read next to file_read. An unavailable tool still holds its names.
//
// Nothing is dropped silently: [Registry.Duplicates] reports every rejected name, and a rejected name is never promoted
// later. A broken manifest ([Registry.Broken]) still holds the names that it claims.
//
// # Ownership
//
// A registry is a value; there is no global one. It owns the tools registered with it, and its
// Close closes them. The results of [Registry.With] and [Registry.Without] share
// the tools of the original but own only the tools registered with them.
package registry
