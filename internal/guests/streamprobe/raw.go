//go:build wasip1

package main

import (
	"fmt"
	"runtime"

	"github.com/caisson-run/caisson/internal/guests/script"
)

//go:wasmimport caisson:stream@1 emit
func streamEmit(at, length uint32) uint64

// emit makes an emission that no SDK would make, and returns the status.
func emit(request string) (status uint32) {
	bytes := []byte(request)
	defer runtime.KeepAlive(bytes)
	return uint32(streamEmit(script.Span(bytes)) >> 32)
}

// raw makes an emission, and returns its status and its response.
func raw(request string) [2]string {
	status := emit(request)
	return [2]string{fmt.Sprint(status), string(script.Response())}
}

// flood repeats an emission, forever if count is negative, and counts the statuses.
func flood(request string, count int) map[uint32]int {
	statuses := map[uint32]int{}
	for i := 0; i != count; i++ {
		statuses[emit(request)]++
	}
	return statuses
}
