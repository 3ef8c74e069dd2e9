package network

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/permission/permissiontest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestReceipts: what a receipt suggests, pasted where it belongs, makes the request one that the permission allows.
func TestReceipts(t *testing.T) {
	get := manifests.NetworkPermission{Host: "api.example.com"}
	narrow := manifests.NetworkPermission{Host: "*.example.com", Methods: []string{"GET", "POST"}, Paths: []string{"/v1", "/v2/"}}
	all := everything(80, 443, 8080, 8443)
	for name, c := range map[string]struct {
		requests       []manifests.NetworkPermission
		grants         []manifests.NetworkGrant
		method, target string
		rule           string
		allow          tool.Allow
	}{
		"nothing": {
			nil, nil, "GET", "https://api.example.com/a?q=1", "the manifest does not ask for api.example.com, and no grant covers it",
			tool.Allow{Manifest: json.RawMessage(`{"network":[{"host":"api.example.com"}]}`), Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com"}]}`)},
		},
		"no grant": {
			[]manifests.NetworkPermission{get}, nil, "GET", "https://api.example.com/", "no grant covers api.example.com",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com"}]}`)},
		},
		"not in the manifest": {
			nil, []manifests.NetworkGrant{grantOf(get)}, "GET", "https://api.example.com/", "the manifest does not ask for api.example.com",
			tool.Allow{Manifest: json.RawMessage(`{"network":[{"host":"api.example.com"}]}`)},
		},
		"method": {
			all, []manifests.NetworkGrant{grantOf(get)}, "POST", "https://api.example.com/v1", "the grant at policy.yaml:7 covers api.example.com, but not POST",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com","methods":["POST"]}]}`)},
		},
		"method of the manifest": {
			[]manifests.NetworkPermission{get}, []manifests.NetworkGrant{grantOf(all[0])}, "POST", "https://api.example.com/v1",
			"the manifest asks for api.example.com, but not POST",
			tool.Allow{Manifest: json.RawMessage(`{"network":[{"host":"api.example.com","methods":["POST"]}]}`)},
		},
		"path": {
			all, []manifests.NetworkGrant{grantOf(narrow)}, "GET", "https://api.example.com/v3/x", "the grant at policy.yaml:7 covers api.example.com, but not this path",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com","paths":["/v3/x"]}]}`)},
		},
		"method below a path": {
			all, []manifests.NetworkGrant{grantOf(narrow)}, "PUT", "https://api.example.com/v1/x", "the grant at policy.yaml:7 covers api.example.com, but not PUT",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com","methods":["PUT"],"paths":["/v1"]}]}`)},
		},
		"port and scheme": {
			all, []manifests.NetworkGrant{grantOf(get)}, "GET", "http://api.example.com:8080/", "the grant at policy.yaml:7 covers api.example.com, but not http on port 8080",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com","ports":[8080],"schemes":["http"]}]}`)},
		},
		"address": {
			all, nil, "GET", "https://[2606:4700::1111]:8443/", "no grant covers 2606:4700::1111",
			tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"2606:4700::1111","ports":[8443]}]}`)},
		},
		"unusual method": {
			nil, []manifests.NetworkGrant{}, "PROPFIND", "https://api.example.com/", "the manifest does not ask for api.example.com, and no grant covers it",
			tool.Allow{Manifest: json.RawMessage(`{"network":[{"host":"api.example.com","methods":["PROPFIND"]}]}`), Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"api.example.com","methods":["PROPFIND"]}]}`)},
		},
		"metadata": {
			nil, nil, "GET", "http://169.254.169.254/latest", "the manifest does not ask for 169.254.169.254, and no grant covers it", tool.Allow{},
		},
		"a path with syntax": {
			all, []manifests.NetworkGrant{grantOf(narrow)}, "GET", "https://api.example.com/v3/%22%27$(id)]}", "the grant at policy.yaml:7 covers api.example.com, but not this path",
			tool.Allow{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Tool: "fetch", Requests: c.requests, Grants: c.grants}
			s := open(t, options)
			require.ErrorIs(t, errOf(s.Do(t.Context(), Request{Method: c.method, URL: c.target})), hostfuncs.ErrDenied)
			require.Len(t, s.Journal.Denials(), 1)
			receipt := s.Journal.Denials()[0]
			assert.Equal(t, c.rule, receipt.Rule)
			assert.Equal(t, c.allow, receipt.Allow)
			requirePasted(t, options, s.Journal.Denials()[0].Allow, c.method, c.target)
		})
	}
}

