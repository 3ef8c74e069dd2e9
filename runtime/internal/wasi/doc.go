// Package wasi is WASI preview 1 (wasi_snapshot_preview1), complete, and stateless
// between calls: everything that belongs to a call is in a [System], which travels in
// the call's context.
//
// It departs from other hosts where they let guests out or let them hang. Files are
// those of hostfuncs/files and nothing else; a sleep ends the guest when the call's
// deadline comes; output is capped; and the first preopened directory is a virtual "/",
// so that a path that no permission covers reaches the host and is refused there, with
// a receipt, rather than getting lost in the guest's C library.
//
// The specification is the WASI repository's legacy/preview1/docs.md, whose names and
// layouts are used throughout.
package wasi

// ModuleName is what guests import the functions from.
const ModuleName = "wasi_snapshot_preview1"
