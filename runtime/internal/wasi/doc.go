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
package wasi

// ModuleName is the module from which guests import the functions.
const ModuleName = "wasi_snapshot_preview1"
