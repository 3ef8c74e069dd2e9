package network

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// TestAttackNameLeadsInside: the owner of a name chooses the addresses to which it resolves.
func TestAttackNameLeadsInside(t *testing.T) {
	inside := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the secret page") })
	for _, c := range []struct{ address, word string }{
		{"127.0.0.1", "a loopback address"}, {"::1", "a loopback address"}, {"::ffff:127.0.0.1", "a loopback address"},
		{"127.8.9.10", "a loopback address"}, {"10.0.0.7", "a private address"}, {"172.31.255.1", "a private address"},
		{"192.168.1.1", "a private address"}, {"169.254.169.254", "a link-local address"}, {"100.100.100.200", "a shared address"},
		{"192.0.0.192", "a reserved address"}, {"0.0.0.0", "an unspecified address"}, {"::", "an unspecified address"},
		{"fd00:ec2::254", "a private address"}, {"fe80::1", "a link-local address"}, {"fec0::1", "a site-local address"},
		{"64:ff9b::7f00:1", "a translated address"}, {"64:ff9b:1::7f00:1", "a translated address"}, {"2002:7f00:1::", "a translated address"},
		{"::127.0.0.1", "a translated address"}, {"224.0.0.1", "a multicast address"}, {"ff02::1", "a multicast address"},
		{"255.255.255.255", "a reserved address"}, {"240.0.0.1", "a reserved address"}, {"168.63.129.16", "a cloud's address"},
		{"198.18.0.1", "a special-purpose address"}, {"2001:db8::1", "a special-purpose address"},
	} {
		t.Run(c.address, func(t *testing.T) {
			resolver := newNames(t, map[string][]string{"api.example.com": {c.address}}).resolver()
			control := newUnguarded(t, resolver)
			control.get(t, inside.at("api.example.com", "/"))
			require.NotEmpty(t, control.dialled(), "the attack must work on a client without a guard")
			before := inside.connections.Load()

			s := open(t, Options{
				Tool: "fetch", Resolver: resolver,
				Requests: everything(inside.port), Grants: []manifests.NetworkGrant{grantOf(everything(inside.port)[0])},
			})
			_, err := get(t, s, inside.at("api.example.com", "/p?q=1"))
			assert.Contains(t, denied(t, err), c.word)
			assert.NotContains(t, err.Error(), netip.MustParseAddr(c.address).Unmap().String(), "a guest does not learn the address")
			assert.Equal(t, before, inside.connections.Load())
			require.Len(t, s.Journal.Denials(), 1)
			assert.Equal(t, inside.at("api.example.com", "/p"), s.Journal.Denials()[0].Value)
		})
	}
}

// TestAttackRebinding: a name that was checked leads elsewhere when it is dialled.
func TestAttackRebinding(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the secret page") }
	inside := serve(t, plain, page)
	permission := inside.permission("rebind.example.com")

	t.Run("on the second call", func(t *testing.T) {
		server := newNames(t, map[string][]string{"rebind.example.com": {"127.0.0.1"}})
		grant := grantOf(permission, "127.0.0.1/32") // the "public" address of this test
		s := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grant}, Resolver: server.resolver()})
		require.NoError(t, errOf(get(t, s, inside.at("rebind.example.com", "/"))))
		s.closeIdle()
		server.set("rebind.example.com", "127.0.0.2")
		_, err := get(t, s, inside.at("rebind.example.com", "/"))
		denied(t, err)
	})

	t.Run("between check and dial", func(t *testing.T) {
		server := newNames(t, nil)
		answers := [][]string{{"203.0.113.9"}, {"203.0.113.9"}, {"127.0.0.1"}, {"127.0.0.1"}} // A and AAAA are asked for at once
		asked := 0
		server.setAnswer(func(string) []string { asked++; return answers[min(asked, len(answers))-1] })
		resolver := server.resolver()
		require.False(t, must(resolver.LookupNetIP(t.Context(), "ip", "rebind.example.com"))[0].IsLoopback(), "the check sees a public address")
		_, err := newUnguarded(t, resolver).get(t, inside.at("rebind.example.com", "/"))
		require.NoError(t, err, "the attack must work where the check is not at the dial")

		// With the guard, each call either goes where it may or nowhere.
		alternating, turn := [][]string{{"127.0.0.1"}, {"10.0.0.7"}}, 0
		server.setAnswer(func(string) []string { turn++; return alternating[turn/2%2] })
		s := open(t, Options{
			Requests: []manifests.NetworkPermission{permission}, Resolver: resolver,
			Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
		})
		reached, refused := 0, 0
		for range 40 {
			if _, err := get(t, s, inside.at("rebind.example.com", "/")); err == nil {
				reached++
			} else {
				assert.Contains(t, denied(t, err), "a private address")
				refused++
			}
			s.closeIdle()
		}
		assert.NotZero(t, reached)
		assert.NotZero(t, refused)
	})
}

