package network

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

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
