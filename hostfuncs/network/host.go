package network

import (
	"net/netip"
	"strings"
)

const maxHost = 253 // bytes of a name (RFC 1035, section 3.1)

// readHost returns a host in the one form in which hosts are compared: a name in lower case
// without the dot of the root, or an address with its value. It returns a message where the
// text is neither, or where another reader could take it for another host.
func readHost(text string) (host string, address netip.Addr, message string) {
	host = strings.TrimSuffix(strings.Map(lowerASCII, text), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" {
			return "", netip.Addr{}, "the address has a zone"
		}
		address = address.Unmap()
		return address.String(), address, ""
	}
	return host, netip.Addr{}, nameMessage(host)
}

// lowerASCII leaves alone what is not ASCII: some of it, such as the Kelvin sign, has an ASCII
// letter as its lower case.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// nameMessage says what is wrong with a lower-case name, or "".
func nameMessage(name string) string {
	if name == "" {
		return "it has no host"
	}
	if len(name) > maxHost {
		return "the host's name is too long"
	}
	last := name
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "the host is not a name of letters, digits and hyphens (others are written in their xn-- form)"
		}
		last = label
	}
	if isNumber(last) {
		return "the host is an address in an unusual form"
	}
	return ""
}

func isLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// isNumber reports whether inet_aton could read a last label as a part of an address:
// decimal, octal or hexadecimal.
func isNumber(label string) bool {
	digits, hexadecimal := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		isDigit := r >= '0' && r <= '9'
		return !isDigit && (!hexadecimal || r < 'a' || r > 'f')
	})
}

// pattern is which hosts a rule is about: one name or address, "*." and a name for all names
// below that one, or "*" for every host.
type pattern string

// readPattern checks a pattern and brings it into the form in which hosts are compared.
func readPattern(text string) (pattern, string) {
	if text == "*" {
		return "*", ""
	}
	name, below := strings.CutPrefix(text, "*.")
	host, address, message := readHost(name)
	switch {
	case message != "":
		return "", message
	case below && address.IsValid():
		return "", "an address has no names below it"
	case below:
		return pattern("*." + host), ""
	}
	return pattern(host), ""
}

// matches reports whether a host is among those of the pattern. Names below one are at any
// depth: *.example.com matches a.example.com and a.b.example.com, and neither example.com
// nor evilexample.com.
func (p pattern) matches(host string) bool {
	if p == "*" {
		return true
	}
	if suffix, below := strings.CutPrefix(string(p), "*"); below {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return string(p) == host
}

// covers reports whether everything that matches the other pattern matches this one.
func (p pattern) covers(other pattern) bool { return p.matches(string(other)) }

// intersect returns the hosts that match both patterns. Two patterns are nested or have
// nothing in common.
func (p pattern) intersect(other pattern) (pattern, bool) {
	switch {
	case p.covers(other):
		return other, true
	case other.covers(p):
		return p, true
	}
	return "", false
}
