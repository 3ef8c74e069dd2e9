package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	caisson "github.com/caisson-run/caisson/sdk/go"
)

// site is a network with pages by URL. It records the requests.
type site struct {
	pages map[string]caisson.Result
	asked []caisson.Request
}

func (s *site) do(request caisson.Request) (*caisson.Response, error) {
	s.asked = append(s.asked, request)
	result, ok := s.pages[request.URL]
	if !ok {
		return &caisson.Response{Status: 404, URL: request.URL}, nil
	}
	return result.Response, result.Err
}

func (s *site) doAll(requests []caisson.Request) []caisson.Result {
	results := make([]caisson.Result, len(requests))
	for i, request := range requests {
		results[i].Response, results[i].Err = s.do(request)
	}
	return results
}

func html(address, body string) caisson.Result {
	return caisson.Result{Response: &caisson.Response{
		Status: 200, URL: address, Headers: [][2]string{{"content-type", "text/html; charset=utf-8"}}, Body: []byte(body),
	}}
}

// answer is a result object with its data unparsed.
type answer struct {
	Success bool
	Output  string
	Data    json.RawMessage
	Error   string
}

// ask calls one of the tools as its manifest does, and validates the result against the manifest.
func ask(t *testing.T, s *site, tool, arguments string) answer {
	t.Helper()
	m, err := manifests.Load(tool + ".tool.yaml")
	require.NoError(t, err)
	require.NoError(t, m.Parameters.Validate(t.Context(), []byte(arguments)))
	var out bytes.Buffer
	require.NoError(t, run([]string{tool}, strings.NewReader(arguments), &out, network{s.do, s.doAll}))
	require.Less(t, int64(out.Len()), int64(m.Limits.Output))
	var a answer
	require.NoError(t, json.Unmarshal(out.Bytes(), &a))
	if a.Success {
		require.NoError(t, m.Result.Validate(t.Context(), a.Data), string(a.Data))
	}
	return a
}

const address = "https://www.example.com/a"

// fetch fetches a page with this body, with more arguments, such as `,"extract_type":"links"`.
func fetch(t *testing.T, body, more string) answer {
	t.Helper()
	s := &site{pages: map[string]caisson.Result{address: html(address, body)}}
	return ask(t, s, "fetch_page", `{"url":"`+address+`"`+more+`}`)
}

func TestFetchText(t *testing.T) {
	s := &site{pages: map[string]caisson.Result{address: html("https://www.example.com/b", "<title>T</title><h1>Head</h1><p>äöü <a href=/x>more</a>")}}
	a := ask(t, s, "fetch_page", `{"url":" https://www.example.com/a#part "}`)
	assert.Equal(t, "T\nhttps://www.example.com/b\n\n# Head\n\näöü more", a.Output)
	assert.JSONEq(t, `{"url":"https://www.example.com/b","status":200,"content_type":"text/html","title":"T","truncated":false}`, string(a.Data))
	require.Len(t, s.asked, 1)
	assert.Equal(t, "GET", s.asked[0].Method)
	assert.Equal(t, patience, s.asked[0].Timeout)
	assert.Contains(t, s.asked[0].Headers, [2]string{"User-Agent", "Mozilla/5.0 (compatible; Caisson-Web/1.0)"})

	assert.Contains(t, ask(t, s, "fetch_page", `{"url":"https://www.example.com/a","link_targets":true}`).Output, "more <https://www.example.com/x>")
}

// TestReadingOn: the pieces of a long text add up to the text.
func TestReadingOn(t *testing.T) {
	var all strings.Builder
	want := strings.Repeat("äöü ", 100) + "end"
	for offset := 0; ; {
		a := fetch(t, "<p>"+want, fmt.Sprintf(`,"max_chars":100,"offset":%d`, offset))
		require.True(t, a.Success, a.Error)
		var data document
		require.NoError(t, json.Unmarshal(a.Data, &data))
		piece, _ := strings.CutSuffix(a.Output, fmt.Sprintf("\n[cut: go on at offset %d]", data.NextOffset))
		all.WriteString(strings.TrimPrefix(piece, address+"\n\n"))
		if !data.Truncated {
			break
		}
		require.Equal(t, offset+100, data.NextOffset)
		offset = data.NextOffset
	}
	assert.Equal(t, want, all.String())

	assert.Equal(t, address+"\n\n[the text ends before offset 9]", fetch(t, "<p>short", `,"offset":9`).Output)
	assert.Equal(t, address+"\n\n[the page has no text]", fetch(t, "", "").Output)
}

