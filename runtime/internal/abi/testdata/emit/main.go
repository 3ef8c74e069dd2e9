// Command emit is a tool that says something, as a function value.
package main

import (
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

type tool struct {
	emit func(string) error
}

func main() {
	t := &tool{caisson.EmitText}
	print(t.emit(os.Args[0]))
}
