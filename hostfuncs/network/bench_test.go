package network

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

func BenchmarkDecide(b *testing.B) {
	var options Options
	for _, host := range []string{"*.example.com", "api.test", "*.internal", "1.2.3.4", "localhost"} {
		p := manifests.NetworkPermission{Host: host, Methods: []string{"GET", "POST"}, Paths: []string{"/v1", "/v2"}}
		options.Requests = append(options.Requests, p)
		options.Grants = append(options.Grants, grantOf(p, "10.0.0.0/8"))
	}
	options.Deny = []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Host: "*.evil.example"}}}
	p, err := readPermission(options)
	require.NoError(b, err)
	allowed, err := parseURL("https://localhost/v2/users")
	require.NoError(b, err)
	refused, err := parseURL("https://localhost/v3/users")
	require.NoError(b, err)
	b.Run("allowed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !p.allows(allowed, "POST") {
				b.Fatal("refused")
			}
		}
	})
	b.Run("refused", func(b *testing.B) {
		for b.Loop() {
			if p.allows(refused, "POST") {
				b.Fatal("allowed")
			}
		}
	})
	b.Run("reach", func(b *testing.B) {
		for b.Loop() {
			p.reach(allowed, "POST")
		}
	})
	b.Run("url", func(b *testing.B) {
		for b.Loop() {
			if _, err := parseURL("https://api.example.com:8443/v1/users?id=17"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDo compares a request with one of plain net/http, to a server in this process.
func BenchmarkDo(b *testing.B) {
	page := strings.Repeat("0123456789abcdef", 1<<10)
	s := serve(b, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	target := s.at("127.0.0.1", "/page")
	b.Run("net/http", func(b *testing.B) {
		client := newUnguarded(b, nil)
		for b.Loop() {
			answer, err := client.Get(target)
			require.NoError(b, err)
			_, err = io.ReadAll(answer.Body)
			require.NoError(b, err)
			answer.Body.Close()
		}
	})
	b.Run("caisson", func(b *testing.B) {
		session := granted(b, s, Limits{Calls: 1 << 30, Bytes: 1 << 50})
		for b.Loop() {
			_, err := session.Do(b.Context(), Request{URL: target})
			require.NoError(b, err)
		}
	})
}

// BenchmarkConnections is a request on a connection that a session has kept, and one on a new connection, to a server
// in this process; over a network, a new one takes two round trips more with TLS, and one without.
func BenchmarkConnections(b *testing.B) {
	for _, kind := range []protocol{plain, secure} {
		s := serve(b, kind, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") })
		target := s.at("127.0.0.1", "/page")
		first := granted(b, s, Limits{Calls: 1 << 30, Bytes: 1 << 50})
		b.Run(string(kind)+"/kept", func(b *testing.B) {
			for b.Loop() {
				_, err := first.Do(b.Context(), Request{URL: target})
				require.NoError(b, err)
			}
		})
		b.Run(string(kind)+"/new", func(b *testing.B) {
			for b.Loop() {
				session := first.client.Open(Limits{})
				_, err := session.Do(b.Context(), Request{URL: target})
				require.NoError(b, err)
				session.Close()
			}
		})
	}
}
