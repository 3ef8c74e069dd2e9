package network

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/manifests/permission/permissiontest"
)

// plainUse is a request as the reference sees it.
type plainUse struct {
	scheme, host, method, path string
	port                       int
	ambiguous                  bool // the path
}

func (u plainUse) location(t *testing.T) *location {
	t.Helper()
	l, err := parseURL(fmt.Sprintf("%s://%s:%d%s", u.scheme, u.host, u.port, u.path))
	require.NoError(t, err)
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

// plainDenies knows that what is left out is everything.
func plainDenies(d manifests.NetworkDeny, u plainUse) bool {
	return (d.Host == "" || plainHost(d.Host, u.host)) && (len(d.Ports) == 0 || slices.Contains(d.Ports, u.port)) &&
		(len(d.Schemes) == 0 || slices.Contains(d.Schemes, u.scheme)) && (len(d.Methods) == 0 || slices.Contains(d.Methods, u.method)) &&
		(len(d.Paths) == 0 || u.ambiguous || plainPath(d.Paths, u.path))
}

// TestDecideAgainstReference: what is effective of the network is what a few plain loops say.
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
		r, err := readRule(p)
		require.NoError(t, err)
		return permissiontest.Line[plainUse]{Rule: &r, Text: fmt.Sprintf("%+v", p), Matches: func(u plainUse) bool { return plainAllows(p, u) }}
	}
	sample := permissiontest.Sample[plainUse]{
		Partial: true, Request: line, Grant: line, Uses: uses,
		Denial: func(random *rand.Rand) permissiontest.Line[plainUse] {
			p := randomPermission(random)
			p.Paths = slices.DeleteFunc(p.Paths, func(path string) bool { return path == "/a/" })
			d := manifests.NetworkDeny{Host: oneOf(random, "", p.Host), Ports: p.Ports, Methods: p.Methods, Schemes: p.Schemes, Paths: p.Paths}
			read, err := readDenial(Denied{NetworkDeny: d})
			require.NoError(t, err)
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
	asked, err := readRule(manifests.NetworkPermission{Host: "a.test"})
	require.NoError(t, err)
	everything, err := readDenial(Denied{})
	require.NoError(t, err)
	require.True(t, everything.Covers(&asked))
	everything.reach = loopback()
	require.False(t, everything.Covers(&asked))
	_, overlap := asked.Intersect(&everything)
	require.True(t, overlap)
}

// TestNoMethodIsNotEveryMethod: what is left of a permission for tunnels alone allows nothing.
func TestNoMethodIsNotEveryMethod(t *testing.T) {
	requests := []manifests.NetworkPermission{{Host: "a.test", Methods: []string{"CONNECT"}}}
	p, err := readPermission(Options{Requests: requests, Grants: []manifests.NetworkGrant{{NetworkPermission: manifests.NetworkPermission{Host: "*", Methods: []string{"CONNECT", "GET"}}}}})
	require.NoError(t, err)
	l, err := parseURL("https://a.test/")
	require.NoError(t, err)
	for _, method := range []string{"CONNECT", "GET", ""} {
		require.False(t, p.allows(l, method), method)
	}
}