// requirePasted adds what a receipt says is missing.
func requirePasted(t *testing.T, options Options, allow tool.Allow, method, target string) {
	t.Helper()
	if allow.Manifest == nil && allow.Grant == nil {
		return
	}
	l := must(parseURL(target))
	options.Requests = append(options.Requests, pastedManifest(t, allow.Manifest)...)
	options.Grants = append(append([]manifests.NetworkGrant{}, options.Grants...), pastedGrants(t, allow.Grant)...)
	require.True(t, must(readPermission(options)).allows(l, method), "%s", allow.Grant)
}

func pastedManifest(t *testing.T, rule json.RawMessage) []manifests.NetworkPermission {
	t.Helper()
	if rule == nil {
		return nil
	}
	m := must(manifests.Parse("tool.json", []byte(`{"schema":"caisson/v1","name":"fetch","description":"Fetch a page.","module":{"path":"a.wasm"},"permissions":`+string(rule)+`}`)))
	return m.Permissions.Network
}

func pastedGrants(t *testing.T, rule json.RawMessage) []manifests.NetworkGrant {
	t.Helper()
	if rule == nil {
		return nil
	}
	policy := must(manifests.ParsePolicy("policy.json", []byte(`{"schema":"caisson-config/v1","grants":[`+string(rule)+`]}`)))
	return policy.For("fetch", "").Network
}

// TestAddressReceipts: the same for what a host leads to.
func TestAddressReceipts(t *testing.T) {
	for target, c := range map[string]struct {
		address string
		rule    string
		allow   tool.Allow
	}{
		"http://127.0.0.1:8080/":    {"", "127.0.0.1 leads to a loopback address, and no grant says that it may", tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"127.0.0.1","ports":[8080],"schemes":["http"]}]}`)}},
		"https://localhost/":        {"", "localhost leads to a loopback address, and no grant says that it may", tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"localhost"}]}`)}},
		"https://db.example.com/":   {"10.1.2.3", "db.example.com leads to a private address, and no grant says that it may", tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"db.example.com","addresses":["10.0.0.0/8"]}]}`)}},
		"https://six.example.com/":  {"fd12::1", "six.example.com leads to a private address, and no grant says that it may", tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"six.example.com","addresses":["fc00::/7"]}]}`)}},
		"https://meta.example.com/": {"169.254.169.254", "meta.example.com leads to a link-local address, and no grant says that it may", tool.Allow{}},
	} {
		l := must(parseURL(target))
		names := newNames(t, map[string][]string{l.Host.String(): {c.address}})
		options := Options{Tool: "fetch", Requests: everything(80, 443, 8080), Grants: []manifests.NetworkGrant{grantOf(everything(80, 443, 8080)[0])}}
		if c.address != "" {
			options.Resolver = names.resolver()
		}
		s := open(t, options)
		_, err := get(t, s, target)
		assert.Equal(t, c.rule, denied(t, err))
		receipt := s.Journal.Denials()[0]
		assert.Equal(t, c.allow, receipt.Allow, target)
		if way := pastedGrants(t, receipt.Allow.Grant); len(way) > 0 {
			pasted := options
			pasted.Grants = append(append([]manifests.NetworkGrant{}, options.Grants...), way...)
			p := must(readPermission(pasted))
			to, _ := p.reach(l, "GET")
			address := l.Host.Address()
			if c.address != "" {
				address = addressOf(c.address)
			} else if l.Host.String() == "localhost" {
				address = addressOf("127.0.0.1")
			}
			assert.Nil(t, to.check(p.known, address), target)
		}
	}
}

func TestReceiptsOfWhatIsTakenAway(t *testing.T) {
	all := Options{Requests: everything(443), Grants: []manifests.NetworkGrant{grantOf(everything(443)[0])}}
	all.NoNetwork = "strict"
	s := open(t, all)
	_, err := get(t, s, "https://example.com/")
	assert.Equal(t, "the profile strict takes the network away", denied(t, err))
	assert.Zero(t, s.Journal.Denials()[0].Allow)

	all.NoNetwork = ""
	all.Deny = []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Host: "*.internal"}}}
	s = open(t, all)
	_, err = get(t, s, "https://db.internal/")
	assert.Equal(t, "denied by policy.yaml:9", denied(t, err))
	assert.Zero(t, s.Journal.Denials()[0].Allow)
}