// TestAttackMixedAnswer: of several addresses, those that are denied are never tried.
func TestAttackMixedAnswer(t *testing.T) {
	page := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
	permission := page.permission("mixed.example.com")
	server := newNames(t, map[string][]string{"mixed.example.com": {"10.0.0.7", "169.254.169.254", "127.0.0.1", "fd00::1"}})
	s := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Resolver: server.resolver(),
		Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
	})
	assert.Equal(t, "fine", string(must(get(t, s, page.at("mixed.example.com", "/"))).Body))
}

// TestMixedAnswerThatFails: where one address may be tried and does not answer, the network
// failed, and not the permission.
func TestMixedAnswerThatFails(t *testing.T) {
	gone := serve(t, plain, http.NotFound)
	gone.Close()
	permission := gone.permission("mixed.example.com")
	s := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
		Resolver: newNames(t, map[string][]string{"mixed.example.com": {"10.0.0.7", "127.0.0.1"}}).resolver(),
	})
	require.ErrorIs(t, errOf(get(t, s, gone.at("mixed.example.com", "/"))), hostfuncs.ErrIO)
	assert.Empty(t, s.Journal.Denials())
}

// TestAttackSharedConnection: private addresses that are granted for one host are none for
// another, however connections are kept.
func TestAttackSharedConnection(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			inside := serve(t, kind, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") })
			server := newNames(t, map[string][]string{"a.example.com": {"127.0.0.1"}, "b.example.com": {"127.0.0.1"}, "example.com": {"127.0.0.1"}})
			a, b := grantAt(t, inside, "example.com"), grantOf(inside.permission("b.example.com"))
			b.Authorities = a.Authorities
			s := open(t, Options{Requests: everything(inside.port), Grants: []manifests.NetworkGrant{a, b}, Resolver: server.resolver()})
			require.NoError(t, errOf(get(t, s, inside.at("example.com", "/"))))
			_, err := get(t, s, inside.at("b.example.com", "/"))
			assert.Contains(t, denied(t, err), "b.example.com leads to a loopback address")

			t.Run("by method", func(t *testing.T) {
				posts := inside.permission("example.com", "POST")
				s := open(t, Options{
					Requests: everything(inside.port), Resolver: server.resolver(),
					Grants: []manifests.NetworkGrant{a, grantOf(posts)}, // only GET may go to loopback
				})
				require.NoError(t, errOf(get(t, s, inside.at("example.com", "/"))))
				_, err = s.Do(t.Context(), Request{Method: "POST", URL: inside.at("example.com", "/")})
				denied(t, err)
			})
			t.Run("by denial", func(t *testing.T) {
				all := grantAt(t, inside, "example.com", "GET", "POST")
				s := open(t, Options{
					Requests: everything(inside.port), Resolver: server.resolver(), Grants: []manifests.NetworkGrant{all},
					Deny: []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Methods: []string{"POST"}, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}},
				})
				require.NoError(t, errOf(get(t, s, inside.at("example.com", "/"))))
				_, err = s.Do(t.Context(), Request{Method: "POST", URL: inside.at("example.com", "/")})
				assert.Contains(t, denied(t, err), "an address that the operator denies at policy.yaml:9")
			})
		})
	}
}

// TestAttackStarAndLoopback: a grant for every host is one for the public internet.
func TestAttackStarAndLoopback(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the secret page") }
	inside := serve(t, plain, page)
	control, reached := newUnguarded(t, nil), 0
	s := open(t, Options{Requests: everything(inside.port), Grants: []manifests.NetworkGrant{grantOf(everything(inside.port)[0])}})
	for _, host := range []string{
		"127.0.0.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost", "１２７.0.0.1",
		"LOCALHOST", "localhost.", "127.0.0.1.", "127.1.2.3", "[0:0:0:0:0:0:0:1]",
	} {
		target := strings.Replace(inside.at("HOST", "/"), "HOST", host, 1)
		if _, err := control.get(t, target); err == nil {
			reached++
		}
		before := inside.connections.Load()
		_, err := get(t, s, target)
		require.Error(t, err, host)
		if !isInvalid(err) {
			denied(t, err)
		}
		assert.Equal(t, before, inside.connections.Load(), host)
	}
	require.Greater(t, reached, 5, "the attack must work on a client without a guard")
}

func isInvalid(err error) bool {
	failed, ok := err.(*hostfuncs.Error)
	return ok && failed.Kind == hostfuncs.ErrInvalid
}

