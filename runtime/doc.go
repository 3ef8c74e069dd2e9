// Package runtime turns a manifest and the operator's grants into a tool that can be
// invoked: its module runs in a fresh sandbox for each call, bounded in time, memory
// and output, and reaches only what the manifest asks for and a grant gives.
//
//	rt, err := runtime.New(ctx, runtime.Options{})
//	defer rt.Close(ctx)
//	manifest, err := manifests.Load("wasm-tools/calculator/tool.yaml")
//	calculator, err := rt.Load(ctx, manifest, manifests.Grants{})
//	outcome, err := calculator.Invoke(ctx, invocation)
//
// Invoke takes arguments that are parsed, checked and filled in. Package executor does
// that, for whole batches of calls.
//
// Everything here is safe for concurrent use. Where a file needs the standard library's
// package of the same name too, it imports it as goruntime.
package runtime
