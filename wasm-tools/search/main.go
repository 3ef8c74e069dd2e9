// Command search is the tool web_search: one way to search the web, whichever service the
// operator has chosen. The tool's arguments come as a JSON object on standard input, and the
// result goes as one to standard output.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/search/provider"
)

func main() {
	s := search{do: caisson.Do, settings: provider.Settings{
		Provider: os.Getenv("WEB_SEARCH_PROVIDER"), SearXNG: os.Getenv("SEARXNG_URL"), HasSecret: caisson.SecretExists,
	}}
	if err := s.run(os.Stdin, os.Stdout); err != nil {
		os.Stderr.WriteString("search: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// search is the tool with what it needs from its host.
type search struct {
	do       provider.Doer
	settings provider.Settings
}

// arguments are what the tool takes. A zero field was not given.
type arguments struct {
	Query     string `json:"query"`
	Count     int    `json:"count"`
	Language  string `json:"language"`
	Freshness string `json:"freshness"`
}

// data is the result for programs.
type data struct {
	Provider string            `json:"provider"`
	Query    string            `json:"query"`
	Results  []provider.Result `json:"results"`
}

// run answers one call. Its error is that of writing.
func (s search) run(in io.Reader, out io.Writer) error { return call.Answer(in, out, s.answer) }

func (s search) answer(a arguments) (call.Result, error) {
	chosen, err := provider.Choose(s.settings)
	if err != nil {
		return call.Result{}, err
	}
	found, err := chosen.Search(s.do, provider.Query{Text: a.Query, Count: a.Count, Language: a.Language, Freshness: a.Freshness})
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %w", chosen.Name, err)
	}
	return call.Result{Success: true, Output: list(found), Data: data{chosen.Name, a.Query, found}}, nil
}

func list(found []provider.Result) string {
	if len(found) == 0 {
		return "[nothing was found; try other words]"
	}
	var b strings.Builder
	for i, r := range found {
		title := r.Title
		if title == "" {
			title = "(no title)"
		}
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, title, r.URL)
		if r.Published != "" {
			fmt.Fprintf(&b, "   published: %s\n", r.Published)
		}
		if r.Snippet != "" {
			fmt.Fprintf(&b, "   %s\n", r.Snippet)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
