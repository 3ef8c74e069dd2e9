package permission

import "strconv"

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