func TestFetchLinks(t *testing.T) {
	a := fetch(t, `<a href=/b rel=next>B</a><a href=/c></a>`, `,"extract_type":"links"`)
	assert.Equal(t, address+"\n\n- B <https://www.example.com/b> (next)\n- (no text) <https://www.example.com/c>", a.Output)
	assert.JSONEq(t, `{"url":"`+address+`","status":200,"content_type":"text/html","title":"","truncated":false,"links":[
		{"url":"https://www.example.com/b","text":"B","rel":"next"},{"url":"https://www.example.com/c","text":""}]}`, string(a.Data))

	a = fetch(t, `<a href=/b>B</a><a href=/c>C</a>`, `,"extract_type":"links","max_links":1`)
	assert.Contains(t, a.Output, "[cut after 1 links]")
	assert.Contains(t, string(a.Data), `"truncated":true`)

	a = fetch(t, `no`, `,"extract_type":"links"`)
	assert.Contains(t, a.Output, "[the page has no links]")
	assert.Contains(t, string(a.Data), `"links":[]`)
}

func TestFetchStructure(t *testing.T) {
	a := fetch(t, `<html lang=en><title>T</title><meta name=description content=D><meta property=og:type content=article>
		<link rel=canonical href=/c><script type=application/ld+json>{"@type":"Article"}</script><h1>One</h1><h2>Two</h2><a href=/x>x</a>`, `,"extract_type":"structured"`)
	assert.Equal(t, "T\n"+address+"\n\ndescription: D\nlanguage: en\ncanonical: https://www.example.com/c\nog:type: article\nlinks: 1\nblocks of JSON-LD: 1\n# One\n## Two\n\n# One\n\n## Two\n\nx", a.Output)
	assert.JSONEq(t, `{"url":"`+address+`","status":200,"content_type":"text/html","title":"T","truncated":false,
		"about":{"description":"D","language":"en","canonical":"https://www.example.com/c","meta":[{"name":"og:type","content":"article"}],"links":1,"excerpt":"# One\n\n## Two\n\nx"},
		"headings":[{"level":1,"text":"One"},{"level":2,"text":"Two"}],"json_ld":[{"@type":"Article"}]}`, string(a.Data))
}

func TestFailuresSayWhatToDo(t *testing.T) {
	status := func(code int, headers ...[2]string) caisson.Result {
		return caisson.Result{Response: &caisson.Response{Status: code, URL: address, Headers: headers}}
	}
	denial := &caisson.Denial{Permission: "network", Value: "GET https://www.example.com/a", Rule: "no grant names www.example.com"}
	for name, test := range map[string]struct {
		result caisson.Result
		mode   string
		want   string
	}{
		"missing":     {status(404), text, address + ": the server answered 404 Not Found; check the address"},
		"overloaded":  {status(429, [2]string{"Retry-After", "7"}), text, address + ": the server answered 429 Too Many Requests; it may work later; it asks to wait 7 seconds"},
		"no redirect": {status(304), text, address + ": the server answered 304 Not Modified"},
		"denied":      {caisson.Result{Err: &caisson.Error{Status: caisson.Denied, Denial: denial}}, text, address + ": denied: network GET https://www.example.com/a: no grant names www.example.com"},
		"slow":        {caisson.Result{Err: &caisson.Error{Status: caisson.Deadline}}, text, address + ": there was no answer in time; it may work later"},
		"image":       {caisson.Result{Response: &caisson.Response{Status: 200, URL: address, Headers: [][2]string{{"Content-Type", "image/png"}}}}, text, address + ": it is image/png, which has no text that this tool can read"},
		"no links":    {caisson.Result{Response: &caisson.Response{Status: 200, URL: address, Headers: [][2]string{{"Content-Type", "application/json"}}, Body: []byte("{}")}}, links, address + ": it is application/json, which has no links; use extract_type text"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{pages: map[string]caisson.Result{address: test.result}}
			assert.Equal(t, answer{Error: test.want}, ask(t, s, "fetch_page", `{"url":"`+address+`","extract_type":"`+test.mode+`"}`))
		})
	}
	for url, want := range map[string]string{
		"  ":                          "the URL is empty",
		"example.com":                 "example.com: this is not the URL of a web page; write the whole of it, such as https://example.com/page",
		"https:///x":                  "https:///x: this is not the URL of a web page; write the whole of it, such as https://example.com/page",
		"javascript:alert(1)":         "javascript:alert(1): this is not the URL of a web page; write the whole of it, such as https://example.com/page",
		"https://exa mple.com/\u200b": "https://exa mple.com/: this is not a URL; write one such as https://example.com/page",
	} {
		s := &site{}
		assert.Equal(t, answer{Error: want}, ask(t, s, "fetch_page", fmt.Sprintf(`{"url":%q}`, url)))
		assert.Empty(t, s.asked)
	}
}

