//go:build wasip1

// Command recursivereactor exports the kernels that recurse, as reactor does the others.
package main

import "github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"

func main() {}

//go:wasmexport fib
func fib(size int32) uint64 { return kernels.Fib(size) }

//go:wasmexport ackermann
func ackermann(size int32) uint64 { return kernels.Ackermann(size) }

//go:wasmexport tree_walk
func treeWalk(size int32) uint64 { return kernels.TreeWalk(size) }

//go:wasmexport evaluator
func evaluator(size int32) uint64 { return kernels.Evaluator(size) }

//go:wasmexport sort
func sort(size int32) uint64 { return kernels.Sort(size) }

//go:wasmexport parser
func parser(size int32) uint64 { return kernels.Parser(size) }

//go:wasmexport mutual
func mutual(size int32) uint64 { return kernels.Mutual(size) }

//go:wasmexport table
func table(size int32) uint64 { return kernels.Table(size) }
