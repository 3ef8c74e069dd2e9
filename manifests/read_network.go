package manifests

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// tokenText is a token of RFC 9110, section 5.6.2.
	tokenText  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	methodText = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)
	queryName  = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	hostLabel  = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	allDigits  = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)
)

// hopHeaders are headers that say how a message travels. A secret there would change
// what the request is (RFC 9110, sections 7.2 and 7.6.1).
var hopHeaders = [...]string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
	"proxy-connection", "proxy-authorization", "expect", "content-type",
}

// host reads a host name or an IP address, and with wildcards also *.name and *.
func (r *reader) host(n *node, at string, wildcards bool) string {
	text := strings.ToLower(r.text(n, at))
	if n.kind != textNode {
		return ""
	}
	fix := "write a name such as api.example.com, or an IP address, without scheme, port and path"
	name := text
	if wildcards {
		fix = "write a name such as api.example.com, *.example.com for the names below one, * for every host, or an IP address, without scheme, port and path"
		if text == "*" {
			return text
		}
		name = strings.TrimPrefix(text, "*.")
	}
	if message := hostMessage(name); message != "" {
		r.add(n.at, at, InvalidValue, fmt.Sprintf("%q %s", clip(n.text), message), fix)
		return ""
	}
	if address, err := netip.ParseAddr(name); err == nil {
		if name != text {
			r.add(n.at, at, InvalidValue, fmt.Sprintf("%q is an address, which has no names below it", clip(n.text)), fix)
			return ""
		}
		return address.String()
	}
	return text
}

// hostMessage says what is wrong with a lower-case host, or "".
func hostMessage(name string) string {
	if address, err := netip.ParseAddr(name); err == nil {
		if address.Zone() != "" {
			return "has a zone"
		}
		return ""
	}
	labels := strings.Split(name, ".")
	switch {
	case name == "":
		return "is empty"
	case strings.ContainsAny(name, "/@?# \t"):
		return "is not a host alone"
	case strings.ContainsAny(name, ":[]"):
		return "has a port or brackets"
	case strings.Contains(name, "*"):
		return "has a * that is not the whole first label"
	case len(name) > 253:
		return "is longer than 253 characters"
	case allDigits.MatchString(labels[len(labels)-1]):
		return "is an address in an unusual form"
	}
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return "is not a host name (non-ASCII names are written in their xn-- form)"
		}
	}
	return ""
}

func (r *reader) method(n *node, at string) string {
	return r.word(n, at, methodText, "write a method in upper case, such as GET")
}

// urlPath reads a path prefix. It is compared with decoded, clean paths, so what
// decodes or cleans to something else is refused.
func (r *reader) urlPath(n *node, at string) string {
	text := r.text(n, at)
	if n.kind != textNode {
		return ""
	}
	_, hidden := hiddenRune(text)
	clean := path.Clean(text)
	if clean != "/" && strings.HasSuffix(text, "/") {
		clean += "/"
	}
	if !strings.HasPrefix(text, "/") || clean != text || hidden || len(text) > maxPath || strings.ContainsAny(text, "%?#\\*\n\t ") {
		r.add(n.at, at, InvalidValue, fmt.Sprintf("%q is not a clean path", clip(text)), "start with / and leave out .., //, %, ?, #, * and spaces")
		return ""
	}
	return text
}

func (r *reader) header(n *node, at string) string {
	text := r.word(n, at, tokenText, "write the name of a header, such as X-Api-Key")
	if slices.Contains(hopHeaders[:], strings.ToLower(text)) {
		r.add(n.at, at, InvalidValue, fmt.Sprintf("%q says how a request travels", text), "use another header, such as Authorization or X-Api-Key")
		return ""
	}
	return text
}
