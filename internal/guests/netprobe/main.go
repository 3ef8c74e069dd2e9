//go:build wasip1

// Command netprobe is the guest of the tests of caisson:* modules: it does what its input
// says, step by step, and prints what came of each.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// step is one thing to do.
type step struct {
	Do string `json:"do"` // net, netall, secret, raw, search, file or env
	// Requests are for net, which sends one after the other, and netall, which sends them
	// side by side.
	Requests []request `json:"requests"`
	Name     string    `json:"name"`  // of the secret, the file to read, or the variable
	Calls    []raw     `json:"calls"` // for raw
	// Hidden is what search looks for: hex of bytes with [mask] over each, so that what is
	// looked for is not in the memory because of the search.
	Hidden string `json:"hidden"`
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var todo struct {
		Steps []step `json:"steps"`
	}
	if err := json.Unmarshal(input, &todo); err != nil {
		fail(err)
	}
	done := make([]any, len(todo.Steps))
	for i, s := range todo.Steps {
		done[i] = s.run()
	}
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		fail(err)
	}
}

func (s step) run() any {
	switch s.Do {
	case "net":
		return oneByOne(s.Requests)
	case "netall":
		return sideBySide(s.Requests)
	case "secret":
		return secret(s.Name)
	case "file":
		content, err := os.ReadFile(s.Name)
		if err != nil {
			return err.Error()
		}
		return string(content)
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
			fail(err)
		}
		return count
	}
	fail(fmt.Errorf("cannot do %q", s.Do))
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
