package permission

import (
	"net/netip"
	"strings"
)

const (
	maxHost  = 253 // bytes of a name (RFC 1035, section 3.1, without the root's dot)
	maxLabel = 63  // bytes of one label of it
)

// Host is one name, one IP address, all names below one ("*.example.com", at any depth and
// without example.com itself), or every host ("*"). Hosts that are equal are equal values. The
// zero value is no host.
type Host struct {
	// text is the canonical form: a name in lower case, an address as RFC 5952 writes it, and
	// never an IPv4 address as an IPv6 one.
	text    string
	address netip.Addr // valid for an address alone
}

const everyHost = "*"

const (
	hostFix     = "write a name such as api.example.com, or an IP address, without scheme, port and path"
	hostWildFix = "write a name such as api.example.com, *.example.com for the names below one, * for every host, or an IP address, without scheme, port and path"
)

// ParseHost reads the host of a permission. Only letters of ASCII have a case: some other
// characters have an ASCII letter as their lower case. What another reader could take for another
// host is refused: addresses in the forms of inet_aton, zones, brackets, and the root's dot.
func ParseHost(text string) (Host, error) {
	if text == everyHost {
		return Host{text: everyHost}, nil
	}
	name, below := strings.CutPrefix(text, "*.")
	h, problem := readHost(name)
	if problem == "" && below && h.address.IsValid() {
		problem = "is an address, which has no names below it"
	}
	if problem != "" {
		return Host{}, &Error{What: "host", Text: text, Problem: problem, Fix: hostWildFix}
	}
	if below {
		h.text = "*." + h.text
	}
	return h, nil
}

// ParseOneHost is [ParseHost] without "*" and "*.NAME".
func ParseOneHost(text string) (Host, error) {
	h, problem := readHost(text)
	if problem != "" {
		return Host{}, &Error{What: "host", Text: text, Problem: problem, Fix: hostFix}
	}
	return h, nil
}

// ParseURLHost reads the host of a URL (RFC 3986, section 3.2.2) without its brackets, as
// [net/url.URL.Hostname] returns it. It is [ParseOneHost], but that the name may end in the
// root's dot (RFC 1034, section 3.1), which makes no other host of it.
func ParseURLHost(text string) (Host, error) {
	return ParseOneHost(strings.TrimSuffix(text, "."))
}

// readHost returns one host, or what is wrong with the text.
func readHost(text string) (h Host, problem string) {
	name := strings.Map(lowerASCII, text)
	if address, err := netip.ParseAddr(name); err == nil {
		if address.Zone() != "" {
			return Host{}, "has a zone"
		}
		address = address.Unmap()
		return Host{text: address.String(), address: address}, ""
	}
	return Host{text: name}, nameProblem(name)
}

// lowerASCII leaves alone what is not ASCII: some of it, such as the Kelvin sign, has an ASCII
// letter as its lower case.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// nameProblem says what is wrong with a lower-case name, or "".
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.ContainsAny(name, "/@?# \t"):
		return "is not a host alone"
	case strings.ContainsAny(name, ":[]"):
		return "has a port or brackets"
	case name == everyHost || strings.HasPrefix(name, "*."):
		return "stands for many hosts"
	case strings.Contains(name, "*"):
		return "has a * that is not the whole first label"
	case len(name) > maxHost:
		return "is longer than 253 characters"
	case isNumber(name[strings.LastIndexByte(name, '.')+1:]):
		return "is an address in an unusual form"
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "is not a host name (non-ASCII names are written in their xn-- form)"
		}
	}
	return ""
}

// isLabel reports whether a label is one of RFC 1123, section 2.1, or has underscores, as names of
// services do.
func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// isNumber reports whether inet_aton could read a last label as a part of an address: decimal,
// octal or hexadecimal (URL Standard, "ends in a number").
func isNumber(label string) bool {
	digits, hexadecimal := strings.CutPrefix(label, "0x")
	if label == "" {
		return false
	}
	return !strings.ContainsFunc(digits, func(r rune) bool {
		isDigit := r >= '0' && r <= '9'
		return !isDigit && (!hexadecimal || r < 'a' || r > 'f')
	})
}

// String returns the host's one spelling, and "" for the zero value.
func (h Host) String() string { return h.text }

// Bracketed returns the host as it stands in a URL: IPv6 addresses in brackets.
func (h Host) Bracketed() string {
	if h.address.Is6() {
		return "[" + h.text + "]"
	}
	return h.text
}

// Address returns the address that the host is; it is not valid for names.
func (h Host) Address() netip.Addr { return h.address }

// IsOne reports whether the host is a single name or address.
func (h Host) IsOne() bool { return h.text != "" && h.text[0] != '*' }

// Matches reports whether a single host is among these.
func (h Host) Matches(one Host) bool { return one.IsOne() && h.Covers(one) }

// Covers reports whether every host of the other's is among these.
func (h Host) Covers(other Host) bool {
	if h.text == "" || other.text == "" {
		return false
	}
	if h.text == everyHost || h == other {
		return true
	}
	// An address has no names below it, and its text never ends in a label of a name's.
	suffix, below := strings.CutPrefix(h.text, "*")
	return below && len(other.text) > len(suffix) && strings.HasSuffix(other.text, suffix)
}

// Intersect returns the hosts that are among both, or false where there are none. Two values are
// nested, or have nothing in common.
func (h Host) Intersect(other Host) (Host, bool) { return nested(h, other) }

// ParseEndpoint reads the IP address and the port to which connections are to go:
// "127.0.0.1:8443", "[::1]:8443". An IPv4 address is never returned as an IPv6 one.
func ParseEndpoint(text string) (netip.AddrPort, error) {
	endpoint, err := netip.ParseAddrPort(text)
	if err != nil || endpoint.Port() == 0 || endpoint.Addr().Zone() != "" {
		return netip.AddrPort{}, &Error{
			What: "connect", Text: text, Problem: "is not an address with a port",
			Fix: "write an IP address and a port, such as 127.0.0.1:8443 or [::1]:8443",
		}
	}
	return netip.AddrPortFrom(endpoint.Addr().Unmap(), endpoint.Port()), nil
}
