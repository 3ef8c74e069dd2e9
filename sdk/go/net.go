package caisson

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Request is an HTTP request. The host adds the secrets that belong to its URL.
type Request struct {
	Method string // such as GET; empty: GET
	URL    string // absolute, http or https
	// Headers are pairs of name and value, in order.
	Headers [][2]string
	Body    []byte
	// Timeout limits the whole request, including redirects. It is rounded up to milliseconds. Zero:
	// only the call's own timeout applies.
	Timeout time.Duration
}

// Response is an HTTP response. A status such as 404 is a response, not an error.
type Response struct {
	Status int
	URL    string // of the response, after redirects
	// Headers are pairs of name and value, in order.
	Headers [][2]string
	Body    []byte
	// Truncated means that the body was truncated at the call's limit.
	Truncated bool
}

// Header returns the first value of the header with this name, ignoring case, or "".
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header[0], name) {
			return header[1]
		}
	}
	return ""
}

// Result is the result of one of several requests: either Response or Err is nil.
type Result struct {
	Response *Response
	Err      error
}

// Do sends a request and waits for the response. The error is an [*Error] or [ErrOutside].
func Do(request Request) (*Response, error) { return do(netRequest(), request) }

// DoAll sends requests concurrently, as many at a time as the host allows one call, and returns their
// results in order. A failed request does not affect the other requests.
func DoAll(requests []Request) []Result { return doAll(netSend(), netReceive(), requests) }

func do(function hostFunction, request Request) (*Response, error) {
	wire, err := toWire(function, request)
	if err != nil {
		return nil, err
	}
	return function.response(wire, request.Body)
}

// maxInFlight is the host's limit of concurrent requests per call.
const maxInFlight = 10

// doAll waits for the oldest request whenever the limit is reached.
func doAll(send, receive hostFunction, requests []Request) []Result {
	results := make([]Result, len(requests))
	var sent []flight
	for i, request := range requests {
		if len(sent) == maxInFlight {
			sent[0].land(receive, results)
			sent = sent[1:]
		}
		id, err := start(send, request)
		if err != nil {
			results[i].Err = err
			continue
		}
		sent = append(sent, flight{i, id})
	}
	for _, f := range sent {
		f.land(receive, results)
	}
	return results
}

type flight struct {
	index int
	id    wireID
}

func start(send hostFunction, request Request) (wireID, error) {
	wire, err := toWire(send, request)
	if err != nil {
		return wireID{}, err
	}
	return answer[wireID](send, wire, request.Body)
}

func (f flight) land(receive hostFunction, results []Result) {
	result := &results[f.index]
	result.Response, result.Err = receive.response(f.id, nil)
}

type wireID struct {
	ID int64 `json:"id"`
}

type wireRequest struct {
	Method    string      `json:"method"`
	URL       string      `json:"url"`
	Headers   [][2]string `json:"headers"`
	TimeoutMS int64       `json:"timeout_ms,omitempty"`
}

// toWire returns the request in its wire form. It fails for text that JSON cannot represent.
func toWire(function hostFunction, request Request) (wireRequest, error) {
	wire := wireRequest{request.Method, request.URL, request.Headers, milliseconds(request.Timeout)}
	if wire.Method == "" {
		wire.Method = "GET"
	}
	if wire.Headers == nil {
		wire.Headers = [][2]string{} // not null
	}
	valid := utf8.ValidString(wire.Method) && utf8.ValidString(wire.URL)
	for _, header := range wire.Headers {
		valid = valid && utf8.ValidString(header[0]) && utf8.ValidString(header[1])
	}
	if !valid {
		return wire, &Error{Op: function.name, Status: Invalid, Message: "the method, the URL and the headers must be UTF-8"}
	}
	return wire, nil
}

// milliseconds rounds up, to at most the largest value that the host accepts.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return min(ms, math.MaxUint32)
}

type wireResponse struct {
	Status    int         `json:"status"`
	URL       string      `json:"url"`
	Headers   [][2]string `json:"headers"`
	Truncated bool        `json:"truncated"`
}

// response calls a function whose response is the length of a header, the header and a body.
func (f hostFunction) response(request any, body []byte) (*Response, error) {
	frame, err := f.ask(request, body)
	if err != nil {
		return nil, err
	}
	const prefix = 4
	if len(frame) < prefix {
		return nil, f.malformed()
	}
	length := uint64(binary.LittleEndian.Uint32(frame))
	frame = frame[prefix:]
	if length > uint64(len(frame)) {
		return nil, f.malformed()
	}
	var wire wireResponse
	if err := json.Unmarshal(frame[:length], &wire); err != nil {
		return nil, f.malformed()
	}
	return &Response{Status: wire.Status, URL: wire.URL, Headers: wire.Headers, Body: frame[length:],
		Truncated: wire.Truncated}, nil
}
