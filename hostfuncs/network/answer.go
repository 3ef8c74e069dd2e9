package network

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/hostfuncs"
)

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

// answered returns the headers of a response as the guest sees them.
func (c *Client) answered(header http.Header) [][2]string {
	hopByHop := map[string]bool{}
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Connection"), ",")), ",") {
		hopByHop[strings.TrimSpace(name)] = true
	}
	var fields [][2]string
	for name, values := range header {
		lower := strings.ToLower(name)
		if lower != "content-length" && isTransport(name) || hopByHop[lower] {
			continue
		}
		for _, value := range values {
			fields = append(fields, [2]string{printable(c.maskText(name)), printable(c.maskText(value))})
		}
	}
	slices.SortStableFunc(fields, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return fields
}

// printable replaces invalid UTF-8 and unprintable characters other than tabs with U+FFFD.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// pieces are bytes of unknown number. They are copied once, where append would copy them again and again, and in the
// end have room for more than there are.
type pieces struct {
	all   [][]byte
	bytes int
}

const chunk = 32 << 10 // bytes per read

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
