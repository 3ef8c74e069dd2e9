// Command search is the tool web_search, which searches the web with the service that the operator
// has chosen.
package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/search/internal/provider"
)

func main() {
	call.Main(search{do: caisson.Do, progress: caisson.EmitProgress, settings: provider.Settings{
		Provider: os.Getenv("WEB_SEARCH_PROVIDER"), SearXNG: os.Getenv("SEARXNG_URL"), HasSecret: caisson.SecretExists,
	}}.answer)
}

// search is the tool with the host functions and settings that it needs.
type search struct {
	do       provider.Doer
	progress func(fraction float64, text string) error
	settings provider.Settings
}

// arguments are the tool's arguments. An absent one is zero.
type arguments struct {
	Query     string `json:"query"`
	Count     int    `json:"max_results"`
	Language  string `json:"language"`
	Freshness string `json:"freshness"`
}

// data is the result for programs.
type data struct {
	Provider string            `json:"provider"`
	Query    string            `json:"query"`
	Results  []provider.Result `json:"results"`
}

func (s search) answer(a arguments) (call.Result, error) {
	chosen, err := provider.Choose(s.settings)
	if err != nil {
		return call.Result{}, err
	}
	_ = s.progress(0, "asking "+chosen.Name) // the call may have no subscriber
	found, err := chosen.Search(s.do,
		provider.Query{Text: a.Query, Count: a.Count, Language: a.Language, Freshness: a.Freshness})
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
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, cmp.Or(r.Title, "(no title)"), r.URL)
		if r.Published != "" {
			fmt.Fprintf(&b, "   published: %s\n", r.Published)
		}
		if r.Snippet != "" {
			fmt.Fprintf(&b, "   %s\n", r.Snippet)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
