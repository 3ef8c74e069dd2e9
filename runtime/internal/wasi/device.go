package wasi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
)

// Devices are virtual files for a guest that cannot import host functions, such as a script in an interpreter. It opens
// them in a preopened directory.
//
// A guest writes its result to "result" and reads random bytes from "random". It calls host functions through "host":
// it writes a line "FUNCTION REQUEST BODY\n", where REQUEST and BODY are lengths in bytes, followed by these bytes.
// Then it reads a line "STATUS LENGTH\n", followed by a response of that length.
type Devices struct {
	// Folder is the guest path of the directory, which must be preopened. Its files of the same names are hidden.
	Folder string
	Result *Output
	// Begin is called with a request that has a body, before the body comes. It returns the request with room for the body
	// after it. If the call is refused whatever its body holds, Begin returns the response, and no byte of the body is
	// kept.
	Begin func(ctx context.Context, function string, request []byte, body int64) (
		bytes []byte, refused *Response, err error)
	// Invoke calls a host function. The first request bytes are the request; the rest is its body. The caller does not use
	// the bytes afterwards.
	Invoke func(ctx context.Context, function string, bytes []byte, request int) (Response, error)
	// MaxRequest and MaxBody are the maximum lengths of a request and of its body, in bytes.
	MaxRequest, MaxBody int64

	host hostDevice // one for all descriptors, so that a guest cannot make the host keep a request for each
}

// Response is the answer of a host function to a caller that has no linear memory to read it into: a status (ABI.md,
// "Calling"), and head followed by body.
type Response struct {
	Status     uint32
	Head, Body []byte
}

// maxDevices is the maximum number of open devices of a guest.
const maxDevices = 16

// device is an open file of [Devices].
type device interface {
	read(c *call, piece []byte) (int, error)
	write(c *call, piece []byte) (int, error)
}

// device opens the device that parameters 0, 2 and 3 of path_open name. It returns nil for any other path. Opening one
// ends the start of a program, since the data read or written depends on the call.
func (c *call) device() (*descriptor, error) {
	s := c.system
	if s.Devices == nil {
		return nil, nil
	}
	directory, err := s.descriptor(c.u32(0))
	if err != nil || directory.preopen != s.Devices.Folder {
		return nil, err
	}
	path, err := c.path(2)
	if err != nil {
		return nil, err
	}
	var found *descriptor
	switch path {
	case "result":
		found = &descriptor{number: opened, output: s.Devices.Result}
	case "random":
		found = &descriptor{number: opened, device: randomDevice{}}
	case "host":
		s.Devices.host.devices = s.Devices
		found = &descriptor{number: opened, device: &s.Devices.host}
	default:
		return nil, nil
	}
	if s.Starting {
		return nil, &StartError{Function: "path_open", Path: s.Devices.Folder + "/" + path}
	}
	open := 0
	for _, d := range s.descriptors[min(len(s.descriptors), standardStreams):] {
		if d != nil && (d.device != nil || d.output != nil) {
			open++
		}
	}
	if open >= maxDevices {
		return nil, EMFILE
	}
	return found, nil
}

// randomDevice reads the call's random bytes.
type randomDevice struct{}

func (randomDevice) read(c *call, piece []byte) (int, error) {
	if c.system.Random == nil {
		return 0, EIO
	}
	n, err := io.ReadFull(c.system.Random, piece)
	if err != nil {
		return n, EIO
	}
	return n, nil
}

func (randomDevice) write(*call, []byte) (int, error) { return 0, EBADF }

// maxLine is the maximum length of the line before a request.
const maxLine = 128

// hostDevice takes one request after the other.
type hostDevice struct {
	devices    *Devices
	function   string    // of the request that is being written; empty before its line is read
	request    int64     // its length
	body       int64     // bytes of its body that are yet to come
	begun      bool      // [Devices.Begin] was called
	refused    *Response // by Begin
	written    []byte    // the known part of the line, then the bytes after it
	head, rest []byte    // the response that is not yet read
}

// write takes the next bytes of a request. It calls the function once the request is complete, and takes no byte after
// it: the guest writes the next request with a separate call.
func (h *hostDevice) write(c *call, piece []byte) (int, error) {
	h.head, h.rest = nil, nil
	taken := 0
	if h.function == "" {
		end := bytes.IndexByte(piece, '\n')
		taken = end + 1
		if end < 0 {
			end, taken = len(piece), len(piece)
		}
		if len(h.written)+end > maxLine {
			h.written = nil
			return 0, EINVAL
		}
		h.written = append(h.written, piece[:end]...)
		if taken == 0 || piece[taken-1] != '\n' {
			return taken, nil
		}
		line := h.written
		h.written = nil
		if err := h.begin(line); err != nil {
			return 0, err
		}
		piece = piece[taken:]
	}
	if !h.begun {
		n := min(int64(len(piece)), h.request-int64(len(h.written)))
		h.written = append(h.written, piece[:n]...)
		piece, taken = piece[n:], taken+int(n)
		if int64(len(h.written)) < h.request {
			return taken, nil
		}
		h.begun = true
		if h.body > 0 {
			var err error
			if h.written, h.refused, err = h.devices.Begin(c.ctx, h.function, h.written, h.body); err != nil {
				return taken, err
			}
		}
	}
	n := min(int64(len(piece)), h.body)
	if h.refused == nil {
		h.written = append(h.written, piece[:n]...)
	}
	h.body -= n
	taken += int(n)
	if h.body > 0 {
		return taken, nil
	}
	return taken, h.answer(c)
}

// answer gets the response to a request that is complete.
func (h *hostDevice) answer(c *call) error {
	function, written, response := h.function, h.written, h.refused
	h.function, h.written, h.refused = "", nil, nil
	if response == nil {
		got, err := h.devices.Invoke(c.ctx, function, written, int(h.request))
		if err != nil {
			return err
		}
		response = &got
	}
	h.head = fmt.Appendf(nil, "%d %d\n%s", response.Status, len(response.Head)+len(response.Body), response.Head)
	h.rest = response.Body
	return nil
}

// begin reads the line before a request.
func (h *hostDevice) begin(line []byte) error {
	words := bytes.Split(line, []byte(" "))
	if len(words) != 3 || len(words[0]) == 0 {
		return EINVAL
	}
	var lengths [2]int64
	for i, word := range words[1:] {
		length, err := strconv.ParseUint(string(word), 10, 32)
		if err != nil {
			return EINVAL
		}
		lengths[i] = int64(length)
	}
	if lengths[0] > h.devices.MaxRequest || lengths[1] > h.devices.MaxBody {
		return EFBIG
	}
	h.function, h.request, h.body, h.begun = string(words[0]), lengths[0], lengths[1], false
	return nil
}

func (h *hostDevice) read(_ *call, piece []byte) (int, error) {
	n := copy(piece, h.head)
	h.head = h.head[n:]
	m := copy(piece[n:], h.rest)
	h.rest = h.rest[m:]
	return n + m, nil
}
