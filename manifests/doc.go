// Package manifests reads tool manifests and operators' policies. Parsing is strict, and all
// problems of a file are reported together. The results are typed values.
//
//	manifest, err := manifests.Load("wasm-tools/calculator/tool.yaml")
//	policy, err := manifests.LoadPolicy("caisson.yaml")
//	grants := policy.For(manifest.Name, manifest.File)
//
// A manifest requests permissions and grants none. A policy grants them. A tool gets what both contain. Whether this
// version of the runtime can enforce what a manifest requests is decided by runtime.Check.
//
// The package runs nothing, makes no network connections and opens no file except the one it is
// given. All its values are immutable once returned and safe for concurrent use.
package manifests
