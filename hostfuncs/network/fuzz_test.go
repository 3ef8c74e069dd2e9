package network

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// simpleHost reads the host and the port of a URL as a person would, and does not know user info, escapes or other
// spellings.
func simpleHost(text string) (scheme, host, port string) {
	scheme, rest, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if inside, isIPv6 := strings.CutPrefix(rest, "["); isIPv6 {
		host, rest, _ = strings.Cut(inside, "]")
		return scheme, host, strings.TrimPrefix(rest, ":")
	}
	host, port, _ = strings.Cut(rest, ":")
	return scheme, host, port
}

// requireLocation checks what holds of every URL that is accepted.
func requireLocation(t *testing.T, l *location) {
	t.Helper()
	text := l.url.String()
	again, err := url.Parse(text)
	require.NoError(t, err)
	require.Nil(t, again.User)
	require.Empty(t, again.Fragment)
	require.Equal(t, l.Host.String(), again.Hostname())
	scheme, host, port := simpleHost(text)
	require.Equal(t, l.Scheme, scheme)
	require.Equal(t, l.Host.String(), host)
	if port == "" {
		port = fmt.Sprint(permission.DefaultPort(scheme))
	}
	require.Equal(t, fmt.Sprint(l.Port), port)
	require.Contains(t, []string{"http", "https"}, l.Scheme)
	for _, b := range []byte(text) {
		require.True(t, b > ' ' && b < 0x7f && b != '\\', "%q", text)
	}
	authority := text[len(scheme)+len("://"):]
	authority = authority[:strings.IndexByte(authority, '/')]
	require.NotContains(t, authority, "@")
	require.NotContains(t, authority, "%")
	if strings.ContainsAny(l.Host.String(), ":") || strings.Trim(l.Host.String(), "0123456789.") == "" {
		require.Equal(t, must(netip.ParseAddr(l.Host.String())), l.Host.Address())
	}
	// The URL to send parses to the same location.
	same := must(parseURL(text))
	require.Equal(t, l.path, same.path)
	require.Equal(t, l.Host.String(), same.Host.String())
	require.Equal(t, l.Port, same.Port)
	require.True(t, strings.HasPrefix(l.path.String(), "/"))
	if !l.path.IsAmbiguous() {
		require.NotContains(t, l.path.String(), "//")
		require.NotContains(t, l.path.String()+"/", "/../")
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/v1?q=1#f", "http://127.0.0.1:8080/", "http://[::1]:80/a", "http://a@b/", "http://a#@b/", "http://a?@b/", `http://a\@b/`,
		"http://2130706433/", "http://0x7f.1/", "http://A.B./%2e%2e/", "http://a/%2F", "http://a//b", "HTTP://EXAMPLE.com:443", "https://xn--bcher-kva.example/",
		"http://[::ffff:127.0.0.1]/", "http://a:0/", "http://１/", "http://a/\u202e", "http://a/%", "http:///", "http://a;b/", "http://a/;/..;/", "http://%61/",
		"http://[fe80::1%25lo]/", "http://[::1]x/", "http://a:b@c:d@e/", "http://a/?#?",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := parseURL(text); err == nil {
			requireLocation(t, l)
		}
	})
}

func FuzzLocation(f *testing.F) {
	for _, seed := range []string{
		"/", "b", "../x", "//evil.test/", "?q", "#f", "", "http:", "http:x", "https:/x", "http:///x", `\\evil`, "/\\evil", "////evil.test", "http://a:1/..//b", "javascript:x", ";", ":80", "%2f%2fevil",
	} {
		f.Add("https://example.com:8443/a/b?c", seed)
	}
	f.Fuzz(func(t *testing.T, base, text string) {
		from, err := parseURL(base)
		if err != nil {
			return
		}
		to, err := from.resolve(text)
		if err != nil {
			return
		}
		requireLocation(t, to)
		absolute := strings.Contains(text, "//") || strings.Contains(text, ":")
		if !absolute {
			require.True(t, (from.Origin == to.Origin), "%q from %q leads to another origin", text, base)
		}
	})
}

