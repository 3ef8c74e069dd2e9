package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const kind permission.Kind = "network"

// rule is a set of requests: those that match the host and an element of each list. An empty list matches nothing.
type rule struct {
	host      permission.Host
	endpoints []endpoint
	methods   []string
	// everyMethod means a list of all methods. Only denials use it.
	everyMethod bool
	paths       []permission.URLPath
}

// readRule parses a permission and fills in the defaults: GET, https with its default port, and every path.
func readRule(p manifests.NetworkPermission) (rule, error) {
	return readRequests(p, []string{"https"}, permission.DefaultPort)
}

// readRequest is readRule for what a manifest requests, which may be every port.
func readRequest(p manifests.NetworkPermission) (rule, error) {
	if !isEveryPort(p.Ports) {
		return readRule(p)
	}
	p.Ports = nil
	return readRequests(p, []string{"https"}, func(string) int { return everyPort })
}

func isEveryPort(ports []int) bool { return slices.Equal(ports, []int{manifests.EveryPort}) }

// readRequests parses a rule. Without methods, it is for GET.
func readRequests(p manifests.NetworkPermission, schemes []string, portOf func(scheme string) int) (rule, error) {
	host, err := permission.ParseHost(p.Host)
	if err != nil {
		return rule{}, err
	}
	r := rule{host: host, methods: orDefault(p.Methods, "GET")}
	schemes = orDefault(p.Schemes, schemes...)
	if r.paths, err = readPaths(p.Paths); err == nil {
		err = checkEndpoints(schemes, p.Ports)
	}
	if err != nil {
		return rule{}, fmt.Errorf("host %q: %w", p.Host, err)
	}
	for _, scheme := range schemes {
		for _, port := range orDefault(p.Ports, portOf(scheme)) {
			r.endpoints = append(r.endpoints, endpoint{scheme, port})
		}
	}
	return r, nil
}

func orDefault[T any](list []T, values ...T) []T {
	if len(list) == 0 {
		return values
	}
	return slices.Clone(list)
}

