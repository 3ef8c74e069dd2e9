// Package handler is the tool of the benchmarks in Go, apart from how its input and
// output travel. It takes {"text": "…", "nums": […]} and gives
// {"upper": "…", "sum": N, "calls": N}.
package handler

import (
	"encoding/json"
	"strings"
)

// Handler answers calls and counts them, so that state which leaks from call to call is
// seen in the answer. The zero value is ready. It is for one goroutine.
type Handler struct{ calls int64 }

type input struct {
	Text string  `json:"text"`
	Nums []int64 `json:"nums"`
}

type output struct {
	Upper string `json:"upper"`
	Sum   int64  `json:"sum"`
	Calls int64  `json:"calls"`
}

// Handle answers one call. An error means that the input is not the JSON object that the
// tool takes; such a call is not counted.
func (h *Handler) Handle(text []byte) ([]byte, error) {
	var in input
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	var sum int64
	for _, number := range in.Nums {
		sum += number
	}
	h.calls++
	return json.Marshal(output{Upper: strings.ToUpper(in.Text), Sum: sum, Calls: h.calls})
}
