//go:build wasip1

package main

import (
	"fmt"
	"unsafe"
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

// rawAnswer is what a call returned.
type rawAnswer struct {
	Status   uint32 `json:"status"`
	Length   uint32 `json:"length"`
	Response []byte `json:"response,omitempty"` // as far as it could be read
	Read     int32  `json:"read,omitempty"`     // what read returned
}

//go:wasmimport caisson:io@1 read
func ioRead(at, length uint32) int32

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
		return rawAnswer{Read: ioRead(at, length)}
	default:
		fail(fmt.Errorf("no call %q", r.Call))
	}
	a := rawAnswer{Status: uint32(result >> 32), Length: uint32(result)}
	buffer := make([]byte, 1000) // less than many responses have
	for {
		n := ioRead(address(buffer), uint32(len(buffer)))
		if n <= 0 {
			return a
		}
		a.Response = append(a.Response, buffer[:n]...)
	}
}

// place returns where a text stands, unless that is given.
func place(text string, at, length uint32) (uint32, uint32) {
	if at != 0 || length != 0 {
		return at, length
	}
	kept = append(kept, []byte(text))
	return address(kept[len(kept)-1]), uint32(len(text))
}

// kept keeps alive what the host is told the address of.
var kept [][]byte

func address(bytes []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))) }
