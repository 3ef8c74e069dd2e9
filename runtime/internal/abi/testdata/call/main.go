// Command call is a tool that calls another, as a function value.
package main

import (
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

type tool struct {
	call func(string, any) (*caisson.ToolResult, error)
}

func main() {
	t := &tool{caisson.CallTool}
	result, err := t.call(os.Args[0], nil)
	print(result, err)
}
