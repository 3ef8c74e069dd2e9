// Command web is the module behind fetch_page and crawl_batch. Its one argument says which
// of them runs; the tool's arguments come as a JSON object on standard input, and the
// result goes as one to standard output.
//
// It asks its host for the pages. Which hosts may be asked, where redirects may lead and how
// much may be fetched is decided there.
package main

import (
	"errors"
	"io"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// network is how pages are fetched.
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

// run answers one call. Its error is that of writing, or of being called in another way
// than the manifests do; all others are in the result.
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
