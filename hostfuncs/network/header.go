package network

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
)

const (
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10 // of a guest's header names and values together
	maxMethod      = 32
)

// isToken reports whether a text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// readMethod checks the method of a guest's request. The default is GET.
func readMethod(method string) (string, error) {
	switch {
	case method == "":
		return http.MethodGet, nil
	case len(method) > maxMethod || !isToken(method) || method != strings.ToUpper(method):
		return "", fmt.Errorf("the method is not a word in upper case, such as GET")
	case isTunnel(method):
		return "", fmt.Errorf("the method %s cannot be used", method)
	}
	return method, nil
}

func readHeaders(list [][2]string) (http.Header, error) {
	if len(list) > maxHeaders {
		return nil, fmt.Errorf("there are more than %d headers", maxHeaders)
	}
	header, size := http.Header{}, 0
	for _, field := range list {
		name, value := field[0], field[1]
		size += len(name) + len(value)
		switch {
		case size > maxHeaderBytes:
			return nil, fmt.Errorf("the headers are larger than %d bytes", maxHeaderBytes)
		case !isToken(name):
			return nil, fmt.Errorf("the name of a header is not a token")
		case !isFieldValue(value):
			return nil, fmt.Errorf("the value of the header %s holds control characters", shown(name))
		case isTransport(name):
			return nil, fmt.Errorf("the header %s is set by the host", shown(name))
		case isOverride(name):
			return nil, fmt.Errorf("the header %s may override the request's method, path or host", shown(name))
		case permission.FoldHeader(name) == "acceptencoding":
			// Ignored: the guest gets decompressed bodies, since compressed ones cannot be masked.
		default:
			header.Add(name, value)
		}
	}
	return header, nil
}

// isFieldValue reports whether a text is a valid header value in every version of HTTP.
func isFieldValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// isTransport reports whether a header controls the transport of a message, which is up to the host.
func isTransport(name string) bool {
	name = permission.FoldHeader(name)
	hopByHop := []string{
		"host", "connection", "contentlength", "transferencoding", "te", "trailer", "upgrade", "keepalive", "expect",
		"http2settings",
	}
	// CGI turns Proxy into HTTP_PROXY (CVE-2016-5385).
	return slices.Contains(hopByHop, name) || strings.HasPrefix(name, "proxy")
}

// isOverride reports whether some servers let a header override what the permission has checked.
func isOverride(name string) bool {
	return slices.Contains([]string{
		"xhttpmethodoverride", "xhttpmethod", "xmethodoverride",
		"xoriginalurl", "xoriginaluri", "xrewriteurl", "xforwardeduri", "xforwardedpath", "xforwardedprefix", "destination",
		"xforwardedhost", "xforwardedserver", "xoriginalhost", "xhttphostoverride", "xhost", "forwarded",
	}, permission.FoldHeader(name))
}

// wholeAnswer removes the headers that request a part of a response, since a secret that is split between parts is not
// found. A server may ignore these headers anyway. Some servers still accept the old name, Request-Range.
func wholeAnswer(header http.Header) {
	for name := range header {
		if slices.Contains([]string{"range", "requestrange", "ifrange"}, permission.FoldHeader(name)) {
			delete(header, name)
		}
	}
}

// crossOrigin returns the headers that may follow a redirect to another origin. Others may hold secrets of the first.
func crossOrigin(header http.Header, withBody bool) http.Header {
	kept := http.Header{}
	names := []string{"Accept", "Accept-Language", "User-Agent", "Range"}
	if withBody {
		names = append(names, "Content-Type")
	}
	for _, name := range names {
		if values := header.Values(name); len(values) > 0 {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

// withoutBody returns the headers without those that describe a body.
func withoutBody(header http.Header) http.Header {
	kept := header.Clone()
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
		kept.Del(name)
	}
	return kept
}
