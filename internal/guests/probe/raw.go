//go:build wasip1

package main

import (
	"fmt"
	"unsafe"

	"github.com/caisson-run/caisson/internal/guests/script"
)

// raw is one call of a WASI function. FD and FD2 below zero mean the descriptor that an
// earlier call opened: -1 is the first call's.
type raw struct {
	Call    string `json:"call"`
	FD      int32  `json:"fd"`
	Path    string `json:"path"`
	FD2     int32  `json:"fd2"`
	Path2   string `json:"path2"`
	Follow  uint32 `json:"follow"`
	OFlags  uint32 `json:"oflags"`
	Rights  uint64 `json:"rights"`
	FDFlags uint32 `json:"fdflags"`
	Size    uint64 `json:"size"`
	Offset  uint64 `json:"offset"`
	Text    string `json:"text"`
	Times   int    `json:"times"`
}

type answer struct {
	Errno uint32 `json:"errno"`
	FD    int32  `json:"fd,omitempty"`
	Text  string `json:"text,omitempty"`
	Count uint64 `json:"count,omitempty"`
	// Stat holds the device, the inode, the type, the links and the size.
	Stat []uint64 `json:"stat,omitempty"`
}

type pointer = unsafe.Pointer

//go:wasmimport wasi_snapshot_preview1 path_open
func pathOpen(fd int32, follow uint32, path pointer, length uint32, oflags uint32, rights, inheriting uint64,
	fdflags uint32, opened pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
func fdRead(fd int32, vectors pointer, count uint32, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_write
func fdWrite(fd int32, vectors pointer, count uint32, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pwrite
func fdPwrite(fd int32, vectors pointer, count uint32, offset uint64, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
func fdReaddir(fd int32, buffer pointer, length uint32, cookie uint64, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
func fdRenumber(fd, to int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_allocate
func fdAllocate(fd int32, offset, length uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
func fdFilestatSetSize(fd int32, size uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
func fdFilestatSetTimes(fd int32, accessed, modified uint64, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_get
func pathFilestatGet(fd int32, follow uint32, path pointer, length uint32, stat pointer) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
func pathFilestatSetTimes(fd int32, follow uint32, path pointer, length uint32, accessed, modified uint64,
	flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_create_directory
func pathCreateDirectory(fd int32, path pointer, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_remove_directory
func pathRemoveDirectory(fd int32, path pointer, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_unlink_file
func pathUnlinkFile(fd int32, path pointer, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_rename
func pathRename(fd int32, path pointer, length uint32, fd2 int32, path2 pointer, length2 uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_link
func pathLink(fd int32, follow uint32, path pointer, length uint32, fd2 int32, path2 pointer, length2 uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_symlink
func pathSymlink(target pointer, length uint32, fd int32, path pointer, length2 uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_readlink
func pathReadlink(fd int32, path pointer, length uint32, buffer pointer, size uint32, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
func pollOneoff(subscriptions, events pointer, count uint32, n pointer) uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(buffer pointer, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
func sockShutdown(fd int32, how uint32) uint32

type vector struct{ pointer, length uint32 }

func of(text string) (pointer, uint32) {
	bytes := append([]byte(text), 0) // never empty, so that it has an address
	return pointer(&bytes[0]), uint32(len(text))
}

func vectorOf(bytes []byte) pointer {
	v := &vector{uint32(uintptr(pointer(unsafe.SliceData(bytes)))), uint32(len(bytes))}
	return pointer(v)
}

func resolved(fd int32, earlier []answer) int32 {
	if fd < 0 && int(-fd) <= len(earlier) {
		return earlier[-fd-1].FD
	}
	return fd
}

func (r raw) run(earlier []answer) answer {
	fd, fd2 := resolved(r.FD, earlier), resolved(r.FD2, earlier)
	path, length := of(r.Path)
	path2, length2 := of(r.Path2)
	var a answer
	var n uint32
	switch r.Call {
	case "path_open":
		for range max(r.Times, 1) {
			a.Errno = pathOpen(fd, r.Follow, path, length, r.OFlags, r.Rights, r.Rights, r.FDFlags, pointer(&a.FD))
			if a.Errno != 0 {
				break
			}
			a.Count++
		}
	case "fd_read":
		buffer := make([]byte, max(r.Size, 1))
		a.Errno = fdRead(fd, vectorOf(buffer), 1, pointer(&n))
		a.Text, a.Count = string(buffer[:n]), uint64(n)
	case "fd_write":
		a.Errno = fdWrite(fd, vectorOf([]byte(r.Text)), 1, pointer(&n))
		a.Count = uint64(n)
	case "fd_pwrite":
		a.Errno = fdPwrite(fd, vectorOf([]byte(r.Text)), 1, r.Offset, pointer(&n))
		a.Count = uint64(n)
	case "fd_readdir":
		buffer := make([]byte, 4096)
		a.Errno = fdReaddir(fd, pointer(&buffer[0]), uint32(len(buffer)), 0, pointer(&n))
		a.Text, a.Count = string(buffer[:n]), uint64(n)
	case "fd_close":
		a.Errno = fdClose(fd)
	case "fd_renumber":
		a.Errno = fdRenumber(fd, fd2)
	case "fd_allocate":
		a.Errno = fdAllocate(fd, r.Offset, r.Size)
	case "fd_filestat_set_size":
		a.Errno = fdFilestatSetSize(fd, r.Size)
	case "fd_filestat_set_times":
		a.Errno = fdFilestatSetTimes(fd, 1, 1, 5)
	case "path_filestat_get":
		var stat [8]uint64
		a.Errno = pathFilestatGet(fd, r.Follow, path, length, pointer(&stat))
		a.Stat = []uint64{stat[0], stat[1], stat[2] & 0xff, stat[3], stat[4]}
	case "path_filestat_set_times":
		a.Errno = pathFilestatSetTimes(fd, r.Follow, path, length, 1, 1, 5)
	case "path_create_directory":
		a.Errno = pathCreateDirectory(fd, path, length)
	case "path_remove_directory":
		a.Errno = pathRemoveDirectory(fd, path, length)
	case "path_unlink_file":
		a.Errno = pathUnlinkFile(fd, path, length)
	case "path_rename":
		a.Errno = pathRename(fd, path, length, fd2, path2, length2)
	case "path_link":
		a.Errno = pathLink(fd, r.Follow, path, length, fd2, path2, length2)
	case "path_symlink":
		target, targetLength := of(r.Text)
		a.Errno = pathSymlink(target, targetLength, fd, path, length)
	case "path_readlink":
		buffer := make([]byte, 4096)
		a.Errno = pathReadlink(fd, path, length, pointer(&buffer[0]), uint32(len(buffer)), pointer(&n))
		a.Text = string(buffer[:n])
	case "poll_oneoff":
		// One relative clock, due after Size nanoseconds, Times times over.
		subscriptions := make([][6]uint64, max(r.Times, 1))
		events := make([][4]uint64, len(subscriptions))
		for i := range subscriptions {
			subscriptions[i] = [6]uint64{uint64(i), 0, 1, r.Size}
		}
		a.Errno = pollOneoff(pointer(&subscriptions[0]), pointer(&events[0]), uint32(len(subscriptions)), pointer(&n))
		a.Count = uint64(n)
	case "random_get":
		buffer := make([]byte, max(r.Size, 1))
		a.Errno = randomGet(pointer(&buffer[0]), uint32(r.Size))
		a.Text = fmt.Sprintf("%x", buffer[:min(16, len(buffer))])
	case "sock_shutdown":
		a.Errno = sockShutdown(fd, 0)
	default:
		script.Fail(fmt.Errorf("no call %q", r.Call))
	}
	return a
}
