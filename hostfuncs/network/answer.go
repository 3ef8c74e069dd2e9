package network

import (
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
	source := boundedBody{Reader: from, session: e.session}
	if e.client.secrets != nil {
		source.beyond = e.client.secrets.Longest()
	}
	whole, err := io.ReadAll(&source)
	if err != nil {
		return nil, false, err
	}
	kept := source.kept
	e.bytes += int64(kept)
	if e.client.secrets == nil {
		return whole[:kept:kept], source.truncated, nil
	}
	body, err = e.client.secrets.MaskFirst(e.ctx, whole, kept)
	return body, source.truncated, err
}

// boundedBody is a body up to where its session has no bytes left, and the bytes beyond that are read only for masking.
type boundedBody struct {
	io.Reader
	session            *Session
	read, kept, beyond int // bytes
	truncated          bool
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.truncated && b.read >= b.kept+b.beyond {
		return 0, io.EOF
	}
	n, err := b.Reader.Read(p[:min(len(p), chunk)])
	b.read += n
	if !b.truncated {
		granted := b.session.take(n)
		b.kept += granted
		b.truncated = granted < n
	}
	return n, err
}

const chunk = 32 << 10 // bytes per read

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
