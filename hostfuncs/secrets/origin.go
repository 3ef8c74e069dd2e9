package secrets

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// origin is what a secret is bound to, normalised so that equal origins are equal values.
type origin struct {
	scheme, host string
	port         int
}

func newOrigin(scheme, host string, port int) origin {
	scheme = strings.ToLower(scheme)
	if port == 0 {
		port = defaultPort(scheme)
	}
	return origin{scheme, normalHost(host), port}
}

// originOf returns where a request goes; false where its port is none.
func originOf(target *url.URL) (origin, bool) {
	port := 0
	if text := target.Port(); text != "" {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return origin{}, false
		}
		port = int(number)
	}
	return newOrigin(target.Scheme, target.Hostname(), port), true
}

// originsOf returns the origins that a valid grant names.
func originsOf(grant manifests.SecretGrant) []origin {
	schemes, ports := grant.Schemes, grant.Ports
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	if len(ports) == 0 {
		ports = []int{0}
	}
	var origins []origin
	for _, scheme := range schemes {
		for _, port := range ports {
			if o := newOrigin(scheme, grant.Host, port); !slices.Contains(origins, o) {
				origins = append(origins, o)
			}
		}
	}
	return origins
}

func defaultPort(scheme string) int {
	switch scheme {
	case "https":
		return 443
	case "http":
		return 80
	default:
		return 0
	}
}

// normalHost returns the one spelling of a host that is compared: lower-case, without a
// trailing dot, and addresses as netip writes them, IPv4 never as IPv6.
func normalHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return address.Unmap().String()
	}
	return host
}

// String returns the origin as in a URL, without the scheme's own port.
func (o origin) String() string {
	if o.port == defaultPort(o.scheme) {
		return o.scheme + "://" + bracketed(o.host)
	}
	return o.scheme + "://" + net.JoinHostPort(o.host, strconv.Itoa(o.port))
}

// bracketed returns a host as it stands in a URL.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
