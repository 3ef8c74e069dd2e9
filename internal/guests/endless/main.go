// Endless is a guest that never ends. Its first argument says what stands before the loop, the
// second one how the loop is written, or "once" for none, so that tests can see that it is the
// loop that does not end. Each loop stands in a function of its own, behind what precedes it.
// The folders beside this file hold the same guest in other languages.
package main

import "os"

// The compiler knows nothing of these, so that no loop becomes another one.
var (
	count         uint32
	never, always = false, true
	inTable       = step
)

//go:noinline
func step() { count++ }

//go:noinline
func readInput() {
	var input [99]byte
	n, _ := os.Stdin.Read(input[:])
	count += uint32(n)
}

//go:noinline
func with(callback func()) {
	count += 2
	callback()
	count += 3
}

var loops = map[string]func(){
	"read for":         readFor,
	"read while":       readWhile,
	"read do":          readDo,
	"read goto":        readGoto,
	"read return":      readReturn,
	"read calling":     readCalling,
	"read once":        readOnce,
	"call for":         callFor,
	"call while":       callWhile,
	"call do":          callDo,
	"call goto":        callGoto,
	"call return":      callReturn,
	"call calling":     callCalling,
	"call once":        callOnce,
	"table for":        tableFor,
	"table while":      tableWhile,
	"table do":         tableDo,
	"table goto":       tableGoto,
	"table return":     tableReturn,
	"table calling":    tableCalling,
	"table once":       tableOnce,
	"callback for":     func() { with(calledFor) },
	"callback while":   func() { with(calledWhile) },
	"callback do":      func() { with(calledDo) },
	"callback goto":    func() { with(calledGoto) },
	"callback return":  func() { with(calledReturn) },
	"callback calling": func() { with(calledCalling) },
	"callback once":    func() { with(calledOnce) },
}

func main() {
	if len(os.Args) != 3 {
		os.Exit(2)
	}
	run, found := loops[os.Args[1]+" "+os.Args[2]]
	if !found {
		os.Exit(2)
	}
	run()
}
