package provider

import (
	"encoding/json"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// tavily is the Tavily Search API (docs.tavily.com). It has no parameter for the language.
func tavily() Provider {
	return Provider{Name: Tavily, request: tavilyRequest, decode: decodeTavily, explain: explainTavily}
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

type tavilyAnswer struct {
	Results *[]struct {
		Title         string `json:"title"`
		URL           string `json:"url"`
		Content       string `json:"content"`
		PublishedDate string `json:"published_date"`
	} `json:"results"`
}

func decodeTavily(body []byte) ([]Result, error) {
	var answer tavilyAnswer
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
