package wording_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
)

func TestFailure(t *testing.T) {
	denial := &caisson.Denial{Permission: "network", Value: "GET https://a.example/", Rule: "no grant names a.example"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{&caisson.Error{Status: caisson.Denied, Denial: denial}, "denied: network GET https://a.example/: no grant names a.example"},
		{fmt.Errorf("wrapped: %w", &caisson.Error{Status: caisson.IO, Message: "a.example has no address"}), "a.example has no address"},
		{&caisson.Error{Status: caisson.IO}, "io"},
		{&caisson.Error{Status: caisson.Invalid, Message: "the URL has no host"}, "the URL has no host"},
		{&caisson.Error{Status: caisson.Deadline, Message: "x"}, "there was no answer in time; it may work later"},
		{&caisson.Error{Status: caisson.Limit, LimitName: "http_calls", LimitValue: 20}, "this call has used up what it may do (limit: http_calls is 20); ask for less at once"},
	} {
		assert.Equal(t, test.want, wording.Failure(test.err))
	}
}

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		status int
		retry  string
		want   string
	}{
		{404, "", "the server answered 404 Not Found; check the address"},
		{400, "", "the server answered 400 Bad Request"},
		{599, "", "the server answered 599"},
		{429, "30", "the server answered 429 Too Many Requests; it may work later; it asks to wait 30 seconds"},
		{503, "1", "the server answered 503 Service Unavailable; it may work later; it asks to wait 1 second"},
		{503, "-1", "the server answered 503 Service Unavailable; it may work later"},
		{503, "99999999999999999999", "the server answered 503 Service Unavailable; it may work later"},
		{503, "Wed, 21 Oct 2026 07:28:00 GMT", "the server answered 503 Service Unavailable; it may work later"},
	} {
		response := &caisson.Response{Status: test.status}
		if test.retry != "" {
			response.Headers = [][2]string{{"retry-after", test.retry}}
		}
		assert.Equal(t, test.want, wording.Status(response))
	}
}
