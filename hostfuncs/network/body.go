package network

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/tool"
)

const chunk = 32 << 10 // bytes per read

// setBody sets the body of a request. The body can be rewound.
func setBody(request *http.Request, body []byte) {
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
		return
	}
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Body, _ = request.GetBody()
}

// rewind prepares a request to be sent again.
func rewind(request *http.Request) (err error) {
	if request.GetBody != nil {
		request.Body, err = request.GetBody()
	}
	return err
}

// acceptGzip asks for a compressed response. It does not if the request asks for a range, since a
// part of a gzip stream cannot be decoded.
func acceptGzip(request *http.Request) {
	if request.Method != http.MethodHead && request.Header.Get("Range") == "" {
		request.Header.Set("Accept-Encoding", "gzip")
	}
}

// decoded returns the body of a response, decompressed if gzip was asked for and is its only
// encoding. In that case it changes the response's header to describe the decompressed body.
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

// gunzip decompresses a body. It reads the gzip header on the first Read.
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

// receive reads the response for the guest.
func (e *exchange) receive(answer *http.Response) *hostfuncs.Error {
	defer answer.Body.Close()
	if e.client.hidesSecrets(answer) {
		return ioProblem("the server encodes its response in a way that the host cannot decode", nil)
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

// hidesSecrets reports whether a response is still encoded, so that a secret in it would not be
// found. Only gzip that was asked for is decoded.
func (c *Client) hidesSecrets(answer *http.Response) bool {
	if c.secrets == nil || c.secrets.Longest() == 0 || answer.Body == http.NoBody {
		return false
	}
	return slices.ContainsFunc(answer.Header.Values("Content-Encoding"), func(coding string) bool {
		return !strings.EqualFold(strings.TrimSpace(coding), "identity")
	})
}

// readBody reads as many bytes as the session has left, and masks them. It reads and masks some
// bytes beyond that, so that a secret at the cut is found.
func (e *exchange) readBody(from io.Reader) (body []byte, truncated bool, err error) {
	var text pieces // the part that the guest gets, followed by bytes read only for masking
	kept, beyond := 0, 0
	if e.client.secrets != nil {
		beyond = e.client.secrets.Longest()
	}
	for !truncated || text.bytes < kept+beyond {
		n, err := from.Read(text.free())
		text.add(n)
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
		body, err = text.join(e.ctx, kept)
		return body, truncated, err
	}
	whole, err := text.join(e.ctx, text.bytes)
	if err == nil {
		body, err = e.client.secrets.MaskFirst(e.ctx, whole, kept)
	}
	return body, truncated, err
}

// pieces are bytes of unknown number. They are copied once, where append would copy them again and again, and in the
// end have room for more than there are.
type pieces struct {
	all   [][]byte
	bytes int
}

const maxPiece = 1 << 20 // bytes

// free returns where the next bytes go.
func (p *pieces) free() []byte {
	last := len(p.all) - 1
	if last < 0 || len(p.all[last]) == cap(p.all[last]) {
		p.all = append(p.all, make([]byte, 0, min(max(p.bytes, chunk), maxPiece)))
		last++
	}
	piece := p.all[last]
	return piece[len(piece):min(len(piece)+chunk, cap(piece))]
}

// add adds the first n bytes of what free returned.
func (p *pieces) add(n int) {
	last := &p.all[len(p.all)-1]
	*last = (*last)[:len(*last)+n]
	p.bytes += n
}

// join returns the first n bytes, and releases all of them.
func (p *pieces) join(ctx context.Context, n int) ([]byte, error) {
	joined := make([]byte, 0, n)
	for i, piece := range p.all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		joined = append(joined, piece[:min(len(piece), n-len(joined))]...)
		p.all[i] = nil
	}
	return joined, nil
}

const maxShown = 512 // bytes of a URL in receipts and records

// shown returns a guest's or a server's text in a form that is safe to display.
func shown(text string) string { return tool.Shown(text, maxShown) }

// onlyNames reports whether a text holds only ASCII letters, digits and the characters in others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}
