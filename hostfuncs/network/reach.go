package network

import (
	"crypto/x509"
	"net/netip"
	"slices"
)

// reach is to which addresses the connections of a request may go: the public internet,
// what its grants add, less what the operator denies.
type reach struct {
	granted []prefix
	// exact are addresses that were granted as such, whatever they stand for.
	exact []netip.Addr
	// connect, if valid, is where connections go, whatever the name resolves to.
	connect     netip.AddrPort
	authorities [][]byte // in PEM
	denied      []deniedReach
}

type deniedReach struct {
	prefixes []prefix
	origin   string
}

// refusal says why an address may not be connected to.
type refusal struct {
	address netip.Addr
	special special // where no grant covers it
	origin  string  // where the operator denies it
	denied  bool
}

// check returns why a connection may not go to an address, or nil.
func (r *reach) check(known *ranges, address netip.Addr) *refusal {
	address = address.Unmap()
	all := forms(address.WithZone(""))
	for _, d := range r.denied {
		if slices.ContainsFunc(all, func(form netip.Addr) bool { return contains(d.prefixes, form) }) {
			return &refusal{address: address, origin: d.origin, denied: true}
		}
	}
	if address.Zone() == "" && slices.Contains(r.exact, address) {
		return nil
	}
	for _, form := range all {
		if s, is := known.special(form); is && !contains(r.granted, form) {
			return &refusal{address: address, special: s}
		}
	}
	if address.Zone() != "" {
		return &refusal{address: address, special: special{name: "a link-local"}}
	}
	return nil
}

// add widens the reach by what another grant gives.
func (r *reach) add(other *reach) {
	r.granted = append(r.granted, other.granted...)
	r.exact = append(r.exact, other.exact...)
	r.authorities = append(r.authorities, other.authorities...)
	if !r.connect.IsValid() {
		r.connect = other.connect
	}
}

// isPublic reports whether the reach is what every request has.
func (r *reach) isPublic() bool {
	return len(r.granted) == 0 && len(r.exact) == 0 && len(r.authorities) == 0 && !r.connect.IsValid() && len(r.denied) == 0
}

// roots returns the authorities that are trusted, or nil for the system's alone.
func (r *reach) roots() (*x509.CertPool, error) {
	if len(r.authorities) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	for _, pem := range r.authorities {
		pool.AppendCertsFromPEM(pem)
	}
	return pool, nil
}
