package secrets

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/manifests/permission"
)

// origin is what a secret is bound to. Equal origins are equal values.
type origin struct {
	scheme string
	host   permission.Host // one
	port   int
}

func newOrigin(scheme string, host permission.Host, port int) origin {
	if port == 0 {
		port = defaultPort(scheme)
	}
	return origin{scheme, host, port}
}

// originOf returns where a request goes; false where its host or its port is none.
func originOf(target *url.URL) (origin, bool) {
	port := 0
	if text := target.Port(); text != "" {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return origin{}, false
		}
		port = int(number)
	}
	host, err := permission.ParseURLHost(target.Hostname())
	if err != nil {
		return origin{}, false
	}
	return newOrigin(target.Scheme, host, port), true
}

// originsOf returns the origins that a grant names.
func originsOf(grant grant) []origin {
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
			if o := newOrigin(scheme, grant.host, port); !slices.Contains(origins, o) {
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

// String returns the origin as in a URL, without the scheme's own port.
func (o origin) String() string {
	if o.port == defaultPort(o.scheme) {
		return o.scheme + "://" + o.host.Bracketed()
	}
	return o.scheme + "://" + o.host.Bracketed() + ":" + strconv.Itoa(o.port)
}
