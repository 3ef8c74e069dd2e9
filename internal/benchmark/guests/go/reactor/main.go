//go:build wasip1

// Command reactor exports the kernels under the names that the C and Rust modules give
// them. It is built with -buildmode=c-shared.
package main

import "github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"

func main() {}

//go:wasmexport spin
func spin(size int32) uint64 { return kernels.Spin(size) }

//go:wasmexport sha256
func sha256(size int32) uint64 { return kernels.SHA256(size) }

//go:wasmexport crc32
func crc32(size int32) uint64 { return kernels.CRC32(size) }

//go:wasmexport matrix
func matrix(size int32) uint64 { return kernels.Matrix(size) }

//go:wasmexport nbody
func nbody(size int32) uint64 { return kernels.NBody(size) }

//go:wasmexport sieve
func sieve(size int32) uint64 { return kernels.Sieve(size) }

//go:wasmexport fannkuch
func fannkuch(size int32) uint64 { return kernels.Fannkuch(size) }

//go:wasmexport quicksort
func quicksort(size int32) uint64 { return kernels.Quicksort(size) }

//go:wasmexport json
func json(size int32) uint64 { return kernels.JSON(size) }

//go:wasmexport hash_map
func hashMap(size int32) uint64 { return kernels.HashMap(size) }

//go:wasmexport mandelbrot
func mandelbrot(size int32) uint64 { return kernels.Mandelbrot(size) }

//go:wasmexport levenshtein
func levenshtein(size int32) uint64 { return kernels.Levenshtein(size) }
