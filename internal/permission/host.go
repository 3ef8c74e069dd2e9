package permission

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

const maxHost = 253 // bytes of a name (RFC 1035, section 3.1, without the root's dot)

// Host is one name, one IP address, all names below one ("*.example.com", at any depth and without example.com itself),
// or every host ("*"). Equal hosts are equal values. The zero value is not a host.
type Host struct {
	// text is the canonical form: a lower-case name, or an address as in RFC 5952. An IPv4-mapped
	// IPv6 address is written as IPv4.
	text    string
	address netip.Addr // valid only for an address
}

const everyHost = "*"

const (
	hostFix     = "write a name such as api.example.com, or an IP address, without scheme, port and path"
	hostWildFix = "write a name such as api.example.com, *.example.com for the names below one, * for every host, or an " +
		"IP address, without scheme, port and path"
)

// ParseHost parses the host of a permission. Only ASCII letters are lowered, because some other characters have an
// ASCII letter as their lower case. It rejects texts that another parser could read as a different host: addresses in
// the forms of inet_aton, zones, brackets and the root's dot.
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

// ParseOneHost is like [ParseHost] but rejects "*" and "*.NAME".
func ParseOneHost(text string) (Host, error) {
	h, problem := readHost(text)
	if problem != "" {
		return Host{}, &Error{What: "host", Text: text, Problem: problem, Fix: hostFix}
	}
	return h, nil
}

// ParseURLHost parses the host of a URL (RFC 3986, section 3.2.2) without its brackets, as returned
// by [net/url.URL.Hostname]. It is like [ParseOneHost] but allows the root's dot at the end of a
// name (RFC 1034, section 3.1), which does not change the host.
func ParseURLHost(text string) (Host, error) { return ParseOneHost(strings.TrimSuffix(text, ".")) }

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

// lowerASCII lowers ASCII letters only. Others, such as the Kelvin sign, have an ASCII letter as their lower case.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

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
	case number.MatchString(name[strings.LastIndexByte(name, '.')+1:]):
		return "is an address in an unusual form"
	}
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return "is not a host name (non-ASCII names are written in their xn-- form)"
		}
	}
	return ""
}

var (
	// label matches a label that is valid by RFC 1123, section 2.1, of at most 63 bytes. It also
	// allows underscores, which names of services have.
	label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	// number matches a last label that inet_aton could read as part of an address: decimal, octal
	// or hexadecimal (URL Standard, "ends in a number").
	number = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// String returns the canonical form of the host, and "" for the zero value.
func (h Host) String() string { return h.text }

// Bracketed returns the host as written in a URL, with brackets around an IPv6 address.
func (h Host) Bracketed() string {
	if h.address.Is6() {
		return "[" + h.text + "]"
	}
	return h.text
}

// Address returns the host's address. It is not valid if the host is a name.
func (h Host) Address() netip.Addr { return h.address }

// IsOne reports whether the host is a single name or address.
func (h Host) IsOne() bool { return h.text != "" && h.text[0] != '*' }

// Matches reports whether the host includes a single host.
func (h Host) Matches(one Host) bool { return one.IsOne() && h.Covers(one) }

// Covers reports whether the host includes every host of the other.
func (h Host) Covers(other Host) bool {
	if h.text == "" || other.text == "" {
		return false
	}
	if h.text == everyHost || h == other {
		return true
	}
	// Addresses have no names below them, and their texts never end in a label of a name.
	suffix, below := strings.CutPrefix(h.text, "*")
	return below && len(other.text) > len(suffix) && strings.HasSuffix(other.text, suffix)
}

// Intersect returns the hosts included in both, or false if there are none. Two values are either nested or disjoint.
func (h Host) Intersect(other Host) (Host, bool) { return nested(h, other) }

// ParseEndpoint parses the IP address and port to connect to: "127.0.0.1:8443", "[::1]:8443". It
// returns an IPv4-mapped IPv6 address as IPv4.
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

// Origin is the destination of requests, to which a secret can be bound: a scheme, http or https, with a host and a
// port. Equal origins are equal values.
type Origin struct {
	Scheme string
	Host   Host
	Port   int // 0 means every port
}

// DefaultPort returns the port of a scheme's URLs that name none, or 0 for an unknown scheme.
func DefaultPort(scheme string) int { return map[string]int{"http": 80, "https": 443}[scheme] }

// Authority returns the host and, unless it is the scheme's default, the port, as in a URL.
func (o Origin) Authority() string {
	switch o.Port {
	case DefaultPort(o.Scheme):
		return o.Host.Bracketed()
	case 0:
		return o.Host.Bracketed() + ":*"
	}
	return o.Host.Bracketed() + ":" + strconv.Itoa(o.Port)
}

// String returns the origin as in a URL.
func (o Origin) String() string { return o.Scheme + "://" + o.Authority() }
