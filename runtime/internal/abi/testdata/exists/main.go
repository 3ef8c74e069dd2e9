// Command exists is a tool that asks for a secret, as a function value.
package main

import (
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

type tool struct {
	exists func(string) (bool, error)
}

func main() {
	t := &tool{caisson.SecretExists}
	exists, err := t.exists(os.Args[0])
	print(exists, err)
}
