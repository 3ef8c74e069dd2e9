package caisson

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// vector is one call of sdk/testdata, whose README explains it.
type vector struct {
	Name         string
	Function     string
	Request      string
	Body         []byte
	Status       Status
	Response     []byte
	Header       string
	ResponseBody []byte `json:"response_body"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../testdata/vectors.json")
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.Greater(t, len(vectors), 20)
	return vectors
}

// host is a host that answers every call alike, and hands out its response in small pieces.
type host struct {
	status   Status
	response []byte
	length   int // that it claims the response to have, if it is not 0
	left     []byte
	requests []string
	bodies   []string
}

func (h *host) function(name string) hostFunction {
	return hostFunction{name, h.call, h.read}
}

func (h *host) call(request, body []byte) (uint64, error) {
	h.requests, h.bodies = append(h.requests, string(request)), append(h.bodies, string(body))
	h.left = h.response
	length := len(h.response)
	if h.length != 0 {
		length = h.length
	}
	return uint64(h.status)<<32 | uint64(length), nil
}

func (h *host) read(buffer []byte) int {
	n := copy(buffer[:min(len(buffer), 7)], h.left)
	h.left = h.left[n:]
	return n
}
