package wasi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
)

// Devices are files that are no files of the host's: a guest that cannot import host functions, such as a script in
// an interpreter, opens them in a preopened directory of its own.
//
// A guest writes its result to "result" and reads random bytes from "random". It calls host functions through "host":
// it writes a line "FUNCTION REQUEST BODY\n", where REQUEST and BODY are lengths in bytes, followed by these bytes.
// Then it reads a line "STATUS LENGTH\n", followed by a response of that length.
type Devices struct {
	// Folder is the guest path of the directory, which must be preopened. Its files of the same names are hidden.
	Folder string
	Result *Output
	// Invoke calls a host function. The first request bytes are the request; the others are its body.
	Invoke func(ctx context.Context, function string, bytes []byte, request int) (status uint32, head, body []byte, err error)
	// MaxRequest is how long a request and its body may be together, in bytes.
	MaxRequest int64

	host hostDevice // one for all descriptors, so that a guest cannot make the host keep a request for each
}

// maxDevices is how many devices a guest may have open.
const maxDevices = 16

// device is an open file of [Devices].
type device interface {
	read(c *call, piece []byte) (int, Errno, error)
	write(c *call, piece []byte) (int, Errno, error)
}

// device opens the device that parameters 0, 2 and 3 of path_open name. It returns nil for any other path. Opening one
// ends the start of a program, since what is read from it or written to it depends on the call.
func (c *call) device() (*descriptor, Errno, error) {
	s := c.system
	if s.Devices == nil {
		return nil, Success, nil
	}
	directory, errno := s.descriptor(c.u32(0))
	if errno != Success || directory.preopen != s.Devices.Folder {
		return nil, errno, nil
	}
	path, errno := c.path(2)
	if errno != Success {
		return nil, errno, nil
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
		return nil, Success, nil
	}
	if s.Starting {
		return nil, Success, &StartError{Function: "path_open", Path: s.Devices.Folder + "/" + path}
	}
	open := 0
	for _, d := range s.descriptors[min(len(s.descriptors), standardStreams):] {
		if d != nil && (d.device != nil || d.output != nil) {
			open++
		}
	}
	if open >= maxDevices {
		return nil, EMFILE, nil
	}
	return found, Success, nil
}

// randomDevice reads the call's random bytes.
type randomDevice struct{}

func (randomDevice) read(c *call, piece []byte) (int, Errno, error) {
	if c.system.Random == nil {
		return 0, EIO, nil
	}
	n, err := io.ReadFull(c.system.Random, piece)
	if err != nil {
		return n, EIO, nil
	}
	return n, Success, nil
}

func (randomDevice) write(*call, []byte) (int, Errno, error) { return 0, EBADF, nil }

// maxLine is the maximum length of the line before a request.
const maxLine = 128

// hostDevice takes one request after the other.
type hostDevice struct {
	devices       *Devices
	function      string // of the request that is being written; empty before its line is read
	request, body int64
	written       []byte // the line as far as it is known, then the bytes behind it
	head, rest    []byte // the response that is not yet read
}

// write takes the next bytes of a request. It calls the function once the request is complete, and takes no byte
// behind it: the guest writes the next request with a call of its own.
func (h *hostDevice) write(c *call, piece []byte) (int, Errno, error) {
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
			return 0, EINVAL, nil
		}
		h.written = append(h.written, piece[:end]...)
		if taken == 0 || piece[taken-1] != '\n' {
			return taken, Success, nil
		}
		line := h.written
		h.written = nil
		if errno := h.begin(line); errno != Success {
			return 0, errno, nil
		}
		piece = piece[taken:]
	}
	n := min(int64(len(piece)), h.request+h.body-int64(len(h.written)))
	h.written = append(h.written, piece[:n]...)
	taken += int(n)
	if int64(len(h.written)) < h.request+h.body {
		return taken, Success, nil
	}
	function, written := h.function, h.written
	h.function, h.written = "", nil
	status, head, body, err := h.devices.Invoke(c.ctx, function, written, int(h.request))
	if err != nil {
		return taken, Success, err
	}
	h.head = fmt.Appendf(nil, "%d %d\n%s", status, len(head)+len(body), head)
	h.rest = body
	return taken, Success, nil
}

// begin reads the line before a request.
func (h *hostDevice) begin(line []byte) Errno {
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
	if lengths[0]+lengths[1] > h.devices.MaxRequest {
		return EFBIG
	}
	h.function, h.request, h.body = string(words[0]), lengths[0], lengths[1]
	return Success
}

func (h *hostDevice) read(_ *call, piece []byte) (int, Errno, error) {
	n := copy(piece, h.head)
	h.head = h.head[n:]
	m := copy(piece[n:], h.rest)
	h.rest = h.rest[m:]
	return n + m, Success, nil
}