func TestNotes(t *testing.T) {
	big := html(address, "<p>start"+strings.Repeat("<script>x</script>", 200))
	big.Response.Truncated = true
	s := &site{pages: map[string]caisson.Result{address: big}}
	a := ask(t, s, "fetch_page", `{"url":"`+address+`"}`)
	assert.Equal(t, address+"\n[note: the page is larger than this call may fetch: its end is missing]\n"+
		"[note: the page has nearly no text of its own: scripts may write it, which are not run]\n\nstart", a.Output)

	assert.Contains(t, fetch(t, `<meta http-equiv=refresh content="0;url=/new">moved`, "").Output, "[note: the page sends browsers on to https://www.example.com/new]")
}

func TestCrawl(t *testing.T) {
	s := &site{pages: map[string]caisson.Result{
		"https://a.example/":  html("https://a.example/", "<h1>A</h1>"),
		"https://b.example/x": html("https://b.example/x", "<h1>B</h1>"+strings.Repeat("b ", 200)),
		"https://c.example/":  {Err: &caisson.Error{Status: caisson.IO, Message: "c.example does not answer"}},
	}}
	a := ask(t, s, "crawl_batch", `{"urls":["https://b.example/x#1","https://c.example/","https://a.example/","nothing","https://b.example/x#2"],"max_chars":100}`)
	require.True(t, a.Success, a.Error)
	require.Len(t, s.asked, 3, "a page that is asked for twice is fetched once")
	var data batch
	require.NoError(t, json.Unmarshal(a.Data, &data))
	assert.Equal(t, 3, data.Succeeded)
	assert.Equal(t, 2, data.Failed)
	var requested []string
	for _, p := range data.Pages {
		requested = append(requested, p.Requested)
	}
	assert.Equal(t, []string{"https://b.example/x#1", "https://c.example/", "https://a.example/", "nothing", "https://b.example/x#2"}, requested)
	assert.Equal(t, "c.example does not answer", data.Pages[1].Error)
	assert.Equal(t, "https://a.example/", data.Pages[2].Page.URL)
	assert.Contains(t, data.Pages[3].Error, "this is not the URL of a web page")
	assert.Equal(t, data.Pages[0].Page, data.Pages[4].Page)
	assert.True(t, data.Pages[0].Page.Truncated)

	assert.True(t, strings.HasPrefix(a.Output, "=== 1 of 5: https://b.example/x#1\nhttps://b.example/x\n\n# B\n\nb b "), a.Output)
	assert.Contains(t, a.Output, "[cut: fetch_page goes on at offset 100]\n\n=== 2 of 5: https://c.example/\n[failed: c.example does not answer]\n\n=== 3 of 5: https://a.example/\n")
	assert.True(t, strings.HasSuffix(a.Output, "=== 5 of 5: https://b.example/x#2\n[the same as page 1]"), a.Output)
}

func TestCrawlFailsWhereAllPagesDo(t *testing.T) {
	a := ask(t, &site{}, "crawl_batch", `{"urls":["https://a.example/","b"]}`)
	assert.False(t, a.Success)
	assert.Contains(t, a.Error, "no page could be read\n=== 1 of 2: https://a.example/\n[failed: the server answered 404 Not Found; check the address]")
	assert.Empty(t, a.Data, "a model would read the reasons twice")
}

// TestLargePagesFitIntoOneResult: the result for ten very large pages is within the manifest's limit,
// which ask checks, in every mode.
func TestLargePagesFitIntoOneResult(t *testing.T) {
	var b strings.Builder
	for i := range 220 {
		fmt.Fprintf(&b, "<meta property=og:x%d content='%s'>", i, strings.Repeat("ä", 2000))
		fmt.Fprintf(&b, "<h2>%s</h2><a href=/%d%s>%s</a>", strings.Repeat("ö", 400), i, strings.Repeat("x", 1900), strings.Repeat("ü", 300))
	}
	for range 12 {
		fmt.Fprintf(&b, "<script type=application/ld+json>[\"%s\"]</script>", strings.Repeat("a", 60_000))
	}
	s := &site{pages: map[string]caisson.Result{}}
	var urls []string
	for i := range maxPages {
		url := fmt.Sprintf("https://a.example/%d", i)
		urls = append(urls, url)
		s.pages[url] = html(url, b.String())
	}
	list, err := json.Marshal(urls)
	require.NoError(t, err)
	for _, mode := range []string{text, links, structured} {
		a := ask(t, s, "crawl_batch", fmt.Sprintf(`{"urls":%s,"extract_type":%q,"max_chars":20000}`, list, mode))
		assert.True(t, a.Success, a.Error)
		a = ask(t, s, "fetch_page", fmt.Sprintf(`{"url":%q,"extract_type":%q,"max_chars":200000,"max_links":500}`, urls[0], mode))
		assert.True(t, a.Success, a.Error)
	}
}

func TestUsage(t *testing.T) {
	for _, arguments := range [][]string{nil, {"x"}, {"fetch_page", "x"}} {
		var out bytes.Buffer
		require.ErrorIs(t, run(arguments, strings.NewReader("{}"), &out, network{}), errUsage)
		assert.Empty(t, out.String())
	}
}
