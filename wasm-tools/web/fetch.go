package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
	"github.com/caisson-run/caisson/wasm-tools/web/page"
)

const (
	maxAddress = 2048 // bytes
	// patience is how long a server has. It leaves time to answer within the tool's own
	// deadline of ten seconds.
	patience = 8 * time.Second

	defaultChars = 20_000
	defaultLinks = 200
)

// pageArguments are what fetch_page takes. A zero field was not given.
type pageArguments struct {
	URL      string `json:"url"`
	Mode     string `json:"mode"`
	MaxChars int    `json:"max_chars"`
	Offset   int    `json:"offset"`
	MaxLinks int    `json:"max_links"`
	Targets  bool   `json:"link_targets"`
}

// fetchPage answers a call of fetch_page.
func (n network) fetchPage(a pageArguments) (call.Result, error) {
	address, err := checked(a.URL)
	if err != nil {
		return call.Result{}, err
	}
	v := view{mode: or(a.Mode, text), chars: or(a.MaxChars, defaultChars), offset: a.Offset, links: or(a.MaxLinks, defaultLinks), targets: a.Targets}
	request := requestFor(address)
	request.Timeout = patience
	response, err := n.do(request)
	shown, err := v.show(response, err)
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %w", plain.Line(address, maxAddress), err)
	}
	return call.Result{Success: true, Output: shown.output, Data: shown.data}, nil
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// checked returns the address to ask for: without a fragment, which servers do not see. What
// only the host can judge is left to it.
func checked(address string) (string, error) {
	address = strings.TrimSpace(address)
	if len(address) > maxAddress {
		return "", fmt.Errorf("the URL has more than %d characters", maxAddress)
	}
	parsed, err := url.Parse(address)
	switch {
	case address == "":
		return "", errors.New("the URL is empty")
	case err != nil:
		return "", fmt.Errorf("%s: this is not a URL; write one such as https://example.com/page", plain.Line(address, maxAddress))
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Host == "":
		return "", fmt.Errorf("%s: this is not the URL of a web page; write the whole of it, such as https://example.com/page", plain.Line(address, maxAddress))
	}
	parsed.Fragment, parsed.RawFragment = "", ""
	return parsed.String(), nil
}

func requestFor(address string) caisson.Request {
	return caisson.Request{
		Method: "GET",
		URL:    address,
		Headers: [][2]string{
			{"Accept", "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1"},
			{"User-Agent", "Mozilla/5.0 (compatible; Caisson-Web/1.0)"},
		},
	}
}

// show makes of what came back what a model is shown. Its error is worded for one.
func (v view) show(response *caisson.Response, err error) (shown, error) {
	if err != nil {
		return shown{}, errors.New(wording.Failure(err))
	}
	if response.Status < 200 || response.Status > 299 {
		return shown{}, errors.New(wording.Status(response))
	}
	p, err := page.Read(
		page.Source{URL: response.URL, ContentType: response.Header("Content-Type"), Body: response.Body, Cut: response.Truncated},
		page.Options{Text: v.textLimit(), Links: v.links, Targets: v.targets},
	)
	if err != nil {
		return shown{}, err
	}
	if v.mode == links && !isHTML(p.Type) {
		return shown{}, fmt.Errorf("it is %s, which has no links; use the mode text", p.Type)
	}
	return v.of(response, p), nil
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }
