package provider_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/search/internal/provider"
)

// services returns the documented responses of the providers, and records the requests.
func services(asked *[]string) provider.Doer {
	responses := map[string]string{
		"GET api.search.brave.com/res/v1/web/search": `{"type":"search","query":{"original":"x","more_results_available":true},"mixed":{"type":"mixed"},"web":{"type":"search","family_friendly":true,"results":[
			{"type":"search_result","subtype":"generic","title":"A &amp; B","url":"https://a.example/","description":"About <strong>caissons</strong>\u200b.","page_age":"2026-01-15T00:00:00","age":"January 15, 2026","profile":{"name":"A"}},
			{"title":"Second","url":"https://b.example/x?y=1","description":"","age":"2 days ago"},
			{"title":"Not the web","url":"ftp://c.example/","description":""},
			{"title":"Twice","url":"https://a.example/","description":""}]}}`,
		"POST api.tavily.com/search":    `{"query":"x","answer":null,"images":[],"results":[{"title":"T","url":"https://t.example/","content":"A line\nand another","score":0.98,"raw_content":null,"published_date":"Mon, 02 Mar 2026 10:00:00 GMT"}],"response_time":1.2}`,
		"GET searx.example/find/search": `{"query":"x","number_of_results":0,"results":[{"title":"S","url":"https://s.example/","content":"c","engine":"e","publishedDate":null,"score":1.5,"positions":[1]}],"answers":[],"suggestions":[],"unresponsive_engines":[["x","timeout"]]}`,
	}
	return func(r caisson.Request) (*caisson.Response, error) {
		_, address, _ := strings.Cut(r.URL, "://")
		request := cmp.Or(r.Method, "GET") + " " + address
		*asked = append(*asked, strings.TrimSpace(request+" "+string(r.Body)))
		endpoint, _, _ := strings.Cut(request, "?")
		if r.Method == "POST" && !slices.Contains(r.Headers, [2]string{"Content-Type", "application/json"}) {
			return reply(415, "{}")(r)
		}
		return reply(200, responses[endpoint])(r)
	}
}

func reply(status int, body string) provider.Doer {
	return func(caisson.Request) (*caisson.Response, error) {
		return &caisson.Response{Status: status, Headers: [][2]string{{"retry-after", "3"}}, Body: []byte(body)}, nil
	}
}

func secrets(names ...string) func(string) (bool, error) {
	return func(name string) (bool, error) { return strings.Contains(strings.Join(names, " ")+" ", name+" "), nil }
}

