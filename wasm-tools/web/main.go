// Command web implements fetch_page and crawl_batch. Its command-line argument selects the tool.
//
// It fetches pages through the host, which decides which servers are allowed, where redirects may
// lead and how much may be fetched.
package main

import (
	"errors"
	"io"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// network fetches pages.
type network struct {
	do    func(caisson.Request) (*caisson.Response, error)
	doAll func([]caisson.Request) []caisson.Result
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, network{caisson.Do, caisson.DoAll}); err != nil {
		os.Stderr.WriteString("web: " + err.Error() + "\n")
		os.Exit(1)
	}
}

var errUsage = errors.New("want one argument: fetch_page or crawl_batch")

// run answers one call. It fails only if it cannot write, or for a command line that no manifest has.
func run(arguments []string, in io.Reader, out io.Writer, n network) error {
	if len(arguments) != 1 {
		return errUsage
	}
	switch arguments[0] {
	case "fetch_page":
		return call.Answer(in, out, n.fetchPage)
	case "crawl_batch":
		return call.Answer(in, out, n.crawlBatch)
	}
	return errUsage
}
