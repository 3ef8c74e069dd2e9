// Command retrieve is the tool find_passages, which searches the user's files for the passages that best
// match a question. It gets the list of files from the host, and can open no other files.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// arguments are the tool's arguments. A zero value means a missing argument.
type arguments struct {
	Query    string `json:"query"`
	Passages int    `json:"passages"`
}

// answer is the tool's result. Models read the output, and programs the data.
type answer struct {
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Data    *found `json:"data,omitempty"`
	Error   string `json:"error,omitempty"`
}

func main() {
	host := host{caisson.Context, open, caisson.EmitProgress}
	if err := json.NewEncoder(os.Stdout).Encode(run(os.Stdin, host)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// host is the tool's access to its host, which tests replace.
type host struct {
	context  func() (*caisson.CallContext, error)
	open     func(path string) (io.ReadCloser, error)
	progress func(fraction float64, text string) error
}

func open(path string) (io.ReadCloser, error) { return os.Open(path) }

func run(in io.Reader, host host) answer {
	var a arguments
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return answer{Error: "the arguments cannot be read: " + err.Error()}
	}
	f, err := host.find(a)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Success: true, Output: f.text(), Data: &f}
}
