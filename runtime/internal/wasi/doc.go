// Package wasi implements all of WASI preview 1 (wasi_snapshot_preview1). It keeps no state
// between calls: everything that belongs to a call is in a [System] in the call's context.
//
// It differs from other hosts where they let guests escape or hang. Guests can access files
// only through hostfuncs/files. A sleep ends the guest at the call's deadline. Output is
// limited. The first preopened directory is a virtual "/": a path that no permission covers
// reaches the host and is denied there with a receipt, instead of failing in the guest's C
// library.
//
// The specification is legacy/preview1/docs.md in the WASI repository. This package uses its
// names and layouts.
//
// Programs of other hosts find the functions that they import, too: those of preview 0
// (wasi_unstable, legacy/preview0 in that repository), which differ in three layouts, and the
// sockets with which WasmEdge extends preview 1, which are refused.
package wasi

// ModuleName is the module from which guests import the functions.
const ModuleName = "wasi_snapshot_preview1"

// draftName is the module from which programs of 2019 import them, in their first version.
const draftName = "wasi_unstable"

// IsModule reports whether a module is one of those from which guests import WASI functions.
func IsModule(name string) bool { return name == ModuleName || name == draftName }

// Prefixes returns the beginnings of the functions' names, with their modules: "module.name".
func Prefixes(names ...string) (prefixes []string) {
	for _, name := range names {
		prefixes = append(prefixes, ModuleName+"."+name, draftName+"."+name)
	}
	return prefixes
}
