package network

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// rule is which requests a permission is about.
type rule struct {
	host      pattern
	endpoints []endpoint
	methods   []string
	paths     []string // prefixes of decoded paths
}

// readRule checks a permission and fills in the defaults: GET, https and every path.
func readRule(p manifests.NetworkPermission) (rule, error) {
	host, message := readPattern(p.Host)
	if message != "" {
		return rule{}, fmt.Errorf("host %q: %s", p.Host, message)
	}
	r := rule{host: host, methods: orDefault(p.Methods, "GET"), paths: orDefault(p.Paths, "/")}
	schemes := orDefault(p.Schemes, "https")
	if err := checkParts(schemes, p.Ports, r.paths); err != nil {
		return rule{}, fmt.Errorf("host %q: %w", p.Host, err)
	}
	for _, scheme := range schemes {
		ports := p.Ports
		if len(ports) == 0 {
			ports = []int{defaultPort(scheme)}
		}
		for _, port := range ports {
			r.endpoints = append(r.endpoints, endpoint{scheme, port})
		}
	}
	return r, nil
}

func orDefault(list []string, value string) []string {
	if len(list) == 0 {
		return []string{value}
	}
	return slices.Clone(list)
}

// checkParts refuses what would never match: in a grant it would be a riddle, in a denial a
// hole.
func checkParts(schemes []string, ports []int, paths []string) error {
	for _, scheme := range schemes {
		if scheme != "http" && scheme != "https" {
			return fmt.Errorf("scheme %q is neither https nor http", scheme)
		}
	}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("port %d is not one of 1 to 65535", port)
		}
	}
	for _, prefix := range paths {
		if !strings.HasPrefix(prefix, "/") || path.Clean(prefix) != "/"+strings.Trim(prefix, "/") || isAmbiguous(prefix, prefix) {
			return fmt.Errorf("path %q is not a clean one that begins with /", prefix)
		}
	}
	return nil
}

// allows reports whether a request is one of the rule's.
func (r *rule) allows(l *location, method string) bool {
	return r.host.matches(l.host) && slices.Contains(r.endpoints, l.endpoint()) &&
		slices.Contains(r.methods, method) && r.allowsPath(l)
}

// allowsPath: of a path that can be read as another one, nothing is known but that it is a
// path.
func (r *rule) allowsPath(l *location) bool {
	return slices.ContainsFunc(r.paths, func(prefix string) bool {
		return prefix == "/" || !l.ambiguous && hasPrefix(l.path, prefix)
	})
}

// hasPrefix reports whether a path is the prefix or below it. A prefix with a slash at its
// end is not among the paths below it.
func hasPrefix(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// intersect returns the rule for the requests that both rules are about, or false if there
// are none.
func (r *rule) intersect(other *rule) (rule, bool) {
	host, overlap := r.host.intersect(other.host)
	both := rule{
		host:      host,
		endpoints: common(r.endpoints, other.endpoints),
		methods:   common(r.methods, other.methods),
		paths:     commonPaths(r.paths, other.paths),
	}
	return both, overlap && len(both.endpoints) > 0 && len(both.methods) > 0 && len(both.paths) > 0
}

func common[T comparable](a, b []T) []T {
	var both []T
	for _, value := range a {
		if slices.Contains(b, value) && !slices.Contains(both, value) {
			both = append(both, value)
		}
	}
	return both
}

// commonPaths intersects prefixes. Two of them are nested or have nothing in common.
func commonPaths(a, b []string) []string {
	var both []string
	add := func(prefix string) {
		if !slices.Contains(both, prefix) {
			both = append(both, prefix)
		}
	}
	for _, one := range a {
		for _, other := range b {
			switch {
			case hasPrefix(other, one):
				add(other)
			case hasPrefix(one, other):
				add(one)
			}
		}
	}
	return both
}

// denial is which requests a line of the operator's takes away. An empty field matches
// everything.
type denial struct {
	origin  string
	host    pattern
	ports   []int
	methods []string
	schemes []string
	paths   []string
	reach   []prefix // of the connection; empty: the request is denied as such
}

func readDenial(d Denied) (denial, error) {
	read := denial{
		origin: d.Origin, host: "*", ports: slices.Clone(d.Ports), methods: slices.Clone(d.Methods),
		schemes: slices.Clone(d.Schemes), paths: slices.Clone(d.Paths),
	}
	if d.Host != "" {
		host, message := readPattern(d.Host)
		if message != "" {
			return denial{}, fmt.Errorf("host %q: %s", d.Host, message)
		}
		read.host = host
	}
	if err := checkParts(d.Schemes, d.Ports, d.Paths); err != nil {
		return denial{}, err
	}
	reach, err := readPrefixes(d.Addresses)
	read.reach = reach
	return read, err
}

// matches reports whether a request is denied, whatever address it leads to. A path that can
// be read as another one matches all.
func (d *denial) matches(l *location, method string) bool {
	return d.host.matches(l.host) && anyOr(d.ports, l.port) && anyOr(d.methods, method) && anyOr(d.schemes, l.scheme) &&
		(len(d.paths) == 0 || l.ambiguous || slices.ContainsFunc(d.paths, func(prefix string) bool { return hasPrefix(loosely(l.path), loosely(prefix)) }))
}

// loosely returns a path as the laxest of servers reads it: without parameters, an escaped
// query, and dots and spaces at the end of segments, and in lower case. What is denied under
// one of its names is denied under all.
func loosely(path string) string {
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		name, _, _ := strings.Cut(segment, ";")
		segments[i] = strings.ToLower(strings.TrimRight(name, ". "))
	}
	return strings.Join(segments, "/")
}

func anyOr[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
