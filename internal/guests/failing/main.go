//go:build wasip1

// Command failing looks for a file before it reads its arguments, as interpreters do, and then
// fails as its arguments say.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	open("/pyvenv.cfg")
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	var arguments struct {
		Open, Print, Log string
		Code             int
	}
	if err := json.Unmarshal(input, &arguments); err != nil {
		panic(err)
	}
	if arguments.Open != "" {
		open(arguments.Open)
	}
	fmt.Print(arguments.Print)
	fmt.Fprint(os.Stderr, arguments.Log)
	os.Exit(arguments.Code)
}

// open opens a file that need not be there.
func open(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Close()
	}
}
