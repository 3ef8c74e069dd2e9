package manifests

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

var (
	hostLabel = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	allDigits = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)
)

const (
	hostFix     = "write a name such as api.example.com, or an IP address, without scheme, port and path"
	hostWildFix = "write a name such as api.example.com, *.example.com for the names below one, * for every host, or an IP address, without scheme, port and path"
)

// host reads a host name or an IP address, and with wildcards also *.name and *.
func (r *reader) host(n *node, at string, wildcards bool) string {
	text := r.text(n, at)
	if n.kind != textNode {
		return ""
	}
	host, message := normalHost(text, wildcards)
	if message != "" {
		fix := hostFix
		if wildcards {
			fix = hostWildFix
		}
		r.add(n.at, at, InvalidValue, fmt.Sprintf("%q %s", clip(text), message), fix)
		return ""
	}
	return host
}

// normalHost returns a host as permissions have it: a lower-case name, an IP address in
// its shortest form, IPv4 never as IPv6, and with wildcards also *.name and *. The message
// says what is wrong with any other text.
func normalHost(text string, wildcards bool) (host, message string) {
	host = strings.Map(lowerASCII, text)
	name := host
	if wildcards {
		if host == "*" {
			return host, ""
		}
		name = strings.TrimPrefix(host, "*.")
	}
	if message := hostMessage(name); message != "" {
		return "", message
	}
	if address, err := netip.ParseAddr(name); err == nil {
		if name != host {
			return "", "is an address, which has no names below it"
		}
		return address.Unmap().String(), ""
	}
	return host, ""
}

// lowerASCII leaves alone what is not ASCII: some of it has an ASCII letter as its lower case.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
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
