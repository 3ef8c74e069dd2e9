// Package provider searches the web with the service that the operator has chosen. All services take
// the same [Query] and return the same kind of results.
//
// The package never has a service's key: the host adds it to the requests.
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

// Query is what to search for. Fields other than Text are optional.
type Query struct {
	Text     string
	Count    int    // maximum; zero: 5
	Language string // such as en or pt-br
	// Freshness is the maximum age of results: day, week, month or year.
	Freshness string
}

// Result is one page that was found. Its texts are single plain lines.
type Result struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
	// Published is the date in the service's own format.
	Published string `json:"published,omitempty"`
}

// Provider is a service that searches. Get one from [Choose].
type Provider struct {
	Name string
	// request returns the HTTP request for a query.
	request func(Query) (caisson.Request, error)
	// decode parses the response.
	decode func([]byte) ([]Result, error)
	// explain words a status that is not a success, or returns "" for the usual words.
	explain func(status int) string
}

const (
	defaultCount = 5
	maxCount     = 20
	// patience is the timeout of a request. It is shorter than the tool's own of ten seconds.
	patience = 8 * time.Second

	maxTitle     = 300 // characters
	maxSnippet   = 1000
	maxURL       = 2048
	maxPublished = 60
)

// errUnreadable means that a response is not as the service documents it.
var errUnreadable = errors.New("its answer could not be read")

// Search sends a query to the provider. The error is worded for a model.
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

// refused words a status other than success.
func (p Provider) refused(response *caisson.Response) error {
	explained := p.explain(response.Status)
	if explained == "" {
		return errors.New(wording.Status(response))
	}
	if wait := wording.RetryAfter(response); wait != "" {
		explained += "; it asks to wait " + wait
	}
	return fmt.Errorf("it answered %d: %s", response.Status, explained)
}

// tidy keeps the first results with usable URLs, without duplicates.
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

// decodeJSON parses a response.
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

// Settings are the operator's settings.
type Settings struct {
	// Provider is the name of a provider, or empty for the first that is configured, in the order
	// brave, tavily, searxng.
	Provider string
	// SearXNG is the address of an instance, or empty.
	SearXNG string
	// HasSecret reports whether the host has a secret with that name for this tool.
	HasSecret func(name string) (bool, error)
}

// errNone means that no provider is configured.
var errNone = errors.New(
	"no search service is set up; the operator must set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL")

// Choose returns the provider that the settings select. It never replaces a named provider by another.
func Choose(s Settings) (Provider, error) {
	for _, candidate := range []struct {
		provider Provider
		secret   string
	}{{brave(), "BRAVE_API_KEY"}, {tavily(), "TAVILY_API_KEY"}} {
		named := s.Provider == candidate.provider.Name
		if s.Provider != "" && !named {
			continue
		}
		ok, err := s.HasSecret(candidate.secret)
		switch {
		case err != nil:
			return Provider{}, errors.New(wording.Failure(err))
		case ok:
			return candidate.provider, nil
		case named:
			return Provider{}, fmt.Errorf("WEB_SEARCH_PROVIDER is %s, but %s is not set", s.Provider, candidate.secret)
		}
	}
	switch {
	case s.Provider != "" && s.Provider != SearXNG:
		return Provider{},
			errors.New(
				"WEB_SEARCH_PROVIDER names a service that this tool does not know; the operator must set it to brave, tavily or " +
					"searxng")
	case s.SearXNG != "":
		return s.instance()
	case s.Provider == SearXNG:
		return Provider{}, errors.New("WEB_SEARCH_PROVIDER is searxng, but SEARXNG_URL is not set")
	}
	return Provider{}, errNone
}

func (s Settings) instance() (Provider, error) {
	base, err := url.Parse(s.SearXNG)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return Provider{}, errors.New("SEARXNG_URL is not the address of an instance, such as https://searx.example")
	}
	return searxng(base), nil
}

// withoutMarkup removes the tags with which services highlight matches, and decodes entities.
func withoutMarkup(text string) string {
	return html.UnescapeString(emphasis.Replace(text))
}

var emphasis = strings.NewReplacer(
	"<strong>", "", "</strong>", "", "<b>", "", "</b>", "", "<em>", "", "</em>", "", "<mark>", "", "</mark>", "", "<br>",
	" ", "<br/>", " ",
)
