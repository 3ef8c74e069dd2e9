// Early is a guest that does something before it reads its input, so that tests can see
// whether a call gets to know what another one did there. Its argument says what.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

func main() {
	var before string
	switch what := os.Args[1]; what {
	case "file":
		content, err := os.ReadFile("/project/tenant.txt")
		before = string(content)
		if err != nil {
			before = err.Error()
		}
	case "random":
		before = fmt.Sprint(rand.Uint64())
	case "log":
		fmt.Fprintln(os.Stderr, "starting")
	default:
		before = what
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s %s", before, input)
}
