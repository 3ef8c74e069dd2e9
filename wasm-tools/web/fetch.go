package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/page"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
)

const (
	maxAddress = 2048 // bytes
	// patience is the timeout of a request. It is shorter than the tool's own of ten seconds.
	patience = 8 * time.Second

	defaultChars = 20_000
	defaultLinks = 200
)

// pageArguments are the arguments of fetch_page. An absent one is zero.
type pageArguments struct {
	URL      string `json:"url"`
	Extract  string `json:"extract_type"`
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
	v := view{mode: cmp.Or(a.Extract, text), chars: cmp.Or(a.MaxChars, defaultChars), offset: a.Offset,
		links: cmp.Or(a.MaxLinks, defaultLinks), targets: a.Targets}
	response, err := n.do(requestFor(address, patience))
	shown, err := v.show(response, err)
	if err != nil {
		return call.Result{}, fmt.Errorf("%s: %w", plain.Line(address, maxAddress), err)
	}
	return call.Result{Success: true, Output: shown.output, Data: shown.data}, nil
}

// checked validates an address and removes its fragment. The host decides whether it is allowed.
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
		return "", fmt.Errorf("%s: this is not a URL; write one such as https://example.com/page",
			plain.Line(address, maxAddress))
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Host == "":
		return "",
			fmt.Errorf("%s: this is not the URL of a web page; write the whole of it, such as https://example.com/page",
				plain.Line(address, maxAddress))
	}
	parsed.Fragment, parsed.RawFragment = "", ""
	return parsed.String(), nil
}

func requestFor(address string, timeout time.Duration) caisson.Request {
	return caisson.Request{
		Method: "GET", URL: address, Timeout: timeout,
		Headers: [][2]string{
			{"Accept", "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1"},
			{"User-Agent", "Mozilla/5.0 (compatible; Caisson-Web/1.0)"},
		},
	}
}

// show turns a response into the document and the text for a model. The error is worded for a model.
func (v view) show(response *caisson.Response, err error) (shown, error) {
	if err != nil {
		return shown{}, errors.New(wording.Failure(err))
	}
	if response.Status < 200 || response.Status > 299 {
		return shown{}, errors.New(wording.Status(response))
	}
	p, err := page.Read(
		page.Source{URL: response.URL, ContentType: response.Header("Content-Type"), Body: response.Body,
			Cut: response.Truncated},
		page.Options{Text: v.textLimit(), Links: v.links, Targets: v.targets},
	)
	if err != nil {
		return shown{}, err
	}
	if v.mode == links && !isHTML(p.Type) {
		return shown{}, fmt.Errorf("it is %s, which has no links; use extract_type text", p.Type)
	}
	return v.of(response, p), nil
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }
