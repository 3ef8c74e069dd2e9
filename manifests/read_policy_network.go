package manifests

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/caisson-run/caisson/manifests/permission"
)

func (r *reader) networkGrant(n *node, at string) NetworkGrant {
	g := NetworkGrant{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, at, append(r.networkFields(&g.NetworkPermission, hostExample),
		field{"addresses", "", func(n *node, at string) { g.Addresses = r.prefixes(n, at) }},
		field{"connect", "", func(n *node, at string) { g.Connect = r.connect(n, at) }},
		field{"authorities", "", func(n *node, at string) { g.Authorities = r.hostPath(n, at) }},
	)...)
	g.NetworkPermission = g.complete()
	return g
}

// networkDeny reads requests that are denied. A key that is left out matches everything.
func (r *reader) networkDeny(n *node, at string) *NetworkDeny {
	var p NetworkPermission
	var addresses []netip.Prefix
	r.object(n, at, append(r.networkFields(&p, ""),
		field{"addresses", "", func(n *node, at string) { addresses = r.prefixes(n, at) }},
	)...)
	return &NetworkDeny{Host: p.Host, Ports: p.Ports, Methods: p.Methods, Schemes: p.Schemes, Paths: p.Paths, Addresses: addresses}
}

// prefixes reads a list of networks and single addresses.
func (r *reader) prefixes(n *node, at string) []netip.Prefix {
	var prefixes []netip.Prefix
	r.list(n, at, maxList, func(n *node, at string) {
		prefix, read := r.prefix(n, at)
		switch {
		case !read:
		case slices.Contains(prefixes, prefix):
			r.add(n.at, at, DuplicateKey, fmt.Sprintf("%s stands twice in the list", prefix), "keep one of the two")
		default:
			prefixes = append(prefixes, prefix)
		}
	})
	return prefixes
}

func (r *reader) prefix(n *node, at string) (netip.Prefix, bool) {
	text := r.text(n, at)
	if n.kind != textNode {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(text)
	if address, single := netip.ParseAddr(text); single == nil && address.Zone() == "" {
		prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	message, fix := "", "write a network such as 10.0.0.0/8 or fd00::/8, or an address"
	switch {
	case err != nil:
		message = "is neither a network nor an address"
	case prefix.Addr().Is4In6():
		message, fix = "is an IPv4 address mapped into IPv6", "write it as IPv4, such as "+prefix.Addr().Unmap().String()
	case prefix != prefix.Masked():
		message, fix = "has bits beyond its length", "write "+prefix.Masked().String()
	default:
		return prefix, true
	}
	r.add(n.at, at, InvalidValue, fmt.Sprintf("%q %s", clip(text), message), fix)
	return netip.Prefix{}, false
}

// connect reads an IP address with a port.
func (r *reader) connect(n *node, at string) string {
	return canonical(r, n, at, permission.ParseEndpoint)
}
