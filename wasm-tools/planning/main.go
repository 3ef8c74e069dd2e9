// Command planning implements thinking and todo_write. Its command-line argument selects the tool.
//
// Both return the model's own arguments, checked and in order: nothing is kept between calls.
package main

import (
	"errors"
	"os"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "thinking":
			call.Main(think)
			return
		case "todo_write":
			call.Main(plan)
			return
		}
	}
	call.Main(func(map[string]any) (call.Result, error) {
		return call.Result{}, errors.New("want one argument: thinking or todo_write")
	})
}
