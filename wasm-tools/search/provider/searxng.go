package provider

import (
	"net/url"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// searxng is an instance of SearXNG (docs.searxng.org/dev/search_api), whose operator has
// switched its format json on.
func searxng(base *url.URL) Provider {
	return Provider{
		Name:    SearXNG,
		request: func(q Query) (caisson.Request, error) { return searxngRequest(base, q), nil },
		decode:  decodeSearXNG,
		explain: explainSearXNG,
	}
}

func searxngRequest(base *url.URL, q Query) caisson.Request {
	parameters := url.Values{"q": {q.Text}, "format": {"json"}, "pageno": {"1"}}
	if q.Language != "" {
		parameters.Set("language", q.Language)
	}
	switch q.Freshness {
	case "":
	case "week": // its documentation knows day, month and year
		parameters.Set("time_range", "month")
	default:
		parameters.Set("time_range", q.Freshness)
	}
	address := *base
	address.Path = strings.TrimSuffix(base.Path, "/") + "/search"
	address.RawPath, address.RawQuery = "", parameters.Encode()
	return caisson.Request{Method: "GET", URL: address.String()}
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

type searxngAnswer struct {
	Results *[]struct {
		Title         string `json:"title"`
		URL           string `json:"url"`
		Content       string `json:"content"`
		PublishedDate string `json:"publishedDate"`
	} `json:"results"`
}

func decodeSearXNG(body []byte) ([]Result, error) {
	var answer searxngAnswer
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, errUnreadable
	}
	var found []Result
	for _, r := range *answer.Results {
		found = append(found, Result{r.Title, r.URL, r.Content, r.PublishedDate})
	}
	return found, nil
}
