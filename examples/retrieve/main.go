// Command retrieve is the tool find_passages, which searches the user's files for the passages that best
// match a question. It asks the host which files there are, and can open no others.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// arguments are the tool's arguments. Zero values stand for missing ones.
type arguments struct {
	Query    string `json:"query"`
	Passages int    `json:"passages"`
}

// answer is the tool's result.
type answer struct {
	Success bool      `json:"success"`
	Output  string    `json:"output,omitempty"`
	Data    *found    `json:"data,omitempty"`
	Content []content `json:"content,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// content is a part of a result: a passage, named by its file.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
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
	result := answer{Success: true, Output: f.text(), Data: &f}
	for _, p := range f.Results {
		result.Content = append(result.Content, content{"text", p.Text, p.File, "text/plain"})
	}
	return result
}
