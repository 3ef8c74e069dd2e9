package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// pages replaces fetch_page: the data of its results by address and extract_type.
type pages map[string]string

func (p pages) call(name string, arguments any) (*caisson.ToolResult, error) {
	var asked struct {
		URL     string
		Extract string `json:"extract_type"`
	}
	text, err := json.Marshal(arguments)
	if err != nil || json.Unmarshal(text, &asked) != nil || name != "fetch_page" {
		return nil, errors.New("no such call")
	}
	data, ok := p[asked.URL+" "+asked.Extract]
	if !ok {
		return &caisson.ToolResult{Error: asked.URL + ": the server says 404"}, nil
	}
	return &caisson.ToolResult{Success: true, Data: json.RawMessage(data)}, nil
}

var example = pages{
	"https://a.test structured": `{"url":"https://a.test/","title":"Home","about":{"description":"All of it.","excerpt":"Welcome"}}`,
	"https://a.test/ links": `{"url":"https://a.test/","links":[{"url":"https://a.test/"},{"url":"https://b.test/x"},{"url":"https://a.test/x"},
		{"url":"https://a.test/x"},{"url":"https://a.test/gone"},{"url":"https://a.test/y"}]}`,
	"https://a.test/x structured": `{"url":"https://a.test/x","title":"X","about":{"excerpt":"First line\nsecond"}}`,
	"https://a.test/y structured": `{"url":"https://a.test/y","title":"Y","about":{}}`,
}

func TestDigest(t *testing.T) {
	found, err := site{example.call}.digest(arguments{URL: "https://a.test"})
	require.NoError(t, err)
	assert.Equal(t, `Home
https://a.test/
All of it.

X
https://a.test/x
First line

https://a.test/gone
[not read: https://a.test/gone: the server says 404]

Y
https://a.test/y`, found.text())
	fewer, err := site{example.call}.digest(arguments{URL: "https://a.test", Pages: 1})
	require.NoError(t, err)
	assert.Len(t, fewer.Pages, 1)
	text, err := json.Marshal(fewer)
	require.NoError(t, err)
	assert.JSONEq(t, `{"url":"https://a.test/","title":"Home","description":"All of it.","pages":[{"url":"https://a.test/x","title":"X","description":"First line"}]}`, string(text))
}

func TestDigestOfAPageWithoutLinks(t *testing.T) {
	found, err := site{example.call}.digest(arguments{URL: "https://a.test/x"})
	require.NoError(t, err)
	assert.Equal(t, "X\nhttps://a.test/x\nFirst line\n[not read: its links: https://a.test/x: the server says 404]", found.text())
	assert.Empty(t, found.Pages)
}

func TestDigestFailsWithItsFirstPage(t *testing.T) {
	_, err := site{example.call}.digest(arguments{URL: "https://a.test/none"})
	assert.EqualError(t, err, "https://a.test/none: the server says 404")
	_, err = site{caisson.CallTool}.digest(arguments{URL: "https://a.test"})
	assert.ErrorIs(t, err, caisson.ErrOutside)
	_, err = site{pages{"https://a.test structured": `[]`}.call}.digest(arguments{URL: "https://a.test"})
	assert.ErrorContains(t, err, "fetch_page returned something other than a page")
}
