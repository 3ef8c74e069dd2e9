//go:build wasip1

package main

import (
	"fmt"

	"github.com/caisson-run/caisson/internal/guests/script"
)

// raw is one call of a function of the host, as no SDK would make it.
type raw struct {
	Call string `json:"call"` // request, send, receive, exists or read
	Text string `json:"text"` // the request
	Body string `json:"body"`
	// At, if not zero, is the pointer that is passed instead of the request's (for read: the
	// buffer's), and Length the length instead of the request's. BodyAt and BodyLength are
	// those of the body.
	At         uint32 `json:"at"`
	Length     uint32 `json:"length"`
	BodyAt     uint32 `json:"body_at"`
	BodyLength uint32 `json:"body_length"`
}

type rawAnswer struct {
	Status   uint32 `json:"status"`
	Length   uint32 `json:"length"`
	Response []byte `json:"response,omitempty"` // as far as it could be read
	Read     int32  `json:"read,omitempty"`     // what read returned
}

//go:wasmimport caisson:net@1 request
func netRequest(at, length, body, bodyLength uint32) uint64

//go:wasmimport caisson:net@1 send
func netSend(at, length, body, bodyLength uint32) uint64

//go:wasmimport caisson:net@1 receive
func netReceive(at, length uint32) uint64

//go:wasmimport caisson:secrets@1 exists
func secretsExists(at, length uint32) uint64

func (r raw) run() rawAnswer {
	at, length := place(r.Text, r.At, r.Length)
	body, bodyLength := place(r.Body, r.BodyAt, r.BodyLength)
	var result uint64
	switch r.Call {
	case "request":
		result = netRequest(at, length, body, bodyLength)
	case "send":
		result = netSend(at, length, body, bodyLength)
	case "receive":
		result = netReceive(at, length)
	case "exists":
		result = secretsExists(at, length)
	case "read":
		return rawAnswer{Read: script.IORead(at, length)}
	default:
		script.Fail(fmt.Errorf("no call %q", r.Call))
	}
	return rawAnswer{Status: uint32(result >> 32), Length: uint32(result), Response: script.Response()}
}

// place returns the address and the length of a text, unless they are given.
func place(text string, at, length uint32) (uint32, uint32) {
	if at != 0 || length != 0 {
		return at, length
	}
	kept = append(kept, []byte(text))
	return script.Span(kept[len(kept)-1])
}

// kept keeps texts alive whose addresses the host has.
var kept [][]byte
