package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caisson-run/caisson/server/internal/problem"
)

// unparsedAnswer is net/http's answer to a request that it cannot parse, after the status line: no handler sees the
// request, and no handler's answer has these headers without a date.
const unparsedAnswer = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// asProblem returns the answer of net/http to a request that it cannot parse as a problem document, like all other
// refusals. It returns false for any other output.
func asProblem(output []byte) (written []byte, changed bool) {
	const start = "HTTP/1.1 "
	if !bytes.HasPrefix(output, []byte(start+"4")) && !bytes.HasPrefix(output, []byte(start+"5")) {
		return nil, false
	}
	head, detail, found := bytes.Cut(output, []byte(unparsedAnswer))
	if !found || bytes.ContainsAny(head, "\r\n") || len(head) < len(start)+3 {
		return nil, false
	}
	status, err := strconv.Atoi(string(head[len(start) : len(start)+3]))
	if err != nil {
		return nil, false
	}
	if status == http.StatusRequestHeaderFieldsTooLarge {
		detail = []byte("the header is too long; send less")
	}
	return unparsedProblem(status, string(detail)), true
}

// unparsedProblem returns the whole answer to a request that no handler sees.
func unparsedProblem(status int, detail string) []byte {
	p := problem.Problem{Title: http.StatusText(status), Status: status, Detail: detail}
	body, _ := json.Marshal(p) // no field can fail
	return fmt.Appendf(nil,
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: "+
			"nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, p.Title, problem.ContentType, len(body)+1, body)
}
