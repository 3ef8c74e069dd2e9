package network

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The property test needs a network in which to look on: on Linux, all of 127.0.0.0/8 is
// this machine, and a server sees at which of its addresses it was reached.

// cosmos is a set of hosts, on two ports, which lead anywhere and redirect anywhere.
type cosmos struct {
	random *rand.Rand // of the names and the redirects; guarded by mu
	ports  []int
	names  *names

	mu    sync.Mutex
	hosts []string
	// arrived is what reached a server; dialled are the addresses of all connections.
	arrived []arrival
	dialled []netip.AddrPort
}

type arrival struct {
	host, method, path, guest, secret string
	port                              int
	address                           netip.Addr
}

func pool() []string {
	return []string{"127.1.0.1", "127.1.0.2", "127.2.0.1", "127.2.0.2", "127.3.0.1", "127.3.0.2"}
}

func newCosmos(t *testing.T, seed uint64) *cosmos {
	c := &cosmos{random: rand.New(rand.NewPCG(seed, 1)), hosts: []string{"a.test", "b.test", "x.a.test", "y.x.a.test", "127.1.0.1", "127.2.0.1"}}
	for range 2 {
		s := serveAt(t, plain, "0.0.0.0:0", c.handle, func(conn net.Conn) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.dialled = append(c.dialled, netip.MustParseAddrPort(conn.LocalAddr().String()))
		})
		c.ports = append(c.ports, s.port)
	}
	c.names = newNames(t, nil)
	c.names.setAnswer(func(string) []string { // anew for each question
		c.mu.Lock()
		defer c.mu.Unlock()
		return some(c.random, pool(), 1)
	})
	return c
}

func (c *cosmos) handle(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := netip.MustParseAddrPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	host, _, _ := net.SplitHostPort(r.Host)
	c.arrived = append(c.arrived, arrival{
		host: host, method: r.Method, path: r.URL.Path, guest: r.Header.Get("X-Guest"), secret: r.Header.Get("X-Secret"),
		port: int(local.Port()), address: local.Addr(),
	})
	if c.random.IntN(3) > 0 {
		w.Header().Set("Location", c.url())
		w.WriteHeader([]int{301, 302, 303, 307, 308}[c.random.IntN(5)])
	}
}

func (c *cosmos) url() string {
	host := c.hosts[c.random.IntN(len(c.hosts))]
	return fmt.Sprintf("http://%s:%d%s", host, c.ports[c.random.IntN(len(c.ports))], []string{"/", "/a", "/a/b", "/ab", "/a/../b", "/a%2fb"}[c.random.IntN(6)])
}

// some returns a random part of a list, with at least minimum elements.
func some[T any](random *rand.Rand, list []T, minimum int) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:minimum+random.IntN(len(list)-minimum+1)]
}

func (c *cosmos) permission() manifests.NetworkPermission {
	patterns := append([]string{"*", "*", "*", "*", "*.test", "*.test", "*.test", "*.a.test", "*.x.a.test"}, c.hosts...)
	return manifests.NetworkPermission{
		Host: patterns[c.random.IntN(len(patterns))], Schemes: []string{"http"}, Ports: some(c.random, c.ports, 1),
		Methods: some(c.random, []string{"GET", "POST"}, 1), Paths: some(c.random, []string{"/", "/", "/a", "/a/"}, 2),
	}
}

