//go:build wasip1

// Command untunedreactor exports the kernels that metering was not tuned on, as reactor does
// the others.
package main

import "github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"

func main() {}

//go:wasmexport lz77
func lz77(size int32) uint64 { return kernels.LZ77(size) }

//go:wasmexport regex
func regex(size int32) uint64 { return kernels.Regex(size) }

//go:wasmexport interpreter
func interpreter(size int32) uint64 { return kernels.Interpreter(size) }

//go:wasmexport expression
func expression(size int32) uint64 { return kernels.Expression(size) }
