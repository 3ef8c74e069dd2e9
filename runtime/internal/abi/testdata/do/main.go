// Command do is a tool that sends one request.
package main

import (
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

func main() {
	response, err := caisson.Do(caisson.Request{URL: os.Args[0]})
	if err != nil {
		panic(err)
	}
	print(response.Status)
}
