package network

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// readPrefixes returns prefixes in normal form: IPv4-mapped IPv6 prefixes are unmapped.
func readPrefixes(prefixes []netip.Prefix) ([]netip.Prefix, error) {
	var read []netip.Prefix
	for _, p := range prefixes {
		if !p.IsValid() {
			return nil, fmt.Errorf("%v is not a valid address prefix, such as 10.0.0.0/8", p)
		}
		if p.Addr().Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("%v holds more than the IPv4-mapped addresses; use a prefix length of at least 96", p)
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		read = append(read, p.Masked())
	}
	return read, nil
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// special is a range of addresses that is not the public internet.
type special struct {
	netip.Prefix
	name string
	// own reports whether operators run their own services there. Only then does a receipt
	// suggest a grant: it must not suggest granting a cloud's metadata service.
	own bool
}

func specials() []special {
	own := func(text, name string) special { return special{netip.MustParsePrefix(text), name, true} }
	other := func(text, name string) special { return special{netip.MustParsePrefix(text), name, false} }
	return []special{
		own("127.0.0.0/8", "a loopback"), own("::1/128", "a loopback"),
		own("10.0.0.0/8", "a private"), own("172.16.0.0/12", "a private"), own("192.168.0.0/16", "a private"),
		own("fc00::/7", "a private"), own("100.64.0.0/10", "a shared"),
		other("169.254.0.0/16", "a link-local"), other("fe80::/10", "a link-local"), other("fec0::/10", "a site-local"),
		other("0.0.0.0/8", "an unspecified"), other("::/128", "an unspecified"),
		// The virtual address of a cloud's agent, in the middle of public address space.
		other("168.63.129.16/32", "a cloud's"),
		other("192.0.0.0/24", "a reserved"), other("240.0.0.0/4", "a reserved"),
		other("224.0.0.0/4", "a multicast"), other("ff00::/8", "a multicast"),
		other("64:ff9b::/96", "a translated"), other("64:ff9b:1::/48", "a translated"), other("2002::/16", "a translated"),
		other("2001::/32", "a translated"), other("::/96", "a translated"),
	}
}

// ranges classifies addresses as public or special. It is safe for concurrent use.
type ranges struct {
	named []special
	guard *ssrf.Guardian
}

func newRanges() *ranges {
	return &ranges{specials(), ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())}
}

// special returns the special range that an address is in, or false if the address is public.
func (r *ranges) special(address netip.Addr) (special, bool) {
	for _, s := range r.named {
		if s.Contains(address) {
			return s, true
		}
	}
	if r.guard.SafeAddr(address) != nil {
		return special{netip.PrefixFrom(address, address.BitLen()), "a special-purpose", false}, true
	}
	return special{}, false
}

// forms returns an address and, if a translator or a tunnel would deliver a packet for it to an
// IPv4 address, that address.
func forms(address netip.Addr) []netip.Addr {
	all := []netip.Addr{address}
	if !address.Is6() {
		return all
	}
	bytes := address.As16()
	embedded := func(offset int) netip.Addr { return netip.AddrFrom4([4]byte(bytes[offset : offset+4])) }
	switch {
	case within("64:ff9b::/96", address), within("::/96", address):
		return append(all, embedded(12))
	case within("2002::/16", address):
		return append(all, embedded(2))
	}
	return all
}

func within(network string, address netip.Addr) bool {
	return netip.MustParsePrefix(network).Contains(address)
}

// reach is the set of addresses that a request may connect to: the public internet and what its
// grants add, minus what the operator denies.
type reach struct {
	granted []netip.Prefix
	// exact holds addresses that were granted literally. They may be special.
	exact []netip.Addr
	// connect, if valid, is the endpoint to connect to instead of resolving the name.
	connect     netip.AddrPort
	authorities [][]byte // in PEM
	denied      []deniedReach
}

type deniedReach struct {
	prefixes []netip.Prefix
	origin   string
}

var errRefused = errors.New("no address of the host may be connected to")

// refusal is the error that says why connecting to an address is not allowed.
type refusal struct {
	address netip.Addr
	special special // if no grant covers it
	origin  string  // of the denial, if any
	denied  bool
}

// Error is for the operator: it names the address.
func (r *refusal) Error() string { return errRefused.Error() + ": " + r.address.String() }

// check returns the reason why connecting to an address is not allowed, or nil if it is.
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

func (r *reach) add(other *reach) {
	r.granted = append(r.granted, other.granted...)
	r.exact = append(r.exact, other.exact...)
	r.authorities = append(r.authorities, other.authorities...)
	if !r.connect.IsValid() {
		r.connect = other.connect
	}
}

// isPublic reports whether the reach is the default one, the public internet.
func (r *reach) isPublic() bool {
	return len(r.granted) == 0 && len(r.exact) == 0 && len(r.authorities) == 0 && !r.connect.IsValid() &&
		len(r.denied) == 0
}

// roots returns the trusted certificate authorities, or nil for the system's only.
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
