package network

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxURL = 8 << 10 // bytes

// location is a URL that everybody reads alike.
type location struct {
	scheme  string // http or https
	host    string // as readHost returns it
	address netip.Addr
	port    int
	// path is decoded. If ambiguous, servers may take it for another one.
	path      string
	ambiguous bool
	// url is what is sent. It has no user info and no fragment.
	url url.URL
}

// endpoint is a scheme with a port.
type endpoint struct {
	scheme string
	port   int
}

func (l *location) endpoint() endpoint { return endpoint{l.scheme, l.port} }

func (l *location) sameOrigin(other *location) bool {
	return l.host == other.host && l.endpoint() == other.endpoint()
}

// parseURL reads the URL of a guest's request. The error's text is for the guest.
func parseURL(text string) (*location, error) {
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	return locate(parsed)
}

// resolve reads where a redirect leads to.
func (l *location) resolve(text string) (*location, error) {
	reference, err := parse(text)
	if err != nil {
		return nil, err
	}
	return locate(l.url.ResolveReference(reference))
}

func urlError(format string, arguments ...any) error {
	return fmt.Errorf("the URL is refused: "+format, arguments...)
}

func parse(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, urlError("it is longer than %d bytes", maxURL)
	}
	if !utf8.ValidString(text) {
		return nil, urlError("it is not valid UTF-8")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return nil, urlError("it holds spaces, control characters or backslashes")
	}
	parsed, err := url.Parse(escapeNonASCII(text))
	if err != nil {
		return nil, urlError("it cannot be parsed")
	}
	return parsed, nil
}

// escapeNonASCII writes what is not ASCII as URLs have it. In a host it stays refused.
func escapeNonASCII(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text
	}
	var escaped strings.Builder
	for _, b := range []byte(text) {
		if b < utf8.RuneSelf {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}

func locate(u *url.URL) (*location, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, urlError("it must be absolute and begin with https:// or http://")
	case u.Opaque != "" || u.Host == "":
		return nil, urlError("it has no host")
	case u.User != nil:
		return nil, urlError("it holds user info")
	}
	host, address, message := readHost(u.Hostname())
	if message != "" {
		return nil, urlError("%s", message)
	}
	port, err := readPort(u)
	if err != nil {
		return nil, err
	}
	l := &location{scheme: u.Scheme, host: host, address: address, port: port, path: u.Path}
	if l.path == "" {
		l.path = "/"
	}
	l.ambiguous = isAmbiguous(l.path, u.EscapedPath())
	l.url = url.URL{
		Scheme: l.scheme, Host: l.authority(), Path: l.path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery,
	}
	return l, nil
}

func readPort(u *url.URL) (int, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, urlError("its port is empty")
		}
		return defaultPort(u.Scheme), nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || text[0] == '0' {
		return 0, urlError("its port is not one of 1 to 65535")
	}
	return port, nil
}

func defaultPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

// authority returns the host and, unless it is the scheme's own, the port.
func (l *location) authority() string {
	host := l.host
	if l.address.Is6() {
		host = "[" + host + "]"
	}
	if l.port == defaultPort(l.scheme) {
		return host
	}
	return net.JoinHostPort(l.host, strconv.Itoa(l.port))
}

// isAmbiguous reports whether a server, or a proxy before it, could take a path for another
// one: because it cleans the path, decodes it once more, or cuts parameters off its segments.
func isAmbiguous(decoded, escaped string) bool {
	escaped = strings.ToLower(escaped)
	if strings.Contains(decoded, "//") || strings.Contains(decoded, `\`) || strings.Contains(escaped, "%2f") || holdsEscape(decoded) {
		return true
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name != "" && strings.Trim(name, ". ") == "" { // Windows drops dots and spaces at the end
			return true
		}
	}
	if !utf8.ValidString(decoded) { // %c0%ae is a dot to a lax reader
		return true
	}
	return strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// holdsEscape reports whether a text that was decoded could be decoded again.
func holdsEscape(text string) bool {
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '%' && isHex(text[i+1]) && isHex(text[i+2]) {
			return true
		}
	}
	return false
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f'
}