func (c *cosmos) networks(minimum int) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range some(c.random, []string{"127.1.0.0/16", "127.2.0.0/16", "127.2.0.1/32", "127.3.0.0/24"}, minimum) {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

func (c *cosmos) options() Options {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := Options{Tool: "fetch", Resolver: c.names.resolver(), Secrets: originSecrets{}}
	for range 1 + c.random.IntN(3) {
		options.Requests = append(options.Requests, c.permission())
	}
	for range 1 + c.random.IntN(4) {
		options.Grants = append(options.Grants, manifests.NetworkGrant{NetworkPermission: c.permission(), Addresses: c.networks(1)})
	}
	for range c.random.IntN(2) {
		p := c.permission()
		d := manifests.NetworkDeny{Host: p.Host, Ports: p.Ports, Methods: p.Methods, Paths: some(c.random, []string{"/a", "/a/b", "/b"}, 0)}
		if c.random.IntN(2) == 0 {
			d.Addresses = c.networks(1)
		}
		options.Deny = append(options.Deny, manifests.Deny{Network: &d})
	}
	return options
}

// originSecrets gives each origin a secret that says which it is for.
type originSecrets struct{}

func (originSecrets) Places(permission.Origin) []manifests.SecretPlace {
	return []manifests.SecretPlace{{Header: "X-Secret"}}
}

func (originSecrets) Unsent(permission.Origin) []tool.Denial { return nil }

func (originSecrets) Inject(request *http.Request, body []byte) ([]byte, error) {
	request.Header.Set("X-Secret", request.URL.Host)
	return body, nil
}

func (originSecrets) Mask(text []byte) []byte { return text }
func (originSecrets) MaskFirst(_ context.Context, text []byte, n int) ([]byte, error) {
	return text[:n], nil
}
func (originSecrets) Longest() int { return 64 }

// The reference: what a permission means, written down a second time.

func refHost(pattern, host string) bool {
	labels, want := strings.Split(host, "."), strings.Split(pattern, ".")
	switch {
	case pattern == "*":
		return true
	case want[0] == "*":
		return len(labels) >= len(want) && slices.Equal(labels[len(labels)-len(want)+1:], want[1:])
	}
	return pattern == host
}

func refPath(prefixes []string, path string) bool {
	for _, prefix := range prefixes {
		wanted := strings.Split(strings.TrimSuffix(prefix, "/"), "/")
		segments := strings.Split(path, "/")
		below := len(segments) > len(wanted) || len(segments) == len(wanted) && !strings.HasSuffix(prefix, "/")
		if prefix == "/" || below && slices.Equal(segments[:len(wanted)], wanted) {
			return true
		}
	}
	return false
}

func refAllows(p manifests.NetworkPermission, a arrival) bool {
	return refHost(p.Host, a.host) && slices.Contains(p.Ports, a.port) && slices.Contains(p.Methods, a.method) && refPath(p.Paths, a.path)
}

func refDenies(d manifests.NetworkDeny, a arrival) bool {
	return refHost(d.Host, a.host) && slices.Contains(d.Ports, a.port) && slices.Contains(d.Methods, a.method) &&
		(len(d.Paths) == 0 || refPath(d.Paths, a.path))
}

func refContains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// refMay reports whether a request may have arrived where it did.
func refMay(o Options, a arrival) bool {
	if !slices.ContainsFunc(o.Requests, func(p manifests.NetworkPermission) bool { return refAllows(p, a) }) {
		return false
	}
	for _, d := range o.Deny {
		if refDenies(*d.Network, a) && (len(d.Network.Addresses) == 0 || refContains(d.Network.Addresses, a.address)) {
			return false
		}
	}
	return slices.ContainsFunc(o.Grants, func(g manifests.NetworkGrant) bool {
		return refAllows(g.NetworkPermission, a) && (refContains(g.Addresses, a.address) || g.Host == a.address.String())
	})
}

// refMayDial reports whether any request to a port may lead to an address.
func refMayDial(o Options, to netip.AddrPort) bool {
	return slices.ContainsFunc(o.Grants, func(g manifests.NetworkGrant) bool {
		return slices.Contains(g.Ports, int(to.Port())) && (refContains(g.Addresses, to.Addr()) || g.Host == to.Addr().String())
	})
}

// TestPropertyNothingArrivesWhereItMayNot: whatever the policy, the names and the redirects, a request arrives only
// where the reference says that it may, and carries nothing that belongs to another origin.
func TestPropertyNothingArrivesWhereItMayNot(t *testing.T) {
	const cases = 1500
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newCosmos(t, seed)
	answered, refused := 0, 0
	for range cases {
		c.mu.Lock()
		c.arrived, c.dialled = nil, nil
		c.mu.Unlock()
		options := c.options()
		client, err := New(options)
		require.NoError(t, err)
		session := client.Open(Limits{})
		for range 3 {
			c.mu.Lock()
			target := c.url()
			method := []string{"GET", "POST"}[c.random.IntN(2)]
			from := len(c.arrived)
			c.mu.Unlock()
			_, err := session.Do(t.Context(), Request{Method: method, URL: target, Headers: [][2]string{{"X-Guest", target}}, Timeout: 20 * time.Second})
			switch {
			case err == nil:
				answered++
			case isKind(err, hostfuncs.ErrDenied):
				refused++
			default:
				require.True(t, isKind(err, hostfuncs.ErrLimit) || isKind(err, hostfuncs.ErrIO), "%v", err)
			}
			c.mu.Lock()
			checkArrivals(t, options, target, c.arrived[from:])
			c.mu.Unlock()
		}
		session.Close()
		require.NoError(t, client.Close())
		c.mu.Lock()
		for _, to := range c.dialled {
			require.True(t, refMayDial(options, to), "%s was dialled under %+v", to, options)
		}
		c.mu.Unlock()
	}
	assert.Greater(t, answered, cases/10, "the test must not be empty")
	assert.Greater(t, refused, cases/10)
	t.Logf("%d requests were answered, %d refused", answered, refused)
}

func checkArrivals(t *testing.T, options Options, target string, arrived []arrival) {
	t.Helper()
	origin := target[:strings.IndexByte(target[len("http://"):], '/')+len("http://")]
	left := false
	for _, a := range arrived {
		here := fmt.Sprintf("http://%s:%d", a.host, a.port)
		require.True(t, refMay(options, a), "%+v arrived under %+v", a, options)
		require.Equal(t, here, "http://"+a.secret, "a secret of another origin")
		left = left || here != origin
		if left {
			require.Empty(t, a.guest, "a guest's header left its origin")
		} else {
			require.Equal(t, target, a.guest)
		}
	}
}
