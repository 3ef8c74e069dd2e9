package network

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/tool"
)

const maxURL = 8 << 10 // bytes

// location is a URL that every parser reads the same way.
type location struct {
	permission.Origin // of a single host and port
	path              permission.RequestPath
	// url is the URL to send. It has no user info and no fragment.
	url url.URL
}

type endpoint struct {
	scheme string
	port   int
}

// everyPort means all ports of a scheme, in a denial and in a manifest's request.
const everyPort = 0

func (e endpoint) covers(other endpoint) bool {
	return e == other || e.port == everyPort && e.scheme == other.scheme
}

func (e endpoint) intersect(other endpoint) (endpoint, bool) {
	if e.covers(other) {
		return other, true
	}
	return e, other.covers(e)
}

func (l *location) endpoint() endpoint { return endpoint{l.Scheme, l.Port} }

// parseURL reads the URL of a guest's request. The error's text is for the guest.
func parseURL(text string) (*location, error) {
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	return locate(parsed)
}

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

// escapeNonASCII percent-encodes non-ASCII bytes. They remain invalid in a host.
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
	host, err := permission.ParseURLHost(u.Hostname())
	if invalid, ok := errors.AsType[*permission.Error](err); ok {
		return nil, urlError("its host %s", invalid.Problem)
	}
	if err != nil {
		return nil, urlError("its host %s", err.Error())
	}
	port, err := readPort(u)
	if err != nil {
		return nil, err
	}
	origin := permission.Origin{Scheme: u.Scheme, Host: host, Port: port}
	l := &location{Origin: origin, path: permission.ReadRequestPath(u.Path, u.EscapedPath())}
	l.url = url.URL{
		Scheme: l.Scheme, Host: l.Authority(), Path: l.path.String(), RawPath: u.RawPath,
		RawQuery: u.RawQuery, ForceQuery: u.ForceQuery,
	}
	return l, nil
}

func readPort(u *url.URL) (int, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, urlError("its port is empty")
		}
		return permission.DefaultPort(u.Scheme), nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || text[0] == '0' {
		return 0, urlError("its port is not one of 1 to 65535")
	}
	return port, nil
}

const maxShown = 512 // bytes of a URL in receipts and records

func shown(text string) string { return tool.Shown(text, maxShown) }
