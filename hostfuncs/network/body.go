package network

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

const chunk = 32 << 10 // bytes read at once

// setBody gives a request its body, which can be read again if the request is sent again.
func setBody(request *http.Request, body []byte) {
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
		return
	}
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Body, _ = request.GetBody()
}

// rewind makes a request ready to be sent again.
func rewind(request *http.Request) (err error) {
	if request.GetBody != nil {
		request.Body, err = request.GetBody()
	}
	return err
}

// acceptGzip asks for a compressed answer where one can be decoded: it must be whole.
func acceptGzip(request *http.Request) {
	if request.Method != http.MethodHead && request.Header.Get("Range") == "" {
		request.Header.Set("Accept-Encoding", "gzip")
	}
}

// decoded returns the body of an answer without the gzip that was asked for, where that is all
// its encoding. The answer's header is then that of what it returns.
func decoded(request *http.Request, answer *http.Response) io.Reader {
	asked := request.Header.Get("Accept-Encoding") == "gzip"
	codings := answer.Header.Values("Content-Encoding")
	if !asked || len(codings) != 1 || !strings.EqualFold(codings[0], "gzip") {
		return answer.Body
	}
	answer.Header.Del("Content-Encoding")
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	return &gunzip{compressed: answer.Body}
}

// gunzip begins to decompress when it is read.
type gunzip struct {
	compressed io.Reader
	reader     *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.reader == nil {
		if g.reader, err = gzip.NewReader(g.compressed); err != nil {
			return 0, err
		}
	}
	return g.reader.Read(p)
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
// found. No more is decoded than the gzip that was asked for.
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

// Request is what a guest asks for. Nothing in it is trusted.
type Request struct {
	Method string // in upper case; empty: GET. CONNECT and TRACE are refused
	URL    string // absolute
	// Headers go along, but for those that say how a message travels, which are refused,
	// and Accept-Encoding, which is the host's.
	Headers [][2]string
	Body    []byte // not to be changed before the answer is there
	// Timeout ends the request before its context does. Zero leaves it to the context; if
	// that has no deadline either, it is [DefaultTimeout].
	Timeout time.Duration
}

// Response is what the last of the servers answered, without the secrets' values.
type Response struct {
	Status int
	URL    string // what answered, after redirects; without user info and fragment
	// Headers are in the order of their names, each in its canonical form. All text is valid
	// UTF-8 without hidden characters. Headers between two hops are left out.
	Headers [][2]string
	Body    []byte // decompressed
	// Truncated says that the body went on beyond the session's [Limits].
	Truncated bool
}

const maxShown = 512 // bytes of a URL that a receipt or a record shows

// shown returns a text of a guest's or a server's in a form that is safe to show.
func shown(text string) string { return tool.Shown(text, maxShown) }

// onlyNames reports whether a text holds nothing but ASCII letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}
