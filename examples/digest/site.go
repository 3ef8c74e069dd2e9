package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

const defaultPages = 5

// site reads the pages of a site by calling another tool, which tests replace.
type site struct {
	call func(name string, arguments any) (*caisson.ToolResult, error)
}

// digest summarises a page and the pages of its site that it links to.
type digest struct {
	summary
	Pages []summary `json:"pages"`
}

// summary has a page's title and description, or the reason why it could not be read.
type summary struct {
	URL         string `json:"url"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Error       string `json:"error,omitempty"`
}

// document is the part of fetch_page's data that is used here.
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

// digest reads a page, and then the pages that it links to. If one of these or the list of links
// cannot be read, the digest says so.
func (s site) digest(a arguments) (digest, error) {
	first, err := s.summary(a.URL)
	if err != nil {
		return digest{}, err
	}
	linking, err := s.fetch(first.URL, "links")
	if err != nil { // for example because the page is not HTML
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

// fetch calls fetch_page. It does not distinguish calls that failed from calls that were not made.
func (s site) fetch(address, mode string) (document, error) {
	result, err := s.call("fetch_page", map[string]any{"url": address, "extract_type": mode})
	switch {
	case err != nil:
		return document{}, err
	case !result.Success:
		return document{}, errors.New(result.Error)
	}
	var page document
	if err := json.Unmarshal(result.Data, &page); err != nil {
		return document{}, fmt.Errorf("fetch_page returned something other than a page: %w", err)
	}
	return page, nil
}

// sameSite returns the first few other pages of the same host that a page links to.
func (d document) sameSite(limit int) []string {
	own, err := url.Parse(d.URL)
	if err != nil {
		return nil
	}
	var found []string
	for _, link := range d.Links {
		to, err := url.Parse(link.URL)
		if err == nil && to.Host == own.Host && link.URL != d.URL && !slices.Contains(found, link.URL) {
			found = append(found, link.URL)
		}
	}
	return found[:min(limit, len(found))]
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
	lines := []string{s.Title, s.URL, s.Description}
	if s.Error != "" {
		lines = append(lines, "[not read: "+s.Error+"]")
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}
