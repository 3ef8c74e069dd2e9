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
//
// # Design
//
// In wazero's WASI, directory mounts follow symbolic links out of the directory, read-only mounts
// allow truncation, a pipe in a mount hangs a call past its deadline, and the file table survives a
// reset. So this implementation is ours, although wazero's is well tested. Tests attack it through a
// real guest, and ABI.md has the result of WASI's conformance suite.
//
// Functions whose type differs between versions of WasmEdge are renamed in the import section when a
// module is rewritten, such as sock_accept/2, since a host module has one function for each name. We
// rejected refusing such programs with advice, which is safe and needs no code: a tool rarely needs the
// functions, and its program cannot always be built again. We also rejected sockets that a network
// permission allows, which would run more programs: URL, method and secret could not be checked.
//
// fd_fdstat_set_rights fails. The designers of preview 1 abandoned rights, and here the permission and
// the open mode decide what a descriptor can do. Success, which more programs expect, would promise a
// restriction that is not enforced. Descriptors still claim rights, since programs open a directory
// again with those that it claims, and learn from a file's whether they may write. A read-only
// directory claims all rights of a directory: a C library opens files without a missing right, and the
// program's writes would fail with "bad file descriptor" instead of a receipt.
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
