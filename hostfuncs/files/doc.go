// Package files gives a call a view of the host's files: the directories granted to it, at the
// paths that its manifest requests.
//
//	outline, err := files.NewOutline(mounts, files.Limits{}) // once for all calls
//	view, err := store.Open(ctx, outline, values)
//	defer view.Close()
//	root := view.Preopens()[0].Dir
//	file, _, err := root.Open("project/a.txt", guestfiles.OpenOptions{Read: true})
//
// The package does not depend on WebAssembly or WASI. The runtime's WASI implementation uses it. Descriptions of files,
// and the files that a tool keeps in memory, are values of package guestfiles.
//
// # Guarantees
//
//   - No path leads out of a granted directory, whatever symbolic links it contains and however
//     the tree changes concurrently: os.Root resolves every path.
//   - A read-only directory is never modified.
//   - Only regular files and directories are opened, so opening never blocks and never reaches a
//     device.
//   - A directory stays within its quota and a call within its limits, whatever other calls do
//     concurrently, on Linux and macOS also those of other processes and other [Store] values. Sizes
//     are logical, so holes count.
//   - Every denial leaves a receipt ([tool.Denial]), and operations are listed
//     ([tool.HostCall]). No error, description, receipt or list contains a host path, inode or
//     device number.
//
// # Limitations
//
//   - If a file in the directory has a hard link outside, its content can be read and, below a
//     read-write mount, written. A guest cannot create such a link, since no operation reaches a
//     file outside.
//   - As os.Root documents, mount points below a granted directory are followed. Do not grant /proc, /sys, or
//     directories that contain bind mounts.
//   - A guest can move existing symbolic links in a read-write directory. It cannot create links
//     that climb, but an existing link that climbs may, once moved, lead elsewhere for other
//     programs.
//   - Quotas are independent if one granted directory is inside another.
//   - On Windows, and on file systems on which flock fails, each Store counts a quota separately, so several processes
//     can exceed it together. A warning is logged only if flock fails.
//   - A file without a name that calls of another Store have open counts only in that Store.
//   - A directory that cannot have extended attributes is measured before each change.
//   - A stopped process (SIGSTOP) that is changing a directory blocks changes by other processes until it continues or
//     is killed.
//   - On Windows, the space of a removed file is free only after the directory is measured again.
//   - A directory tree deeper than 128 levels is not measured and counts as full.
//
// The package builds for Linux, macOS and Windows, where os.Root uses handles rather than names.
//
// The package is for the runtime. Its API carries no compatibility promise.
package files
