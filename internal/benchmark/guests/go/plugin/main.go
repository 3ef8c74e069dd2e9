//go:build wasip1

// Command plugin is the tool as an Extism plug-in, written with Extism's own PDK. It is a separate module, so that the
// PDK is not a dependency of Caisson.
package main

import (
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/handler"
	"github.com/extism/go-pdk"
)

// tool is in the program's memory, where a call would find what an earlier one left.
var tool handler.Handler

func main() {}

// call answers one call: 0, or 1 with an error set.
//
//go:wasmexport call
func call() int32 {
	output, err := tool.Handle(pdk.Input())
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Output(output)
	return 0
}
