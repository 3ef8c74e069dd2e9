package caisson

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"
)

// Do sends a request and waits for the response. The error is an [*Error] or [ErrOutside].
func Do(request Request) (*Response, error) {
	return do(netRequest(), request)
}

// DoAll sends requests side by side, as many at once as the host lets one call have, and
// returns what became of each, in order. One that fails does not hold up the others.
func DoAll(requests []Request) []Result {
	return doAll(netSend(), netReceive(), requests)
}

func do(function hostFunction, request Request) (*Response, error) {
	response, err := exchange(function, request)
	if err != nil {
		return nil, err
	}
	return function.readResponse(response)
}

// exchange hands a request to the host and returns what it answers.
func exchange(function hostFunction, request Request) ([]byte, error) {
	wire, ok := toWire(request)
	if !ok {
		return nil, &Error{Op: function.name, Status: Invalid, Message: "the method, the URL and the headers must be UTF-8"}
	}
	return function.ask(wire, request.Body)
}

// maxInFlight is how many requests of a call the host works on at once.
const maxInFlight = 10

// doAll waits for the oldest request when there are too many, since the next may begin as
// soon as any has ended.
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

// flight is a request that the host works on.
type flight struct {
	index int
	id    wireID
}

func start(send hostFunction, request Request) (wireID, error) {
	response, err := exchange(send, request)
	if err != nil {
		return wireID{}, err
	}
	var id wireID
	if err := json.Unmarshal(response, &id); err != nil {
		return wireID{}, send.malformed()
	}
	return id, nil
}

func (f flight) land(receive hostFunction, results []Result) {
	result := &results[f.index]
	response, err := receive.ask(f.id, nil)
	if err != nil {
		result.Err = err
		return
	}
	result.Response, result.Err = receive.readResponse(response)
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

// toWire returns the request as the host reads it, or false if JSON cannot say it.
func toWire(request Request) (wireRequest, bool) {
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
	return wire, valid
}

// milliseconds rounds up, up to the most that the host reads.
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

// readResponse reads the length of the header, the header and the body.
func (f hostFunction) readResponse(frame []byte) (*Response, error) {
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
	return &Response{Status: wire.Status, URL: wire.URL, Headers: wire.Headers, Body: frame[length:], Truncated: wire.Truncated}, nil
}
