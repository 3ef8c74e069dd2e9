package provider

import (
	"net/url"
	"strconv"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// brave is the Brave Search API, version 1 (api-dashboard.search.brave.com/api-reference).
func brave() Provider {
	return Provider{Name: Brave, request: braveRequest, decode: decodeBrave, explain: explainBrave}
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
	return caisson.Request{Method: "GET", URL: "https://api.search.brave.com/res/v1/web/search?" + parameters.Encode()}, nil
}

func explainBrave(status int) string {
	switch status {
	case 401, 403:
		return "the key in BRAVE_API_KEY is not accepted; the operator must set another"
	case 422:
		return "the search or the key in BRAVE_API_KEY is not accepted; write a search of at most 400 characters and 50 words, and a language such as en"
	case 429:
		return "the plan's limit of searches is reached; try again later"
	}
	return ""
}

type braveAnswer struct {
	Web *struct { // absent where nothing was found
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
		published := r.PageAge
		if published == "" {
			published = r.Age
		}
		found = append(found, Result{r.Title, r.URL, r.Description, published})
	}
	return found, nil
}
