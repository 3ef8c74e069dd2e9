// Command about is a tool that asks about its call, as a function value.
package main

import caisson "github.com/caisson-run/caisson/sdk/go"

type tool struct {
	about func() (*caisson.CallContext, error)
}

func main() {
	t := &tool{caisson.Context}
	about, err := t.about()
	print(about, err)
}
