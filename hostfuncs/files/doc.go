// Package files gives one call its view of the host's files: the directories that
// were granted to it, under the paths that its manifest asks for.
//
//	view, err := store.Open(ctx, mounts, values, files.Limits{})
//	defer view.Close()
//	root := view.Preopens()[0].Dir
//	file, _, err := root.Open("project/a.txt", files.OpenOptions{Read: true})
//
// It knows nothing of WebAssembly or WASI; the runtime's WASI sits on it.
//
// # What it holds
//
//   - No path leads out of a granted directory, whatever symbolic links are in it and
//     however the tree changes meanwhile: every path is resolved by os.Root.
//   - A read-only directory does not change in a byte.
//   - Only regular files and directories are opened, so no open blocks and no device
//     is reached.
//   - A directory stays within its quota, a call within its limits, whatever other
//     calls of the same [Store] do meanwhile. Sizes count logically, so holes count.
//   - What is refused leaves a receipt ([tool.Denial]), and what is asked for is listed
//     ([tool.HostCall]). No error, description, receipt or list holds a host path, inode
//     or device number.
//
// # What it does not hold
//
//   - A hard link that was in the directory before is the file that it is: its
//     content can be read and, below a read-write mount, written, although the file
//     has another name outside. No guest can make one, since no operation reaches a
//     file outside.
//   - As os.Root documents, mount points below a granted directory are followed. Do
//     not grant /proc, /sys, or directories with others bound into them.
//   - A guest can move the symbolic links that it finds in a read-write directory.
//     It cannot make links that climb, but a link that was there before and does may
//     lead elsewhere, for other programs, once it was moved.
//   - Two quotas know nothing of each other where one granted directory lies inside
//     another, or where two processes write to one directory.
//   - On Windows, the room of a removed file is free only when the directory is
//     measured anew.
//   - The files of a directory that is deeper than 128 levels are not counted; it
//     counts as full.
//
// The package builds for Linux, macOS and Windows, where os.Root refers to handles
// and not to names.
//
// It is for the runtime: its API promises no compatibility.
package files
