//go:build wasip1

package main

import (
	"time"

	"github.com/caisson-run/caisson/internal/guests/script"
	caisson "github.com/caisson-run/caisson/sdk/go"
)

type request struct {
	Method    string      `json:"method"`
	URL       string      `json:"url"`
	Headers   [][2]string `json:"headers"`
	Body      string      `json:"body"`
	TimeoutMS int         `json:"timeout_ms"`
}

// answer is the result of a request or a question: a response or a failure.
type answer struct {
	Status    int             `json:"status,omitempty"`
	URL       string          `json:"url,omitempty"`
	Headers   [][2]string     `json:"headers,omitempty"`
	Body      string          `json:"body,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	Exists    *bool           `json:"exists,omitempty"`
	Error     *script.Failure `json:"error,omitempty"`
}

func (r request) request() caisson.Request {
	return caisson.Request{
		Method: r.Method, URL: r.URL, Headers: r.Headers, Body: []byte(r.Body),
		Timeout: time.Duration(r.TimeoutMS) * time.Millisecond,
	}
}

func oneByOne(requests []request) []answer {
	answers := make([]answer, len(requests))
	for i, r := range requests {
		answers[i] = answerOf(caisson.Do(r.request()))
	}
	return answers
}

func sideBySide(requests []request) []answer {
	all := make([]caisson.Request, len(requests))
	for i, r := range requests {
		all[i] = r.request()
	}
	answers := make([]answer, len(requests))
	for i, result := range caisson.DoAll(all) {
		answers[i] = answerOf(result.Response, result.Err)
	}
	return answers
}

func secret(name string) answer {
	exists, err := caisson.SecretExists(name)
	if err != nil {
		return answerOf(nil, err)
	}
	return answer{Exists: &exists}
}

func answerOf(response *caisson.Response, err error) answer {
	if err == nil {
		return answer{Status: response.Status, URL: response.URL, Headers: response.Headers,
			Body: string(response.Body), Truncated: response.Truncated}
	}
	return answer{Error: script.NewFailure(err)}
}
