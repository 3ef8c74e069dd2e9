// Package runtime makes an invocable tool from a manifest and the operator's grants. Each call runs the tool's module
// in a fresh sandbox with limits on time, memory and output. The module has only the access that the manifest requests
// and a grant allows.
//
//	rt, err := runtime.New(ctx, runtime.Options{})
//	defer rt.Close(ctx)
//	manifest, err := manifests.Load("wasm-tools/calculator/tool.yaml")
//	calculator, err := rt.Load(ctx, manifest, manifests.Grants{})
//	outcome, err := calculator.Invoke(ctx, invocation)
//
// Invoke expects arguments that have been parsed, checked and filled in. Package executor
// does that for whole batches of calls.
//
// Everything in this package is safe for concurrent use. Files that also need the standard
// library's package runtime import it as goruntime.
package runtime