func readPaths(texts []string) ([]permission.URLPath, error) {
	var paths []permission.URLPath
	for _, text := range orDefault(texts, "/") {
		path, err := permission.ParseURLPath(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// checkEndpoints rejects endpoints that would never match. In a grant they would be puzzling, in a
// denial they would leave a hole.
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

// isTunnel reports whether a method cannot be granted. CONNECT makes a connection whose content no
// permission can check, and TRACE reveals the secrets injected into a request.
func isTunnel(method string) bool { return method == "CONNECT" || method == "TRACE" }

// Kind implements [permission.Rule].
func (r *rule) Kind() permission.Kind { return kind }

func (r *rule) allows(l *location, method string) bool {
	return r.host.Matches(l.Host) && r.allowsEndpoint(l) && r.allowsMethod(method) && r.allowsPath(l)
}

func (r *rule) allowsEndpoint(l *location) bool {
	return slices.ContainsFunc(r.endpoints, func(e endpoint) bool { return e.covers(l.endpoint()) })
}

func (r *rule) allowsMethod(method string) bool {
	return r.everyMethod || slices.Contains(r.methods, method)
}

func (r *rule) allowsPath(l *location) bool {
	return slices.ContainsFunc(r.paths, func(prefix permission.URLPath) bool { return prefix.Matches(l.path) })
}

// Intersect returns the rule for the requests that both rules contain, or false if there are none.
// For a denial, the addresses that its requests connect to are ignored.
func (r *rule) Intersect(with permission.Rule) (permission.Rule, bool) {
	other, ok := ruleOf(with)
	if !ok {
		return nil, false
	}
	host, overlap := r.host.Intersect(other.host)
	both := &rule{
		host:        host,
		endpoints:   common(r.endpoints, other.endpoints, endpoint.intersect),
		everyMethod: r.everyMethod && other.everyMethod,
		paths:       common(r.paths, other.paths, permission.URLPath.Intersect),
	}
	switch {
	case r.everyMethod:
		both.methods = other.methods
	case other.everyMethod:
		both.methods = r.methods
	default:
		both.methods = common(r.methods, other.methods, func(a, b string) (string, bool) { return a, a == b })
	}
	if !overlap || len(both.endpoints) == 0 || len(both.methods) == 0 && !both.everyMethod || len(both.paths) == 0 {
		return nil, false
	}
	return both, true
}

// ruleOf returns the requests of a rule or of a denial.
func ruleOf(of permission.Rule) (*rule, bool) {
	switch r := of.(type) {
	case *rule:
		return r, true
	case *denial:
		return &r.rule, true
	}
	return nil, false
}

// common returns the distinct intersections of the elements of two lists. Any two must be nested or disjoint.
func common[T comparable](a, b []T, intersect func(T, T) (T, bool)) []T {
	var all []T
	for _, one := range a {
		for _, other := range b {
			if both, overlap := intersect(one, other); overlap && !slices.Contains(all, both) {
				all = append(all, both)
			}
		}
	}
	return all
}

// Covers reports whether this rule contains every request of the other.
func (r *rule) Covers(with permission.Rule) bool {
	other, ok := ruleOf(with)
	return ok && other.cutBy(r) == ""
}

// cutBy lists the properties in which another, overlapping rule is narrower.
func (r *rule) cutBy(other *rule) string {
	var parts []string
	if !other.host.Covers(r.host) {
		parts = append(parts, "hosts")
	}
	if slices.ContainsFunc(r.endpoints, func(e endpoint) bool {
		return !slices.ContainsFunc(other.endpoints, func(wider endpoint) bool { return wider.covers(e) })
	}) {
		parts = append(parts, "schemes or ports")
	}
	if !other.everyMethod && (r.everyMethod || slices.ContainsFunc(r.methods, func(method string) bool {
		return !slices.Contains(other.methods, method)
	})) {
		parts = append(parts, "methods")
	}
	if slices.ContainsFunc(r.paths, func(wanted permission.URLPath) bool {
		return !slices.ContainsFunc(other.paths, func(prefix permission.URLPath) bool { return prefix.Covers(wanted) })
	}) {
		parts = append(parts, "paths")
	}
	return strings.Join(parts, ", ")
}

// String describes the rule: "GET https://*.example.com below /v1".
func (r *rule) String() string {
	var origins []string
	for _, e := range r.endpoints {
		origins = append(origins, permission.Origin{Scheme: e.scheme, Host: r.host, Port: e.port}.String())
	}
	text := strings.Join(r.methods, ", ") + " " + strings.Join(origins, " or ")
	var below []string
	for _, path := range r.paths {
		if path.IsEvery() {
			return text
		}
		below = append(below, path.String())
	}
	return text + " below " + strings.Join(below, " or ")
}

// gap is the set of properties in which a request does not match a rule. A rule with a smaller gap is closer.
type gap uint8

const (
	gapPath gap = 1 << iota
	gapMethod
	gapEndpoint
	gapHost
)

func (r *rule) gap(l *location, method string) gap {
	var differs gap
	if !r.host.Matches(l.Host) {
		differs |= gapHost
	}
	if !r.allowsEndpoint(l) {
		differs |= gapEndpoint
	}
	if !r.allowsMethod(method) {
		differs |= gapMethod
	}
	if !r.allowsPath(l) {
		differs |= gapPath
	}
	return differs
}

// denial is one denial of the operator, or of a profile.
type denial struct {
	rule
	origin  string
	profile string         // that denies everything; empty for a denial of the operator
	reach   []netip.Prefix // addresses to deny; empty: the request is denied whatever its address
}

// readDenial parses a denial. An empty field matches everything.
func readDenial(origin string, d manifests.NetworkDeny) (denial, error) {
	r, err := readRequests(manifests.NetworkPermission{
		Host: cmp.Or(d.Host, "*"), Ports: d.Ports, Schemes: d.Schemes, Paths: d.Paths,
	}, []string{"https", "http"}, func(string) int { return everyPort })
	if err != nil {
		return denial{}, err
	}
	r.methods, r.everyMethod = slices.Clone(d.Methods), len(d.Methods) == 0
	reach, err := readPrefixes(d.Addresses)
	return denial{rule: r, origin: origin, reach: reach}, err
}

// matches reports whether a request is denied, at any address. A lax server may treat other paths as denied ones.
func (d *denial) matches(l *location, method string) bool {
	return d.host.Matches(l.Host) && d.allowsEndpoint(l) && d.allowsMethod(method) &&
		slices.ContainsFunc(d.paths, func(prefix permission.URLPath) bool { return prefix.MatchesLoosely(l.path) })
}

// Covers reports whether the denial contains every request of a rule. A denial that is limited to
// some addresses covers no rule.
func (d *denial) Covers(with permission.Rule) bool { return len(d.reach) == 0 && d.rule.Covers(with) }

func (d *denial) reason() string {
	if d.profile != "" {
		return fmt.Sprintf("the profile %s takes the network away", d.profile)
	}
	return "denied by " + cmp.Or(d.origin, permission.Operator)
}
