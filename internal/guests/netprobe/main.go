//go:build wasip1

// Command netprobe is the guest of the tests of the host modules caisson:*.
package main

import (
	"fmt"
	"os"

	"github.com/caisson-run/caisson/internal/guests/script"
)

type step struct {
	Do string `json:"do"` // net, netall, secret, raw, search, file or env
	// Requests are for net, which sends them one after another, and netall, which sends them
	// concurrently.
	Requests []request `json:"requests"`
	Name     string    `json:"name"`  // of the secret, the file to read, or the variable
	Calls    []raw     `json:"calls"` // for raw
	// Hidden is what search looks for: bytes in hexadecimal, each XORed with [mask], so that the
	// search itself does not put them into memory.
	Hidden string `json:"hidden"`
}

func main() { script.Main[step]() }

func (s step) Run() any {
	switch s.Do {
	case "net":
		return oneByOne(s.Requests)
	case "netall":
		return sideBySide(s.Requests)
	case "secret":
		return secret(s.Name)
	case "file":
		return script.ReadFile(s.Name)
	case "env":
		return os.Getenv(s.Name)
	case "raw":
		answers := make([]rawAnswer, len(s.Calls))
		for i, c := range s.Calls {
			answers[i] = c.run()
		}
		return answers
	case "search":
		count, err := search(s.Hidden)
		if err != nil {
			script.Fail(err)
		}
		return count
	}
	script.Fail(fmt.Errorf("cannot do %q", s.Do))
	return nil
}