// FuzzRules: a request is allowed if the manifest and a grant allow it and no denial matches.
func FuzzRules(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7919)
	}
	f.Fuzz(func(t *testing.T, seed, other uint64) {
		random := rand.New(rand.NewPCG(seed, other))
		options := Options{Tool: "fetch"}
		for range 1 + random.IntN(3) {
			options.Requests = append(options.Requests, randomPermission(random))
			options.Grants = append(options.Grants, manifests.NetworkGrant{NetworkPermission: randomPermission(random)})
		}
		for range random.IntN(3) {
			p := randomPermission(random)
			options.Deny = append(options.Deny, manifests.Deny{Network: &manifests.NetworkDeny{
				Host: p.Host, Ports: some0(random, p.Ports), Methods: some0(random, p.Methods), Schemes: some0(random, p.Schemes), Paths: some0(random, p.Paths),
			}})
		}
		p := must(readPermission(options))
		for i := range 50 {
			l, method := randomRequest(t, random), oneOf(random, "GET", "POST", "PUT")
			asked, given := false, false
			for i := range p.requests {
				asked = asked || p.requests[i].allows(l, method)
				given = given || p.grants[i].allows(l, method)
			}
			want := asked && given && p.denialOf(l, method) == nil
			require.Equal(t, want, p.allows(l, method), "%s %s of %+v", method, l.url.String(), options)
			for i := range p.permits {
				permit := &p.permits[i]
				both := p.requests[permit.request].allows(l, method) && p.grants[permit.grant].allows(l, method)
				require.Equal(t, both, permit.allows(l, method))
			}
			if !want && i < 5 {
				requireReceipt(t, p, l, method)
			}
		}
	})
}

// requireReceipt: a refusal has a reason, and the suggested rules allow the request.
func requireReceipt(t *testing.T, p *effective, l *location, method string) {
	t.Helper()
	receipt := p.receipt(l, method)
	require.NotEmpty(t, receipt.Rule)
	if p.denialOf(l, method) != nil || l.path.IsAmbiguous() {
		return
	}
	require.NotEmpty(t, receipt.Allow)
	wider := *p
	for _, asked := range pastedManifest(t, receipt.Allow.Manifest) {
		r := must(readRule(asked))
		wider.requests = append(append([]rule{}, p.requests...), r)
	}
	for _, given := range pastedGrants(t, receipt.Allow.Grant) {
		g := must(readGrant(given, ""))
		wider.grants = append(append([]grant{}, p.grants...), g)
	}
	wider.decide("")
	require.True(t, wider.allows(l, method), "%+v", receipt)
}

func oneOf[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

func some0[T any](random *rand.Rand, list []T) []T {
	if random.IntN(2) == 0 {
		return nil
	}
	return list
}

func randomPermission(random *rand.Rand) manifests.NetworkPermission {
	p := manifests.NetworkPermission{Host: oneOf(random, "*", "*.test", "a.test", "*.a.test", "b.a.test", "*.b.a.test", "evila.test", "1.2.3.4")}
	for range random.IntN(3) {
		p.Ports = append(p.Ports, oneOf(random, 80, 443, 8080))
		p.Methods = append(p.Methods, oneOf(random, "GET", "POST"))
		p.Schemes = append(p.Schemes, oneOf(random, "http", "https"))
		p.Paths = append(p.Paths, oneOf(random, "/", "/a", "/a/", "/a/b", "/ab", "/b"))
	}
	return p
}

func randomRequest(t *testing.T, random *rand.Rand) *location {
	t.Helper()
	host := oneOf(random, "a.test", "b.a.test", "c.b.a.test", "evila.test", "test", "1.2.3.4", "other.example")
	path := oneOf(random, "", "/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b", "/a/../b", "/a%2fb", "/%61", "/c")
	l := must(parseURL(fmt.Sprintf("%s://%s:%d%s", oneOf(random, "http", "https"), host, oneOf(random, 80, 443, 8080), path)))
	return l
}
