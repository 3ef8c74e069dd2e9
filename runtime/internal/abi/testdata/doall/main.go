// Command doall is a tool that sends requests side by side.
package main

import (
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

func main() {
	for _, result := range caisson.DoAll([]caisson.Request{{URL: os.Args[0]}}) {
		print(result.Err)
	}
}
