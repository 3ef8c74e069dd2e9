//go:build wasip1

package main

import (
	"fmt"
	"strings"
	"unsafe"
)

//go:wasmimport caisson:stream@1 emit
func streamEmit(at, length uint32) uint64

//go:wasmimport caisson:io@1 read
func ioRead(at, length uint32) int32

// emit makes an emission as no SDK would, and returns the status and the length of the response.
func emit(request string) (status, length uint32) {
	result := streamEmit(uint32(uintptr(unsafe.Pointer(unsafe.StringData(request)))), uint32(len(request)))
	return uint32(result >> 32), uint32(result)
}

// raw makes an emission, and returns its status and its response.
func raw(request string) [2]string {
	status, _ := emit(request)
	var response strings.Builder
	buffer := make([]byte, 1000)
	for {
		n := ioRead(uint32(uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))), uint32(len(buffer)))
		if n <= 0 {
			return [2]string{fmt.Sprint(status), response.String()}
		}
		response.Write(buffer[:n])
	}
}

// flood makes an emission so many times, or without end, and counts the statuses.
func flood(request string, count int) map[uint32]int {
	statuses := map[uint32]int{}
	for i := 0; i != count; i++ {
		status, _ := emit(request)
		statuses[status]++
	}
	return statuses
}
