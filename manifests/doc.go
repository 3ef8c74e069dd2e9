// Package manifests reads tool manifests and operators' policies: strictly, with all
// problems of a file reported together, into typed values that later enforce what they
// say.
//
//	manifest, err := manifests.Load("wasm-tools/calculator/tool.yaml")
//	policy, err := manifests.LoadPolicy("caisson.yaml")
//	grants := policy.For(manifest.Name, manifest.File)
//
// A manifest asks; it never grants. A policy grants, and a tool gets what both say. Whether
// this version of the runtime can enforce what a manifest asks for is the runtime's to
// say, see runtime.Check.
//
// The package runs nothing, reaches no network, and opens no file but the one it is
// given. All its values are immutable once returned and safe for concurrent use.
package manifests