func TestDecisions(t *testing.T) {
	api := manifests.NetworkPermission{Host: "*.example.com", Methods: []string{"GET", "POST"}, Schemes: []string{"https", "http"}, Paths: []string{"/v1"}}
	narrow := grantOf(manifests.NetworkPermission{Host: "a.example.com", Methods: []string{"GET"}, Ports: []int{443, 8443}, Paths: []string{"/v1/read"}})
	for name, c := range map[string]struct {
		options Options
		want    tool.Decision
	}{
		"nothing": {
			Options{},
			tool.Decision{
				Requested: "GET, POST https://*.example.com or http://*.example.com below /v1", Reason: "no grant covers it",
				Allow: tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"*.example.com","methods":["GET","POST"],"schemes":["https","http"],"paths":["/v1"]}]}`)},
			},
		},
		"all": {
			Options{Grants: []manifests.NetworkGrant{grantOf(manifests.NetworkPermission{Host: "*", Methods: []string{"POST", "GET"}, Schemes: []string{"http", "https"}})}},
			tool.Decision{
				Requested: "GET, POST https://*.example.com or http://*.example.com below /v1",
				Granted:   "POST, GET http://* or https://* (policy.yaml:7)",
				Effective: "GET, POST https://*.example.com or http://*.example.com below /v1", Reason: "granted as asked",
			},
		},
		"some": {
			Options{
				Grants: []manifests.NetworkGrant{narrow},
				Deny:   []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Host: "a.example.com", Paths: []string{"/v1/read/secret"}}}, {Origin: "policy.yaml:11", Network: &manifests.NetworkDeny{Host: "other.test"}}},
			},
			tool.Decision{
				Requested: "GET, POST https://*.example.com or http://*.example.com below /v1",
				Granted:   "GET https://a.example.com or https://a.example.com:8443 below /v1/read (policy.yaml:7)",
				Effective: "GET https://a.example.com below /v1/read",
				Reason:    "the grant at policy.yaml:7 covers fewer hosts, schemes or ports, methods, paths; except what policy.yaml:9 denies",
				Allow:     tool.Allow{Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"*.example.com","methods":["GET","POST"],"schemes":["https","http"],"paths":["/v1"]}]}`)},
			},
		},
		"denied": {
			Options{
				Grants: []manifests.NetworkGrant{narrow},
				Deny:   []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Host: "a.example.com", Ports: []int{443}, Methods: []string{"GET"}, Paths: []string{"/v1"}}}},
			},
			tool.Decision{
				Requested: "GET, POST https://*.example.com or http://*.example.com below /v1",
				Granted:   "GET https://a.example.com or https://a.example.com:8443 below /v1/read (policy.yaml:7)",
				Reason:    "denied by policy.yaml:9",
			},
		},
		"profile": {
			Options{Grants: []manifests.NetworkGrant{narrow}, NoNetwork: "strict"},
			tool.Decision{
				Requested: "GET, POST https://*.example.com or http://*.example.com below /v1",
				Granted:   "GET https://a.example.com or https://a.example.com:8443 below /v1/read (policy.yaml:7)",
				Reason:    "the profile strict takes the network away",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Tool, c.options.Requests = "fetch", []manifests.NetworkPermission{api}
			client := must(New(c.options))
			defer client.Close()
			c.want.Permission = "network"
			assert.Equal(t, []tool.Decision{c.want}, client.Decisions())
		})
	}
}

// plainUse is a request as the reference sees it.
type plainUse struct {
	scheme, host, method, path string
	port                       int
	ambiguous                  bool // the path
}

func (u plainUse) location(t *testing.T) *location {
	t.Helper()
	l := must(parseURL(fmt.Sprintf("%s://%s:%d%s", u.scheme, u.host, u.port, u.path)))
	return l
}

func plainHost(pattern, host string) bool {
	return pattern == "*" || pattern == host || strings.HasPrefix(pattern, "*.") && strings.HasSuffix(host, pattern[1:])
}

// plainPath is for prefixes and clean paths in lower case.
func plainPath(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return prefix == "/" || path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
	})
}

// plainAllows knows the defaults of requests and grants.
func plainAllows(p manifests.NetworkPermission, u plainUse) bool {
	ports := p.Ports
	if len(ports) == 0 {
		ports = []int{map[string]int{"http": 80, "https": 443}[u.scheme]}
	}
	whole := len(p.Paths) == 0 || slices.Contains(p.Paths, "/")
	return plainHost(p.Host, u.host) && slices.Contains(ports, u.port) && slices.Contains(orDefault(p.Schemes, "https"), u.scheme) &&
		slices.Contains(orDefault(p.Methods, "GET"), u.method) && (whole || !u.ambiguous && plainPath(p.Paths, u.path))
}

