package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

const defaultPages = 5

// site calls other tools; in tests, something that stands in for them.
type site struct {
	call func(name string, arguments any) (*caisson.ToolResult, error)
}

// digest is a page and those of its site that it links to.
type digest struct {
	summary
	Pages []summary `json:"pages"`
}

// summary is what one page says about itself, and what of it could not be read.
type summary struct {
	URL         string `json:"url"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Error       string `json:"error,omitempty"`
}

// document is what of fetch_page's data matters here.
type document struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	About struct {
		Description string `json:"description"`
		Excerpt     string `json:"excerpt"`
	} `json:"about"`
	Links []struct {
		URL string `json:"url"`
	} `json:"links"`
}

// digest reads a page, and then those that it links to. That one of these cannot be read, or
// the links themselves, does not spoil the rest.
func (s site) digest(a arguments) (digest, error) {
	first, err := s.summary(a.URL)
	if err != nil {
		return digest{}, err
	}
	linking, err := s.fetch(first.URL, "links")
	if err != nil { // such as a page that is no HTML
		first.Error = "its links: " + err.Error()
	}
	if a.Pages == 0 {
		a.Pages = defaultPages
	}
	found := digest{first, []summary{}}
	for _, address := range linking.sameSite(a.Pages) {
		page, err := s.summary(address)
		if err != nil {
			page = summary{URL: address, Error: err.Error()}
		}
		found.Pages = append(found.Pages, page)
	}
	return found, nil
}

func (s site) summary(address string) (summary, error) {
	page, err := s.fetch(address, "structured")
	if err != nil {
		return summary{}, err
	}
	description := page.About.Description
	if description == "" {
		description, _, _ = strings.Cut(page.About.Excerpt, "\n")
	}
	return summary{URL: page.URL, Title: page.Title, Description: description}, nil
}

// fetch calls fetch_page. That the call was not made and that it failed are one to a model.
func (s site) fetch(address, mode string) (document, error) {
	result, err := s.call("fetch_page", map[string]any{"url": address, "mode": mode})
	switch {
	case err != nil:
		return document{}, err
	case !result.Success:
		return document{}, errors.New(result.Error)
	}
	var page document
	if err := json.Unmarshal(result.Data, &page); err != nil {
		return document{}, fmt.Errorf("fetch_page answered something else than a page: %w", err)
	}
	return page, nil
}

// sameSite returns the first pages that a page links to on its own host, but for itself.
func (d document) sameSite(most int) []string {
	own, err := url.Parse(d.URL)
	if err != nil {
		return nil
	}
	seen := map[string]bool{d.URL: true}
	var found []string
	for _, link := range d.Links {
		to, err := url.Parse(link.URL)
		if err == nil && to.Host == own.Host && !seen[link.URL] && len(found) < most {
			seen[link.URL] = true
			found = append(found, link.URL)
		}
	}
	return found
}

// text returns the digest for people and models.
func (d digest) text() string {
	var b strings.Builder
	b.WriteString(d.summary.text())
	for _, page := range d.Pages {
		b.WriteString("\n\n" + page.text())
	}
	return b.String()
}

func (s summary) text() string {
	var lines []string
	for _, line := range []string{s.Title, s.URL, s.Description} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if s.Error != "" {
		lines = append(lines, "[not read: "+s.Error+"]")
	}
	return strings.Join(lines, "\n")
}
