package provider

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// brave is the Brave Search API, version 1 (api-dashboard.search.brave.com/api-reference).
func brave() Provider {
	return Provider{Brave, braveRequest, decodeBrave, explainBrave}
}

func braveRequest(q Query) (caisson.Request, error) {
	parameters := url.Values{
		"q": {q.Text}, "count": {strconv.Itoa(q.Count)}, "text_decorations": {"false"}, "result_filter": {"web"},
	}
	if q.Language != "" {
		parameters.Set("search_lang", q.Language)
	}
	if q.Freshness != "" {
		parameters.Set("freshness", "p"+q.Freshness[:1]) // pd, pw, pm, py
	}
	return caisson.Request{URL: "https://api.search.brave.com/res/v1/web/search?" + parameters.Encode()}, nil
}

func explainBrave(status int) string {
	switch status {
	case 401, 403:
		return "the key in BRAVE_API_KEY is not accepted; the operator must set another"
	case 422:
		return "the search or the key in BRAVE_API_KEY is not accepted; write a search of at most 400 characters and 50 " +
			"words, and a language such as en"
	case 429:
		return "the plan's limit of searches is reached; try again later"
	}
	return ""
}

type braveAnswer struct {
	Web *struct { // absent if nothing was found
		Results []struct {
			Title       string `json:"title"`
			URL         string `json:"url"`
			Description string `json:"description"`
			Age         string `json:"age"`
			PageAge     string `json:"page_age"`
		} `json:"results"`
	} `json:"web"`
	Type string `json:"type"`
}

func decodeBrave(body []byte) ([]Result, error) {
	var answer braveAnswer
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	if answer.Web == nil {
		if answer.Type != "search" {
			return nil, errUnreadable
		}
		return nil, nil
	}
	var found []Result
	for _, r := range answer.Web.Results {
		found = append(found, Result{r.Title, r.URL, r.Description, cmp.Or(r.PageAge, r.Age)})
	}
	return found, nil
}

// tavily is the Tavily Search API (docs.tavily.com). It has no parameter for the language.
func tavily() Provider {
	return Provider{Tavily, tavilyRequest, decodePlain, explainTavily}
}

type tavilyQuery struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	TimeRange  string `json:"time_range,omitempty"`
}

func tavilyRequest(q Query) (caisson.Request, error) {
	body, err := json.Marshal(tavilyQuery{q.Text, q.Count, q.Freshness})
	if err != nil {
		return caisson.Request{}, err
	}
	return caisson.Request{
		Method: "POST", URL: "https://api.tavily.com/search",
		Headers: [][2]string{{"Content-Type", "application/json"}}, Body: body,
	}, nil
}

func explainTavily(status int) string {
	switch status {
	case 401, 403:
		return "the key in TAVILY_API_KEY is not accepted; the operator must set another"
	case 429:
		return "there were too many searches at once; try again later"
	case 432, 433:
		return "the plan's limit of searches is reached; the operator can raise it"
	}
	return ""
}

// plainAnswer is the response of Tavily and of SearXNG, which differ in the name of one member.
type plainAnswer struct {
	Results *[]struct {
		Title         string `json:"title"`
		URL           string `json:"url"`
		Content       string `json:"content"`
		PublishedDate string `json:"published_date"` // Tavily's
		Published     string `json:"publishedDate"`  // SearXNG's
	} `json:"results"`
}

func decodePlain(body []byte) ([]Result, error) {
	var answer plainAnswer
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, errUnreadable
	}
	var found []Result
	for _, r := range *answer.Results {
		found = append(found, Result{r.Title, r.URL, r.Content, cmp.Or(r.PublishedDate, r.Published)})
	}
	return found, nil
}

// searxng is an instance of SearXNG (docs.searxng.org/dev/search_api) whose operator has enabled the
// format json.
func searxng(base *url.URL) Provider {
	return Provider{SearXNG, func(q Query) (caisson.Request, error) { return searxngRequest(base, q), nil }, decodePlain,
		explainSearXNG}
}

func searxngRequest(base *url.URL, q Query) caisson.Request {
	parameters := url.Values{"q": {q.Text}, "format": {"json"}, "pageno": {"1"}}
	if q.Language != "" {
		parameters.Set("language", q.Language)
	}
	switch q.Freshness {
	case "":
	case "week": // it supports only day, month and year
		parameters.Set("time_range", "month")
	default:
		parameters.Set("time_range", q.Freshness)
	}
	address := *base
	address.Path = strings.TrimSuffix(base.Path, "/") + "/search"
	address.RawPath, address.RawQuery = "", parameters.Encode()
	return caisson.Request{URL: address.String()}
}

func explainSearXNG(status int) string {
	switch status {
	case 403:
		return "it does not answer in JSON; its operator must add json to search.formats in its settings"
	case 429:
		return "it limits how often it may be asked; its operator can change that"
	}
	return ""
}
