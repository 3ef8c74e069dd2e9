package network

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// rule is which requests a permission is about.
type rule struct {
	host      permission.Host
	endpoints []endpoint
	methods   []string
	paths     []permission.URLPath
}

// readRule checks a permission and fills in the defaults: GET, https and every path.
func readRule(p manifests.NetworkPermission) (rule, error) {
	host, err := permission.ParseHost(p.Host)
	if err != nil {
		return rule{}, err
	}
	paths, err := readPaths(orDefault(p.Paths, "/"))
	if err != nil {
		return rule{}, fmt.Errorf("host %q: %w", p.Host, err)
	}
	r := rule{host: host, methods: orDefault(p.Methods, "GET"), paths: paths}
	schemes := orDefault(p.Schemes, "https")
	if err := checkEndpoints(schemes, p.Ports); err != nil {
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

func readPaths(texts []string) ([]permission.URLPath, error) {
	var paths []permission.URLPath
	for _, text := range texts {
		path, err := permission.ParseURLPath(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// checkEndpoints refuses what would never match: in a grant it would be a riddle, in a denial a
// hole.
func checkEndpoints(schemes []string, ports []int) error {
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
	return nil
}

// allows reports whether a request is one of the rule's.
func (r *rule) allows(l *location, method string) bool {
	return r.host.Matches(l.host) && slices.Contains(r.endpoints, l.endpoint()) &&
		slices.Contains(r.methods, method) && r.allowsPath(l)
}

func (r *rule) allowsPath(l *location) bool {
	return slices.ContainsFunc(r.paths, func(prefix permission.URLPath) bool { return prefix.Matches(l.path) })
}

// intersect returns the rule for the requests that both rules are about, or false if there
// are none.
func (r *rule) intersect(other *rule) (rule, bool) {
	host, overlap := r.host.Intersect(other.host)
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

func commonPaths(a, b []permission.URLPath) []permission.URLPath {
	var all []permission.URLPath
	for _, one := range a {
		for _, other := range b {
			if both, overlap := one.Intersect(other); overlap && !slices.Contains(all, both) {
				all = append(all, both)
			}
		}
	}
	return all
}

// denial is which requests a line of the operator's takes away. An empty field matches
// everything.
type denial struct {
	origin  string
	host    permission.Host
	ports   []int
	methods []string
	schemes []string
	paths   []permission.URLPath
	reach   []prefix // of the connection; empty: the request is denied as such
}

func readDenial(d Denied) (denial, error) {
	host, err := permission.ParseHost(cmp.Or(d.Host, "*"))
	if err != nil {
		return denial{}, err
	}
	paths, err := readPaths(d.Paths)
	if err != nil {
		return denial{}, err
	}
	if err := checkEndpoints(d.Schemes, d.Ports); err != nil {
		return denial{}, err
	}
	reach, err := readPrefixes(d.Addresses)
	return denial{
		origin: d.Origin, host: host, ports: slices.Clone(d.Ports), methods: slices.Clone(d.Methods),
		schemes: slices.Clone(d.Schemes), paths: paths, reach: reach,
	}, err
}

// matches reports whether a request is denied, whatever address it leads to.
func (d *denial) matches(l *location, method string) bool {
	return d.host.Matches(l.host) && anyOr(d.ports, l.port) && anyOr(d.methods, method) && anyOr(d.schemes, l.scheme) &&
		(len(d.paths) == 0 || slices.ContainsFunc(d.paths, func(prefix permission.URLPath) bool { return prefix.MatchesLoosely(l.path) }))
}

func anyOr[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
