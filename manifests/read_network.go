package manifests

import (
	"fmt"
	"regexp"
	"slices"
)

var methodText = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

func (r *reader) networkPermission(n *node, at string) NetworkPermission {
	p := NetworkPermission{}
	r.object(n, at, r.networkFields(&p, hostExample)...)
	return p.complete()
}

// hostExample tells whoever left out a host what to add.
const hostExample = "host: and a name, such as api.example.com or *.example.com"

// networkFields are the keys that say which requests are meant. The example, if it is not
// empty, makes the host required.
func (r *reader) networkFields(p *NetworkPermission, example string) []field {
	return []field{
		{"host", example, func(n *node, at string) { p.Host = r.host(n, at) }},
		{"ports", "", func(n *node, at string) { p.Ports = r.ports(n, at) }},
		{"methods", "", func(n *node, at string) { p.Methods = r.uniqueTexts(n, at, maxList, r.method) }},
		{"schemes", "", func(n *node, at string) { p.Schemes = r.schemes(n, at) }},
		{"paths", "", func(n *node, at string) { p.Paths = r.uniqueTexts(n, at, maxList, r.urlPath) }},
	}
}

// complete fills in the defaults.
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
	var ports []int
	r.list(n, at, maxList, func(n *node, at string) {
		port := int(r.integer(n, at, 1, 65535))
		if slices.Contains(ports, port) {
			r.add(n.at, at, DuplicateKey, fmt.Sprintf("port %d stands twice in the list", port), "keep one of the two")
		} else if port > 0 {
			ports = append(ports, port)
		}
	})
	return ports
}

func (r *reader) schemes(n *node, at string) []string {
	return r.uniqueTexts(n, at, maxList, func(n *node, at string) string { return r.choice(n, at, "https", "http") })
}

func (r *reader) method(n *node, at string) string {
	return r.word(n, at, methodText, "write a method in upper case, such as GET")
}
