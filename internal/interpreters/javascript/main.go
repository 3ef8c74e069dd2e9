// Javascript is a guest that runs the program which is its argument, in an interpreter.
package main

import (
	"fmt"
	"os"

	"github.com/dop251/goja"
)

func main() {
	value, err := goja.New().RunString(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(value)
}
