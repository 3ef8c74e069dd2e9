package abi

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
)

func netRequest(c *call) (answer, error) {
	request, err := c.httpRequest()
	if err != nil {
		return answer{}, err
	}
	return c.frame(c.session.Network.Do(c.ctx, request))
}

func netSend(c *call) (answer, error) {
	request, err := c.httpRequest()
	if err != nil {
		return answer{}, err
	}
	id, err := c.session.Network.Send(c.ctx, request)
	if err != nil {
		return answer{}, c.failure(err)
	}
	return answerJSON(statusOK, struct {
		ID int `json:"id"`
	}{id}), nil
}

func netReceive(c *call) (answer, error) {
	var id uint32
	if err := c.request(decode.Members{"id": number(&id)}, "id"); err != nil {
		return answer{}, err
	}
	if c.session.Network == nil {
		return answer{}, errNoNetwork()
	}
	return c.frame(c.session.Network.Receive(c.ctx, int(id)))
}

// httpRequest reads the request of the functions request and send, with its body. If it succeeds, the
// session has a network.
func (c *call) httpRequest() (network.Request, error) {
	r, err := c.httpHead()
	if err != nil {
		return network.Request{}, err
	}
	body, err := c.view(2, "body", "http_bytes", c.session.maxBody())
	switch {
	case err != nil:
		return network.Request{}, err
	case c.session.Network == nil:
		return network.Request{}, errNoNetwork()
	case len(body) == 0:
		return r, nil
	}
	if _, owned := c.memory.(plainMemory); owned { // [Begin] has checked the request
		r.Body = body
		return r, nil
	}
	if err := c.checkBody(r, len(body)); err != nil {
		return network.Request{}, err
	}
	r.Body, err = c.session.Work.Copy(c.ctx, body)
	return r, err
}

// checkBody returns the error with which a request would fail that has a body of this length. The host keeps no byte
// of such a body.
func (c *call) checkBody(r network.Request, length int) error {
	if int64(length) > c.session.maxBody() {
		return limited("http_bytes", c.session.maxBody())
	}
	if c.session.Network == nil {
		return errNoNetwork()
	}
	if err := c.session.Network.Check(c.ctx, r, length); err != nil {
		return c.failure(err)
	}
	return nil
}

// httpHead reads the request without its body.
func (c *call) httpHead() (network.Request, error) {
	var r network.Request
	var timeout uint32
	members := decode.Members{
		"method": decode.Text(&r.Method), "url": decode.Text(&r.URL),
		"headers": pairs(&r.Headers), "timeout_ms": number(&timeout),
	}
	if err := c.request(members, "method", "url", "headers"); err != nil {
		return network.Request{}, err
	}
	r.Timeout = time.Duration(timeout) * time.Millisecond
	return r, nil
}

func errNoNetwork() error { return unavailable("the tool has no network") }

// maxResponse is the maximum length of a response in bytes, since functions return it in 32 bits.
const maxResponse = math.MaxUint32

// frame returns the answer that holds a response: the length of its header, the header, the body.
func (c *call) frame(r network.Response, err error) (answer, error) {
	if err != nil {
		return answer{}, c.failure(err)
	}
	header := encode(struct {
		Status    int         `json:"status"`
		URL       string      `json:"url"`
		Headers   [][2]string `json:"headers"`
		Truncated bool        `json:"truncated"`
	}{r.Status, r.URL, append([][2]string{}, r.Headers...), r.Truncated})
	if int64(len(header))+int64(len(r.Body)) > maxResponse {
		return answer{}, limited("response_bytes", maxResponse)
	}
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(header)), uint32(len(header)))
	return answer{statusOK, append(head, header...), r.Body}, nil
}

// failure returns the network's error as the guest may see it. If the call is over, the error ends
// the guest.
func (c *call) failure(err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return failureOf(err)
}
