// Endless is a guest that never terminates. Its first argument says what precedes the loop, and the second how the loop
// is written, or "once" for no loop, so that tests can see that it is the loop that never terminates. Each combination
// is a separate function: the compiler inlines the loops. The folders next to this file hold the same guest in other
// languages.
package main

import "os"

// The compiler must treat these as unknown, or it would simplify the loops.
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

func forLoop() {
	for {
		count += 10
	}
}

func whileLoop() {
	for always {
		count += 11
	}
}

func doLoop() {
	for ok := true; ok; ok = !never {
		count += 12
	}
}

// gotoLoop can be entered in two places.
func gotoLoop() {
	if always {
		goto second
	}
first:
	count += 13
	if never {
		goto first
	}
second:
	count += 14
	if count&1 != 0 {
		goto second
	}
	goto first
}

func returnLoop() {
	for {
		count += 15
		if never {
			return
		}
	}
}

func callingLoop() {
	for {
		step()
		count += 16
	}
}

func once() { count += 17 }

var loops = map[string]func(){
	"read for":         func() { readInput(); forLoop() },
	"read while":       func() { readInput(); whileLoop() },
	"read do":          func() { readInput(); doLoop() },
	"read goto":        func() { readInput(); gotoLoop() },
	"read return":      func() { readInput(); returnLoop() },
	"read calling":     func() { readInput(); callingLoop() },
	"read once":        func() { readInput(); once() },
	"call for":         func() { step(); forLoop() },
	"call while":       func() { step(); whileLoop() },
	"call do":          func() { step(); doLoop() },
	"call goto":        func() { step(); gotoLoop() },
	"call return":      func() { step(); returnLoop() },
	"call calling":     func() { step(); callingLoop() },
	"call once":        func() { step(); once() },
	"table for":        func() { inTable(); forLoop() },
	"table while":      func() { inTable(); whileLoop() },
	"table do":         func() { inTable(); doLoop() },
	"table goto":       func() { inTable(); gotoLoop() },
	"table return":     func() { inTable(); returnLoop() },
	"table calling":    func() { inTable(); callingLoop() },
	"table once":       func() { inTable(); once() },
	"callback for":     func() { with(forLoop) },
	"callback while":   func() { with(whileLoop) },
	"callback do":      func() { with(doLoop) },
	"callback goto":    func() { with(gotoLoop) },
	"callback return":  func() { with(returnLoop) },
	"callback calling": func() { with(callingLoop) },
	"callback once":    func() { with(once) },
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
