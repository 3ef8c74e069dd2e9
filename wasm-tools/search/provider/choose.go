package provider

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
)

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
