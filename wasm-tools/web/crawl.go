package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	maxPages = 10
	// crawlPatience is the timeout of the concurrent requests.
	crawlPatience = 7 * time.Second

	defaultCrawlChars = 5000
	defaultCrawlLinks = 50
)

// crawlArguments are the arguments of crawl_batch. An absent one is zero.
type crawlArguments struct {
	URLs     []string `json:"urls"`
	Extract  string   `json:"extract_type"`
	MaxChars int      `json:"max_chars"`
}

// crawled is the result for one address.
type crawled struct {
	Requested string    `json:"requested"` // as given
	Success   bool      `json:"success"`
	Error     string    `json:"error,omitempty"`
	Page      *document `json:"page,omitempty"`
	output    string
}

type batch struct {
	Pages     []crawled `json:"pages"` // in the order of the addresses
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
}

// crawlBatch answers a call of crawl_batch. It fails only if no page could be read.
func (n network) crawlBatch(a crawlArguments) (call.Result, error) {
	if len(a.URLs) == 0 || len(a.URLs) > maxPages {
		return call.Result{}, fmt.Errorf("give 1 to %d URLs", maxPages)
	}
	v := view{mode: cmp.Or(a.Extract, text), chars: cmp.Or(a.MaxChars, defaultCrawlChars), links: defaultCrawlLinks,
		another: true}
	b := batch{Pages: n.crawl(a.URLs, v)}
	for _, p := range b.Pages {
		if p.Success {
			b.Succeeded++
		}
	}
	b.Failed = len(b.Pages) - b.Succeeded
	output := b.text()
	if b.Succeeded == 0 {
		return call.Result{}, errors.New("no page could be read\n" + output)
	}
	return call.Result{Success: true, Output: output, Data: b}, nil
}

// crawl fetches each page once, however often its address was given.
func (n network) crawl(addresses []string, v view) []crawled {
	pages := make([]crawled, len(addresses))
	first := map[string]int{} // index of an address in requests
	place := make([]int, len(addresses))
	var requests []caisson.Request
	for i, given := range addresses {
		pages[i].Requested = plain.Line(given, maxAddress)
		address, err := checked(given)
		if err != nil {
			pages[i].Error, place[i] = err.Error(), -1
			continue
		}
		at, known := first[address]
		if !known {
			at = len(requests)
			first[address] = at
			requests = append(requests, requestFor(address, crawlPatience))
		}
		place[i] = at
	}
	answers := make([]crawled, len(requests))
	for i, result := range n.doAll(requests) {
		answers[i] = v.answer(result)
	}
	for i, at := range place {
		if at >= 0 {
			requested := pages[i].Requested
			pages[i] = answers[at]
			pages[i].Requested = requested
		}
	}
	return pages
}

func (v view) answer(result caisson.Result) crawled {
	shown, err := v.show(result.Response, result.Err)
	if err != nil {
		return crawled{Error: err.Error()}
	}
	shown.data.slim()
	return crawled{Success: true, Page: &shown.data, output: cut(shown.output)}
}

const (
	// Ten pages must fit into one result, whatever they hold.
	maxPageData   = 100_000 // bytes of JSON of one page's data
	maxPageOutput = 30_000  // characters of its output
)

// slim reduces the data of one page among ten.
func (d *document) slim() {
	for _, drop := range []struct {
		name string
		from func()
	}{
		{"JSON-LD", func() { d.JSONLD = list[json.RawMessage](nil) }},
		{"metadata", func() { d.About.Meta = nil }},
		{"links", func() { *d.Links = (*d.Links)[:10] }},
	} {
		encoded, err := json.Marshal(d)
		if err != nil || len(encoded) <= maxPageData {
			return
		}
		if drop.name == "links" == (d.Links == nil) {
			continue
		}
		drop.from()
		d.Truncated = true
		d.Notes = append(d.Notes, "the page has more "+drop.name+" than one result of many pages can hold; fetch_page has it")
	}
}

func cut(output string) string {
	if short := plain.First(output, maxPageOutput); len(short) < len(output) {
		return short + "\n[cut]"
	}
	return output
}

// text shows the pages in order. One that was requested twice is shown once.
func (b batch) text() string {
	var text strings.Builder
	shownAs := map[*document]int{}
	for i, p := range b.Pages {
		fmt.Fprintf(&text, "=== %d of %d: %s\n", i+1, len(b.Pages), p.Requested)
		switch at, twice := shownAs[p.Page]; {
		case !p.Success:
			fmt.Fprintf(&text, "[failed: %s]\n\n", p.Error)
		case twice:
			fmt.Fprintf(&text, "[the same as page %d]\n\n", at)
		default:
			shownAs[p.Page] = i + 1
			fmt.Fprintf(&text, "%s\n\n", p.output)
		}
	}
	return strings.TrimRight(text.String(), "\n")
}
