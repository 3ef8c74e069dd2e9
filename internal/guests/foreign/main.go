//go:build wasip1

// Command foreign is a program for other hosts: it uses files by WASI preview 0, whose module is wasi_unstable, and
// asks for a socket as programs for WasmEdge do. It prints the results as JSON.
package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"time"
	"unsafe"
)

type pointer = unsafe.Pointer

//go:wasmimport wasi_unstable path_open
func pathOpen(fd int32, follow uint32, path pointer, length uint32, oflags uint32, rights, inheriting uint64,
	fdflags uint32, opened pointer) uint32

//go:wasmimport wasi_unstable fd_seek
func fdSeek(fd int32, offset int64, whence uint32, position pointer) uint32

//go:wasmimport wasi_unstable fd_filestat_get
func fdFilestatGet(fd int32, stat pointer) uint32

//go:wasmimport wasi_unstable poll_oneoff
func pollOneoff(in, out pointer, count uint32, events pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_open
func sockOpen(family, kind uint32, opened pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_getaddrinfo
func sockGetaddrinfo(node pointer, nodeLength uint32, service pointer, serviceLength uint32, hints, results pointer,
	most uint32, count pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_connect
func sockConnect(fd int32, address pointer, port uint32) uint32

// In the two versions of WasmEdge's interface.
//
//go:wasmimport wasi_snapshot_preview1 sock_accept
func sockAcceptV1(fd int32, accepted pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_accept
func sockAccept(fd int32, flags uint32, accepted pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_getlocaladdr
func sockGetlocaladdrV1(fd int32, address, family, port pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_getlocaladdr
func sockGetlocaladdr(fd int32, address, port pointer) uint32

func main() {
	const unused = 0xaa
	var answer [16]byte
	path := []byte("a.txt")
	errnos := map[string]uint32{}
	report := map[string]any{"errnos": errnos}

	errnos["path_open"] = pathOpen(4, 1, pointer(&path[0]), uint32(len(path)), 0, 1<<1|1<<2|1<<5|1<<21, 0, 0,
		pointer(&answer))
	file := int32(binary.LittleEndian.Uint32(answer[:]))
	for name, at := range map[string]struct {
		offset int64
		whence uint32
	}{"set": {2, 2}, "end": {-1, 1}, "wrong": {0, 3}} {
		errnos["fd_seek "+name] = fdSeek(file, at.offset, at.whence, pointer(&answer))
		report[name] = binary.LittleEndian.Uint64(answer[:])
	}
	fdSeek(file, 3, 2, pointer(&answer))
	errnos["fd_seek cur"] = fdSeek(file, 1, 0, pointer(&answer))
	report["cur"] = binary.LittleEndian.Uint64(answer[:])

	var stat [64]byte
	for i := range stat {
		stat[i] = unused
	}
	errnos["fd_filestat_get"] = fdFilestatGet(file, pointer(&stat))
	report["type"], report["links"], report["size"] = stat[16], binary.LittleEndian.Uint32(stat[20:]),
		binary.LittleEndian.Uint64(stat[24:])
	report["modified"] = binary.LittleEndian.Uint64(stat[40:])
	report["behind"] = stat[56]

	var subscriptions [2 * 56]byte
	for i, wait := range []time.Duration{time.Hour, 20 * time.Millisecond} {
		s := subscriptions[i*56:]
		binary.LittleEndian.PutUint64(s, uint64(i)+1)
		binary.LittleEndian.PutUint64(s[16:], 77) // an identifier
		binary.LittleEndian.PutUint32(s[24:], 1)  // the monotonic clock
		binary.LittleEndian.PutUint64(s[32:], uint64(wait))
	}
	var events [2 * 32]byte
	began := time.Now()
	errnos["poll_oneoff"] = pollOneoff(pointer(&subscriptions), pointer(&events), 2, pointer(&answer))
	report["events"], report["event"] = binary.LittleEndian.Uint32(answer[:]), binary.LittleEndian.Uint64(events[:])
	report["slept"] = time.Since(began) >= 20*time.Millisecond

	host := []byte("example.com")
	errnos["sock_open"] = sockOpen(1, 2, pointer(&answer))
	errnos["sock_getaddrinfo"] = sockGetaddrinfo(pointer(&host[0]), uint32(len(host)), pointer(&host[0]), 0,
		pointer(&answer), pointer(&answer), 1, pointer(&answer))
	errnos["sock_connect"] = sockConnect(file, pointer(&answer), 80)
	errnos["sock_accept"], errnos["sock_accept V1"] = sockAccept(file, 0, pointer(&answer)),
		sockAcceptV1(99, pointer(&answer))
	errnos["sock_getlocaladdr"] = sockGetlocaladdr(file, pointer(&answer), pointer(&answer))
	errnos["sock_getlocaladdr V1"] = sockGetlocaladdrV1(file, pointer(&answer), pointer(&answer), pointer(&answer))

	_ = json.NewEncoder(os.Stdout).Encode(report)
	if len(os.Args) > 1 {
		println("connect: Operation not permitted")
		os.Exit(1)
	}
}