// TestAddressesOfOnesOwn: what a grant names itself may be private.
func TestAddressesOfOnesOwn(t *testing.T) {
	inside := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") })
	server := newNames(t, map[string][]string{"db.example.com": {"127.0.0.1"}})
	connect := grantOf(manifests.NetworkPermission{Host: "elsewhere.example.com", Schemes: []string{"http"}})
	connect.Connect = inside.Listener.Addr().String()
	for name, c := range map[string]struct {
		grant  manifests.NetworkGrant
		target string
	}{
		"literal":   {grantOf(inside.permission("127.0.0.1")), inside.at("127.0.0.1", "/")},
		"mapped":    {grantOf(inside.permission("::ffff:127.0.0.1")), inside.at("::ffff:7f00:1", "/")},
		"localhost": {grantOf(inside.permission("localhost")), inside.at("LocalHost.", "/")},
		"addresses": {grantOf(inside.permission("*.example.com"), "127.0.0.0/8"), inside.at("db.example.com", "/")},
		"connect":   {connect, "http://elsewhere.example.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Requests: everything(inside.port, 80), Grants: []manifests.NetworkGrant{c.grant}, Resolver: server.resolver()}
			answer := must(get(t, open(t, options), c.target))
			assert.Equal(t, "page", string(answer.Body))
			assert.NotContains(t, answer.URL, "ffff")

			options.Deny = []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}}
			_, err := get(t, open(t, options), c.target)
			assert.Contains(t, denied(t, err), "the operator denies at policy.yaml:9")
		})
	}
}

func TestReach(t *testing.T) {
	known := newRanges()
	prefixes := func(texts ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		read := must(readPrefixes(all))
		return read
	}
	check := func(r reach, address string) bool { return r.check(known, netip.MustParseAddr(address)) == nil }
	for _, public := range []string{"8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "168.63.129.17"} {
		assert.True(t, check(reach{}, public), public)
	}
	assert.False(t, check(reach{}, "2606:4700:4700::1111%eth0"), "an address with a zone is on a link")
	nat := reach{granted: prefixes("64:ff9b::/96")}
	assert.True(t, check(nat, "64:ff9b::808:808"), "a public address through a granted translator")
	assert.False(t, check(nat, "64:ff9b::a00:7"), "a private address through a granted translator")
	assert.True(t, check(reach{granted: prefixes("64:ff9b::/96", "10.0.0.0/8")}, "64:ff9b::a00:7"))
	denied := reach{denied: []deniedReach{{prefixes("8.8.8.0/24"), ""}}, exact: []netip.Addr{netip.MustParseAddr("8.8.8.8")}}
	assert.False(t, check(denied, "8.8.8.8"), "a denial beats a grant of the exact address")
	assert.False(t, check(denied, "::ffff:8.8.8.8"))
	denied.granted = prefixes("64:ff9b::/96", "2002::/16")
	assert.False(t, check(denied, "64:ff9b::808:808"))
	assert.False(t, check(denied, "2002:808:808::1"))
	mapped := reach{granted: prefixes("::ffff:10.0.0.0/104")}
	assert.True(t, check(mapped, "10.9.8.7"))
	assert.False(t, check(mapped, "192.168.0.1"))
	literal := must(readGrant(grantOf(manifests.NetworkPermission{Host: "10.0.0.7"}), ""))
	assert.True(t, check(literal.reach, "10.0.0.7"))
	assert.False(t, check(literal.reach, "10.0.0.8"))
	assert.False(t, check(literal.reach, "127.0.0.1"))
	require.Error(t, errOf(readPrefixes([]netip.Prefix{netip.MustParsePrefix("::ffff:0:0/95")})))
	require.Error(t, errOf(readPrefixes([]netip.Prefix{{}})))
}

// TestUnreachable: a network failure is not a denial, and its error reveals nothing about the route.
func TestUnreachable(t *testing.T) {
	gone := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	gone.Close()
	broken := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNotHere }}
	untrusted := serve(t, secure, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		target, message string
		resolver        *net.Resolver
	}{
		"refused":     {gone.at("127.0.0.1", "/"), "the server refuses connections", nil},
		"no name":     {gone.at("no.example.com", "/"), "the host's name does not exist", newNames(t, nil).resolver()},
		"no resolver": {gone.at("no.example.com", "/"), "the host's name cannot be resolved", broken},
		"certificate": {untrusted.at("127.0.0.1", "/"), "the server's certificate is not valid for the host", nil},
		"no TLS":      {strings.Replace(serve(t, plain, http.NotFound).at("127.0.0.1", "/"), "http:", "https:", 1), "the server does not speak TLS as it should", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := must(parseURL(c.target))
			permission := manifests.NetworkPermission{Host: l.Host.String(), Schemes: []string{l.Scheme}, Ports: []int{l.Port}}
			s := open(t, Options{Requests: everything(l.Port), Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.0/8")}, Resolver: c.resolver})
			_, err := get(t, s, c.target)
			require.ErrorIs(t, err, hostfuncs.ErrIO)
			assert.Equal(t, "request: network error: "+c.message, err.Error())
			assert.Empty(t, s.Journal.Denials())
			assert.Equal(t, "io", s.Journal.HostCalls()[0].Status)
		})
	}
}

func addressOf(text string) netip.Addr { return netip.MustParseAddr(text) }
