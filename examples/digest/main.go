// Command digest is the tool site_digest, which summarises what a page and the pages it links to say
// about themselves. It has no network access: it calls fetch_page, which has its own permissions.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// arguments are the tool's arguments. A zero value means a missing argument.
type arguments struct {
	URL   string `json:"url"`
	Pages int    `json:"pages"`
}

// answer is the tool's result.
type answer struct {
	Success bool    `json:"success"`
	Output  string  `json:"output,omitempty"`
	Data    *digest `json:"data,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() answer {
	var a arguments
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		return answer{Error: "the arguments cannot be read: " + err.Error()}
	}
	found, err := site{caisson.CallTool}.digest(a)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Success: true, Output: found.text(), Data: &found}
}