func TestSearch(t *testing.T) {
	var asked []string
	do := services(&asked)
	for _, test := range []struct {
		name     string
		settings provider.Settings
		query    provider.Query
		asked    string
		want     []provider.Result
	}{
		{
			"brave", provider.Settings{HasSecret: secrets("BRAVE_API_KEY", "TAVILY_API_KEY"), SearXNG: "https://searx.example/"},
			provider.Query{Text: "a & b", Count: 5, Language: "de", Freshness: "week"},
			"GET api.search.brave.com/res/v1/web/search?count=5&freshness=pw&q=a+%26+b&result_filter=web&search_lang=de&text_decorations=false",
			[]provider.Result{
				{Title: "A & B", URL: "https://a.example/", Snippet: "About caissons.", Published: "2026-01-15T00:00:00"},
				{Title: "Second", URL: "https://b.example/x?y=1", Published: "2 days ago"},
			},
		},
		{
			"brave, one result", provider.Settings{Provider: "brave", HasSecret: secrets("BRAVE_API_KEY")},
			provider.Query{Text: "x", Count: 1},
			"GET api.search.brave.com/res/v1/web/search?count=1&q=x&result_filter=web&text_decorations=false",
			[]provider.Result{{Title: "A & B", URL: "https://a.example/", Snippet: "About caissons.", Published: "2026-01-15T00:00:00"}},
		},
		{
			"tavily", provider.Settings{HasSecret: secrets("TAVILY_API_KEY"), SearXNG: "https://searx.example/"},
			provider.Query{Text: `"x"`, Language: "de", Freshness: "year"},
			`POST api.tavily.com/search {"query":"\"x\"","max_results":5,"time_range":"year"}`,
			[]provider.Result{{Title: "T", URL: "https://t.example/", Snippet: "A line and another", Published: "Mon, 02 Mar 2026 10:00:00 GMT"}},
		},
		{
			"searxng", provider.Settings{HasSecret: secrets(), SearXNG: "https://searx.example/find/"},
			provider.Query{Text: "x", Count: 99, Language: "pt-br", Freshness: "day"},
			"GET searx.example/find/search?format=json&language=pt-br&pageno=1&q=x&time_range=day",
			[]provider.Result{{Title: "S", URL: "https://s.example/", Snippet: "c"}},
		},
		{
			"searxng by name", provider.Settings{Provider: "searxng", HasSecret: secrets("BRAVE_API_KEY"), SearXNG: "http://searx.example/find"},
			provider.Query{Text: "x", Freshness: "week"},
			"GET searx.example/find/search?format=json&pageno=1&q=x&time_range=month",
			[]provider.Result{{Title: "S", URL: "https://s.example/", Snippet: "c"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked = nil
			p, err := provider.Choose(test.settings)
			require.NoError(t, err)
			found, err := p.Search(do, test.query)
			require.NoError(t, err)
			assert.Equal(t, test.want, found)
			assert.Equal(t, []string{test.asked}, asked)
		})
	}
}

func TestChoose(t *testing.T) {
	failing := func(string) (bool, error) {
		return false, &caisson.Error{Status: caisson.Unavailable, Message: "no secrets here"}
	}
	for _, test := range []struct {
		name     string
		settings provider.Settings
		want     string
	}{
		{"nothing", provider.Settings{HasSecret: secrets()}, "no search service is set up; the operator must set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL"},
		{"a name without its key", provider.Settings{Provider: "tavily", HasSecret: secrets("BRAVE_API_KEY")}, "WEB_SEARCH_PROVIDER is tavily, but TAVILY_API_KEY is not set"},
		{"a name without its address", provider.Settings{Provider: "searxng", HasSecret: secrets("BRAVE_API_KEY")}, "WEB_SEARCH_PROVIDER is searxng, but SEARXNG_URL is not set"},
		{"another name", provider.Settings{Provider: "bing", HasSecret: secrets("BRAVE_API_KEY")}, "WEB_SEARCH_PROVIDER names a service that this tool does not know; the operator must set it to brave, tavily or searxng"},
		{"a failing host", provider.Settings{HasSecret: failing}, "no secrets here"},
		{"a failing host, by name", provider.Settings{Provider: "brave", HasSecret: failing}, "no secrets here"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := provider.Choose(test.settings)
			assert.EqualError(t, err, test.want)
		})
	}
	for _, address := range []string{"searx.example", "ftp://x/", "https://u:p@x/", "https://x/?q=1", "https://x/#f", "https://", "::"} {
		_, err := provider.Choose(provider.Settings{SearXNG: address, HasSecret: secrets()})
		assert.EqualError(t, err, "SEARXNG_URL is not the address of an instance, such as https://searx.example", address)
	}
}

