package network

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

const chunk = 32 << 10 // bytes read at once

// setBody gives a request its body, which can be read again if a connection turns out to
// have been closed before anything was sent.
func setBody(request *http.Request, body []byte) {
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
		return
	}
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Body, _ = request.GetBody()
}

// receive reads the answer that the guest gets.
func (e *exchange) receive(answer *http.Response) *Error {
	defer answer.Body.Close()
	if e.client.hidesSecrets(answer) {
		return &Error{Op: "request", Kind: ErrIO, Message: "the server encodes its answer in a way that the host cannot read"}
	}
	body, truncated, err := e.readBody(answer.Body)
	if err != nil {
		return e.ioError(err)
	}
	e.response = Response{
		Status:    answer.StatusCode,
		URL:       e.client.maskText(e.hop.location.url.String()),
		Headers:   e.client.answered(answer.Header),
		Body:      body,
		Truncated: truncated,
	}
	return nil
}

// hidesSecrets reports whether an answer is still encoded, so that a secret in it could not be
// found. The transport decodes no more than the gzip that it asked for.
func (c *Client) hidesSecrets(answer *http.Response) bool {
	if c.secrets == nil || c.secrets.Longest() == 0 || answer.Body == http.NoBody {
		return false
	}
	return slices.ContainsFunc(answer.Header.Values("Content-Encoding"), func(coding string) bool {
		return !strings.EqualFold(strings.TrimSpace(coding), "identity")
	})
}

// readBody reads as much as the session has left, and masks it. What is masked reaches
// beyond the end, so that no secret is cut in two there.
func (e *exchange) readBody(from io.Reader) (body []byte, truncated bool, err error) {
	var text []byte // the part that the guest gets, and after it what was only looked at
	kept, beyond := 0, 0
	if e.client.secrets != nil {
		beyond = e.client.secrets.Longest()
	}
	buffer := make([]byte, chunk)
	for !truncated || len(text) < kept+beyond {
		n, err := from.Read(buffer)
		text = append(text, buffer[:n]...)
		if !truncated {
			granted := e.session.take(n)
			kept += granted
			truncated = granted < n
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	e.bytes += int64(kept)
	if e.client.secrets == nil {
		return text[:kept:kept], truncated, nil
	}
	body, err = e.client.secrets.MaskFirst(e.ctx, text, kept)
	return body, truncated, err
}