// plainDenies reports whether a denial matches a use. An omitted field matches everything.
func plainDenies(d manifests.NetworkDeny, u plainUse) bool {
	return (d.Host == "" || plainHost(d.Host, u.host)) && (len(d.Ports) == 0 || slices.Contains(d.Ports, u.port)) &&
		(len(d.Schemes) == 0 || slices.Contains(d.Schemes, u.scheme)) && (len(d.Methods) == 0 || slices.Contains(d.Methods, u.method)) &&
		(len(d.Paths) == 0 || u.ambiguous || plainPath(d.Paths, u.path))
}

// TestDecideAgainstReference: the effective network permission is the one that a few plain loops compute.
func TestDecideAgainstReference(t *testing.T) {
	uses := []plainUse{}
	for _, host := range []string{"a.test", "b.a.test", "c.b.a.test", "evila.test", "1.2.3.4", "other.example"} {
		for _, scheme := range []string{"http", "https"} {
			for _, port := range []int{80, 443, 8080} {
				for _, path := range []string{"/", "/a", "/a/", "/a/b", "/ab", "/b", "/a/../b"} {
					for _, method := range []string{"GET", "POST"} {
						uses = append(uses, plainUse{scheme, host, method, path, port, strings.Contains(path, "..")})
					}
				}
			}
		}
	}
	locations := map[plainUse]*location{}
	for _, u := range uses {
		locations[u] = u.location(t)
	}
	line := func(random *rand.Rand) permissiontest.Line[plainUse] {
		p := randomPermission(random)
		p.Paths = slices.DeleteFunc(p.Paths, func(path string) bool { return path == "/a/" }) // which TestURLPath has
		r := must(readRule(p))
		return permissiontest.Line[plainUse]{Rule: &r, Text: fmt.Sprintf("%+v", p), Matches: func(u plainUse) bool { return plainAllows(p, u) }}
	}
	sample := permissiontest.Sample[plainUse]{
		Partial: true, Request: line, Grant: line, Uses: uses,
		Denial: func(random *rand.Rand) permissiontest.Line[plainUse] {
			p := randomPermission(random)
			p.Paths = slices.DeleteFunc(p.Paths, func(path string) bool { return path == "/a/" })
			d := manifests.NetworkDeny{Host: oneOf(random, "", p.Host), Ports: p.Ports, Methods: p.Methods, Schemes: p.Schemes, Paths: p.Paths}
			read := must(readDenial("", d))
			return permissiontest.Line[plainUse]{Rule: &read, Text: fmt.Sprintf("%+v", d), Matches: func(u plainUse) bool {
				require.Equal(t, plainDenies(d, u), read.matches(locations[u], u.method), "%+v and %+v", d, u)
				return plainDenies(d, u)
			}}
		},
		Matches: func(r permission.Rule, u plainUse) bool { return r.(*rule).allows(locations[u], u.method) },
	}
	for seed := range uint64(3) {
		permissiontest.Check(t, sample, seed)
	}
}

// TestDenialsByAddressTakeNothingWhole: where a request leads is known when it is sent.
func TestDenialsByAddressTakeNothingWhole(t *testing.T) {
	asked := must(readRule(manifests.NetworkPermission{Host: "a.test"}))
	everything := must(readDenial("", manifests.NetworkDeny{}))
	require.True(t, everything.Covers(&asked))
	everything.reach = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	require.False(t, everything.Covers(&asked))
	_, overlap := asked.Intersect(&everything)
	require.True(t, overlap)
}

// TestNoMethodIsNotEveryMethod: a permission that lists only CONNECT, which cannot be granted, allows nothing.
func TestNoMethodIsNotEveryMethod(t *testing.T) {
	requests := []manifests.NetworkPermission{{Host: "a.test", Methods: []string{"CONNECT"}}}
	p := must(readPermission(Options{Requests: requests, Grants: []manifests.NetworkGrant{{NetworkPermission: manifests.NetworkPermission{Host: "*", Methods: []string{"CONNECT", "GET"}}}}}))
	l := must(parseURL("https://a.test/"))
	for _, method := range []string{"CONNECT", "GET", ""} {
		require.False(t, p.allows(l, method), method)
	}
}
