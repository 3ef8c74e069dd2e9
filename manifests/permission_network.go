package manifests

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
)

// NetworkPermission requests access to hosts. [Parse] replaces empty Methods, Schemes and Paths by
// their defaults: GET, https and /.
type NetworkPermission struct {
	// Host is a lower-case name, an IP address, "*." followed by a name, which matches the names
	// below that name, or "*" for every host.
	Host string
	// Ports are those of the requests; empty means the scheme's default port. In a manifest, a single [EveryPort] requests
	// all.
	Ports   []int
	Methods []string
	Schemes []string
	Paths   []string
}

// EveryPort means all ports in the request of a manifest: ports: "*". A grant names its ports.
const EveryPort = -1

// NetworkGrant lets tools send requests to matching hosts. The defaults of Methods, Schemes and
// Paths are GET, https and /. [LoadPolicy] fills them in; Go programs must set them.
type NetworkGrant struct {
	Binding
	NetworkPermission
	// Addresses are networks in which the host may be, besides the public internet, such as
	// 10.0.0.0/8. A Host that is an address or localhost needs no entry for itself.
	Addresses []netip.Prefix
	// Connect, if not empty, is the address and port to connect to, whatever the host's name resolves to:
	// "127.0.0.1:8443". It is for tests and for private proxies, and needs no entry in Addresses.
	Connect string
	// Authorities is a PEM file with certificates to trust for this host, in addition to the
	// system's. If empty, only the system's are trusted.
	Authorities string
}

// NetworkDeny denies requests that match all of its fields. An empty field matches everything.
type NetworkDeny struct {
	// Host is as in [NetworkPermission]. An address here does not cover names that resolve to it; use Addresses for that.
	Host      string
	Ports     []int
	Methods   []string
	Schemes   []string
	Paths     []string
	Addresses []netip.Prefix // of the connection
}

var methodText = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

func network() kind {
	return kind{
		name: "network",
		asks: &asking{
			key: "network",
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.Network = listOf(r, maxList, r.networkPermission)(n, at)
			},
			write: func(p Permissions) *node { return listed(p.Network, requestNode) },
		},
		gives: grants("network", func(g *Grants) *[]NetworkGrant { return &g.Network },
			(*reader).networkGrants, listing(networkGrantNode), NetworkGrant.element),
		takes: &taking{
			key:    "network",
			read:   func(r *reader, n *node, at string, d *Deny) { d.Network = r.networkDeny(n, at) },
			covers: func(d Deny) bool { return d.Network != nil },
			say:    func(d Deny) Element { return d.Network.element() },
		},
	}
}

func (r *reader) networkPermission(n *node, at string) NetworkPermission {
	p := NetworkPermission{}
	r.object(n, at, r.networkFields(&p, hostExample, r.requestedPorts)...)
	return p.complete()
}

const hostExample = "host: and a name, such as api.example.com or *.example.com"

// networkFields returns the keys that select requests. The host is required if example is not empty.
func (r *reader) networkFields(p *NetworkPermission, example string, ports parser[[]int]) []field {
	return []field{
		required("host", example, &p.Host, canonical(r, permission.ParseHost)),
		optional("ports", &p.Ports, ports),
		optional("methods", &p.Methods,
			distinctOf(r, maxList, r.word(methodText, "write a method in upper case, such as GET"))),
		optional("schemes", &p.Schemes, r.schemes),
		optional("paths", &p.Paths, distinctOf(r, maxList, canonical(r, permission.ParseURLPath))),
	}
}

func (p NetworkPermission) complete() NetworkPermission {
	if len(p.Methods) == 0 {
		p.Methods = []string{"GET"}
	}
	if len(p.Schemes) == 0 {
		p.Schemes = []string{"https"}
	}
	if len(p.Paths) == 0 {
		p.Paths = []string{"/"}
	}
	return p
}

func (r *reader) ports(n *node, at string) []int {
	return distinctOf(r, maxList, integer(r, 1, 65535))(n, at)
}

// everyPort is the spelling of [EveryPort] in a manifest.
const everyPort = "*"

func (r *reader) requestedPorts(n *node, at string) []int {
	if n.kind == textNode && n.text == everyPort {
		return []int{EveryPort}
	}
	return r.ports(n.or(everyPort), at)
}

func (r *reader) schemes(n *node, at string) []string {
	return distinctOf(r, maxList, choice(r, "https", "http"))(n, at)
}

func (r *reader) networkGrants(n *node, at string) []NetworkGrant {
	return listOf(r, maxList, func(n *node, at string) NetworkGrant {
		g := NetworkGrant{Binding: Binding{Origin: r.origin(n.at)}}
		r.object(n, at, append(r.networkFields(&g.NetworkPermission, hostExample, r.ports),
			optional("addresses", &g.Addresses, distinctOf(r, maxList, r.prefix)),
			optional("connect", &g.Connect, canonical(r, permission.ParseEndpoint)),
			optional("authorities", &g.Authorities, r.hostPath),
		)...)
		g.NetworkPermission = g.complete()
		return g
	})(n, at)
}

