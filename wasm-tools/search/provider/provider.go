// Package provider searches the web with whichever service the operator has chosen. All of
// them take the same [Query] and give the same results.
//
// No service's key is known here: the host puts it into the requests that it belongs to.
package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
)

// Doer sends a request.
type Doer func(caisson.Request) (*caisson.Response, error)

// Query is what to search for. A zero field besides Text was not given.
type Query struct {
	Text     string
	Count    int    // at most; zero: 10
	Language string // such as en or pt-br
	// Freshness is how old results may be: day, week, month or year.
	Freshness string
}

// Result is one page that was found. Its texts are plain lines.
type Result struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
	// Published is the date that the service gives, as it writes it.
	Published string `json:"published,omitempty"`
}

// Provider is a service that searches. Get one from [Choose].
type Provider struct {
	Name string
	// request makes the request that asks for the query.
	request func(Query) (caisson.Request, error)
	// decode reads the answer to it.
	decode func([]byte) ([]Result, error)
	// explain adds to what a refusal's status says, or is nil.
	explain func(status int) string
}

const (
	defaultCount = 10
	maxCount     = 20
	// patience leaves time to answer within the tool's own deadline of ten seconds.
	patience = 8 * time.Second

	maxTitle     = 300 // characters
	maxSnippet   = 1000
	maxURL       = 2048
	maxPublished = 60
)

// errUnreadable is for an answer that is not what the service's documentation promises.
var errUnreadable = errors.New("its answer could not be read")

// Search asks the provider. The error is worded for a model.
func (p Provider) Search(do Doer, q Query) ([]Result, error) {
	if q.Count <= 0 {
		q.Count = defaultCount
	}
	q.Count = min(q.Count, maxCount)
	request, err := p.request(q)
	if err != nil {
		return nil, err
	}
	request.Timeout = patience
	request.Headers = append(request.Headers, [2]string{"Accept", "application/json"})
	response, err := do(request)
	if err != nil {
		return nil, errors.New(wording.Failure(err))
	}
	if response.Status != 200 {
		return nil, p.refused(response)
	}
	if response.Truncated {
		return nil, errors.New("its answer is larger than this call may fetch")
	}
	found, err := p.decode(response.Body)
	if err != nil {
		return nil, err
	}
	return tidy(found, q.Count), nil
}

// refused words a status that is not a success.
func (p Provider) refused(response *caisson.Response) error {
	explained := ""
	if p.explain != nil {
		explained = p.explain(response.Status)
	}
	if explained == "" {
		return errors.New(wording.Status(response))
	}
	if wait := wording.RetryAfter(response); wait != "" {
		explained += "; it asks to wait " + wait
	}
	return fmt.Errorf("it answered %d: %s", response.Status, explained)
}

// tidy keeps what a model can follow, once each, and no more than was asked for.
func tidy(found []Result, count int) []Result {
	kept := []Result{}
	seen := map[string]bool{}
	for _, r := range found {
		if len(kept) == count {
			break
		}
		parsed, err := url.Parse(r.URL)
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || len(r.URL) > maxURL {
			continue
		}
		address := parsed.String()
		if seen[address] || plain.Line(address, maxURL) != address {
			continue
		}
		seen[address] = true
		kept = append(kept, Result{
			Title: plain.Line(withoutMarkup(r.Title), maxTitle), URL: address,
			Snippet: plain.Line(withoutMarkup(r.Snippet), maxSnippet), Published: plain.Line(r.Published, maxPublished),
		})
	}
	return kept
}

// decodeJSON reads an answer. Its numbers and unknown members do not matter.
func decodeJSON(body []byte, into any) error {
	if json.Unmarshal(body, into) != nil {
		return errUnreadable
	}
	return nil
}

// The names of the providers.
const (
	Brave   = "brave"
	Tavily  = "tavily"
	SearXNG = "searxng"
)

// Settings are what the operator has set, by which a provider is chosen.
type Settings struct {
	// Provider is the name of one, or empty for the first that is set up, in the order
	// brave, tavily, searxng.
	Provider string
	// SearXNG is the address of an instance, or empty.
	SearXNG string
	// HasSecret reports whether the host has a secret of that name for this tool.
	HasSecret func(name string) (bool, error)
}

// errNone means that there is nothing to search with.
var errNone = errors.New("no search service is set up; the operator must set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL")

// Choose returns the provider that the settings ask for. A provider that was named is not
// replaced by another.
func Choose(s Settings) (Provider, error) {
	switch s.Provider {
	case "":
		return s.first()
	case Brave:
		return s.keyed(brave(), "BRAVE_API_KEY")
	case Tavily:
		return s.keyed(tavily(), "TAVILY_API_KEY")
	case SearXNG:
		if s.SearXNG == "" {
			return Provider{}, errors.New("WEB_SEARCH_PROVIDER is searxng, but SEARXNG_URL is not set")
		}
		return s.instance()
	}
	return Provider{}, errors.New("WEB_SEARCH_PROVIDER names a service that this tool does not know; the operator must set it to brave, tavily or searxng")
}

func (s Settings) keyed(p Provider, secret string) (Provider, error) {
	ok, err := s.HasSecret(secret)
	if err != nil {
		return Provider{}, errors.New(wording.Failure(err))
	}
	if !ok {
		return Provider{}, fmt.Errorf("WEB_SEARCH_PROVIDER is %s, but %s is not set", p.Name, secret)
	}
	return p, nil
}

func (s Settings) first() (Provider, error) {
	for _, candidate := range []struct {
		provider Provider
		secret   string
	}{{brave(), "BRAVE_API_KEY"}, {tavily(), "TAVILY_API_KEY"}} {
		ok, err := s.HasSecret(candidate.secret)
		if err != nil {
			return Provider{}, errors.New(wording.Failure(err))
		}
		if ok {
			return candidate.provider, nil
		}
	}
	if s.SearXNG == "" {
		return Provider{}, errNone
	}
	return s.instance()
}

func (s Settings) instance() (Provider, error) {
	base, err := url.Parse(s.SearXNG)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return Provider{}, errors.New("SEARXNG_URL is not the address of an instance, such as https://searx.example")
	}
	return searxng(base), nil
}

// withoutMarkup removes the tags that services put around what was searched for, and reads
// the entities.
func withoutMarkup(text string) string {
	if strings.Contains(text, "<") {
		text = emphasis.Replace(text)
	}
	if strings.Contains(text, "&") {
		text = html.UnescapeString(text)
	}
	return text
}

var emphasis = strings.NewReplacer(
	"<strong>", "", "</strong>", "", "<b>", "", "</b>", "", "<em>", "", "</em>", "", "<mark>", "", "</mark>", "", "<br>", " ", "<br/>", " ",
)