func TestFailures(t *testing.T) {
	settings := map[string]provider.Settings{
		"brave":   {HasSecret: secrets("BRAVE_API_KEY")},
		"tavily":  {HasSecret: secrets("TAVILY_API_KEY")},
		"searxng": {HasSecret: secrets(), SearXNG: "https://searx.example"},
	}
	for _, test := range []struct {
		provider string
		status   int
		body     string
		want     string
	}{
		{"brave", 401, `{}`, "it answered 401: the key in BRAVE_API_KEY is not accepted; the operator must set another; it asks to wait 3 seconds"},
		{"brave", 422, `{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}`, "it answered 422: the search or the key in BRAVE_API_KEY is not accepted; write a search of at most 400 characters and 50 words, and a language such as en; it asks to wait 3 seconds"},
		{"brave", 429, `{}`, "it answered 429: the plan's limit of searches is reached; try again later; it asks to wait 3 seconds"},
		{"brave", 500, ``, "the server answered 500 Internal Server Error; it may work later; it asks to wait 3 seconds"},
		{"brave", 200, `{"type":"ErrorResponse"}`, "its answer could not be read"},
		{"brave", 200, `<html>`, "its answer could not be read"},
		{"tavily", 401, `{"detail":{"error":"Unauthorized"}}`, "it answered 401: the key in TAVILY_API_KEY is not accepted; the operator must set another; it asks to wait 3 seconds"},
		{"tavily", 429, `{}`, "it answered 429: there were too many searches at once; try again later; it asks to wait 3 seconds"},
		{"tavily", 432, `{}`, "it answered 432: the plan's limit of searches is reached; the operator can raise it; it asks to wait 3 seconds"},
		{"tavily", 200, `{"results":{}}`, "its answer could not be read"},
		{"tavily", 200, `{}`, "its answer could not be read"},
		{"searxng", 403, ``, "it answered 403: it does not answer in JSON; its operator must add json to search.formats in its settings; it asks to wait 3 seconds"},
		{"searxng", 429, ``, "it answered 429: it limits how often it may be asked; its operator can change that; it asks to wait 3 seconds"},
		{"searxng", 404, ``, "the server answered 404 Not Found; check the address; it asks to wait 3 seconds"},
		{"searxng", 200, `[]`, "its answer could not be read"},
		{"searxng", 200, `{"results":null}`, "its answer could not be read"},
	} {
		t.Run(fmt.Sprintf("%s %d %s", test.provider, test.status, test.body), func(t *testing.T) {
			p, err := provider.Choose(settings[test.provider])
			require.NoError(t, err)
			require.Equal(t, test.provider, p.Name)
			_, err = p.Search(reply(test.status, test.body), provider.Query{Text: "x"})
			assert.EqualError(t, err, test.want)
		})
	}
	p, err := provider.Choose(settings["brave"])
	require.NoError(t, err)
	_, err = p.Search(func(caisson.Request) (*caisson.Response, error) { return nil, errors.New("refused by the host") }, provider.Query{})
	assert.EqualError(t, err, "refused by the host")
	_, err = p.Search(func(caisson.Request) (*caisson.Response, error) {
		return &caisson.Response{Status: 200, Truncated: true, Body: []byte(`{"type":"search"`)}, nil
	}, provider.Query{})
	assert.EqualError(t, err, "its answer is larger than this call may fetch")
}

// FuzzDecode: for any response, the results are a few plain lines with usable addresses.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), []byte(`{"type":"search","web":{"results":[{"title":"<b>a</b>&#x200b;","url":"https://x/\u0001","description":"b","age":"c"}]}}`))
	f.Add(uint8(1), []byte(`{"results":[{"title":"a","url":"https://x/","content":"b"},null]}`))
	f.Add(uint8(2), []byte(`{"results":[{"title":"a","url":"//x","content":"b","publishedDate":"\ud800"}]}`))
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		p, err := provider.Choose([]provider.Settings{
			{HasSecret: secrets("BRAVE_API_KEY")}, {HasSecret: secrets("TAVILY_API_KEY")}, {HasSecret: secrets(), SearXNG: "https://x"},
		}[which%3])
		require.NoError(t, err)
		found, err := p.Search(reply(200, string(body)), provider.Query{Text: "x", Count: 3})
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(found), 3)
		encoded, err := json.Marshal(found)
		require.NoError(t, err)
		require.Less(t, len(encoded), 50_000)
		for _, r := range found {
			parsed, err := url.Parse(r.URL)
			require.NoError(t, err)
			require.Contains(t, []string{"http", "https"}, parsed.Scheme)
			require.NotContains(t, r.Title+r.Snippet+r.URL+r.Published, "\n")
			require.NotContains(t, r.Title+r.Snippet+r.URL+r.Published, "\u200b")
		}
	})
}