// networkDeny reads denied requests. An absent key matches everything.
func (r *reader) networkDeny(n *node, at string) *NetworkDeny {
	var p NetworkPermission
	var addresses []netip.Prefix
	r.object(n, at,
		append(r.networkFields(&p, "", r.ports), optional("addresses", &addresses, distinctOf(r, maxList, r.prefix)))...)
	return &NetworkDeny{Host: p.Host, Ports: p.Ports, Methods: p.Methods, Schemes: p.Schemes, Paths: p.Paths,
		Addresses: addresses}
}

// prefix reads a network or a single address.
func (r *reader) prefix(n *node, at string) netip.Prefix {
	text := r.text(n, at)
	n.note("pattern", textOf("^[0-9a-fA-F:.]+(/[0-9]+)?$"))
	if n.kind != textNode {
		return netip.Prefix{}
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
		return prefix
	}
	r.invalid(n, at, fmt.Sprintf("%q %s", clip(text), message), fix)
	return netip.Prefix{}
}

// requestNode writes a network permission without its defaults.
func requestNode(p NetworkPermission) *node {
	standard := NetworkPermission{}.complete()
	p = p.complete()
	return objectOf(
		keyed("host", textOf(p.Host)),
		keyed("ports", portsNode(p.Ports)),
		keyed("methods", listedUnless(p.Methods, standard.Methods)),
		keyed("schemes", listedUnless(p.Schemes, standard.Schemes)),
		keyed("paths", listedUnless(p.Paths, standard.Paths)),
	)
}

// listedUnless returns nil, which means no member, if texts are the standard ones.
func listedUnless(texts, standard []string) *node {
	if slices.Equal(texts, standard) {
		return nil
	}
	return listed(texts, textOf)
}

func networkGrantNode(g NetworkGrant) *node {
	granted := requestNode(g.NetworkPermission)
	addresses := listed(g.Addresses, func(p netip.Prefix) *node { return textOf(p.String()) })
	granted.members = append(granted.members, objectOf(keyed("addresses", addresses)).members...)
	return granted
}

func portsNode(ports []int) *node {
	if slices.Equal(ports, []int{EveryPort}) {
		return textOf(everyPort)
	}
	return listed(ports, intOf[int])
}

func (g NetworkGrant) element() Element {
	return hostElement(g.Host, func() (any, error) {
		g.Binding = Binding{}
		g.Host = canonicalHost(g.Host)
		g.Ports, g.Methods, g.Schemes, g.Paths = inOrder(g.Ports), inOrder(g.Methods), inOrder(g.Schemes), inOrder(g.Paths)
		g.Addresses = prefixesInOrder(g.Addresses)
		if endpoint, err := permission.ParseEndpoint(g.Connect); err == nil {
			g.Connect = endpoint.String()
		}
		return g, absolute(&g.Authorities)
	})
}

func (d NetworkDeny) element() Element {
	return hostElement(cmp.Or(d.Host, "*"), func() (any, error) {
		d.Host = canonicalHost(d.Host)
		d.Ports, d.Methods, d.Schemes, d.Paths = inOrder(d.Ports), inOrder(d.Methods), inOrder(d.Schemes), inOrder(d.Paths)
		d.Addresses = prefixesInOrder(d.Addresses)
		return d, nil
	})
}

func hostElement(text string, canonical func() (any, error)) Element {
	about := "requests to " + text
	if text == "*" {
		about = "the network"
	}
	return Element{
		About: about, Fix: "write a host that a manifest asks for, or remove it", canonical: canonical,
		asked: func(m *Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Network, func(p NetworkPermission) bool { return mayOverlap(p.Host, text) })
		},
	}
}

// mayOverlap reports whether two hosts overlap or either of them cannot be parsed.
func mayOverlap(a, b string) bool {
	one, err := permission.ParseHost(a)
	other, otherErr := permission.ParseHost(b)
	_, overlap := one.Intersect(other)
	return overlap || err != nil || otherErr != nil
}

// canonicalHost returns the canonical form of a host, or text itself if it is not a host.
func canonicalHost(text string) string {
	if host, err := permission.ParseHost(text); err == nil {
		return host.String()
	}
	return text
}

// inOrder returns a sorted copy without duplicates of a list whose order does not matter.
func inOrder[E cmp.Ordered](list []E) []E {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func prefixesInOrder(list []netip.Prefix) []netip.Prefix {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}

// String returns the permission on one line, for display: "GET https://*.example.com:443/v1".
// Multiple values are separated by commas. The path / is omitted.
func (p NetworkPermission) String() string {
	p = p.complete()
	var b strings.Builder
	b.WriteString(strings.Join(p.Methods, ",") + " " + strings.Join(p.Schemes, ",") + "://")
	if strings.Contains(p.Host, ":") {
		b.WriteString("[" + p.Host + "]")
	} else {
		b.WriteString(p.Host)
	}
	for i, port := range p.Ports {
		separator := ","
		if i == 0 {
			separator = ":"
		}
		text := everyPort
		if port != EveryPort {
			text = strconv.Itoa(port)
		}
		b.WriteString(separator + text)
	}
	if len(p.Paths) != 1 || p.Paths[0] != "/" {
		b.WriteString(strings.Join(p.Paths, ","))
	}
	return b.String()
}
