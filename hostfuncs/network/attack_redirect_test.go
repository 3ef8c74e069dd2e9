package network

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// grantAt grants a server under a host, whose name leads to loopback, and trusts it.
func grantAt(t testing.TB, s *server, host string, methods ...string) manifests.NetworkGrant {
	g := grantOf(s.permission(host, methods...), "127.0.0.0/8")
	if s.TLS != nil {
		g.Authorities = s.authorities(t)
	}
	return g
}

func TestAttackRedirect(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			var location string
			resolver := newNames(t, map[string][]string{"example.com": {"127.0.0.1"}, "evil.example.com": {"127.0.0.1"}}).resolver()
			inside := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the secret page") })
			allowed := serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, kind == secure, r.TLS != nil)
				http.Redirect(w, r, location, http.StatusFound)
			})
			cases := map[string]struct {
				location string
				reaches  string // what an unguarded client dials
			}{
				"host":        {inside.at("evil.example.com", "/"), inside.Listener.Addr().String()},
				"IP literal":  {inside.at("127.0.0.1", "/"), inside.Listener.Addr().String()},
				"other port":  {strings.Replace(inside.at("example.com", "/"), "http:", "http:", 1), inside.Listener.Addr().String()},
				"metadata":    {"http://169.254.169.254/latest/meta-data/", "169.254.169.254:80"},
				"scheme-less": {strings.TrimPrefix(inside.at("127.0.0.1", "/"), "http:"), ""},
			}
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					location = c.location
					if c.reaches != "" {
						control := newUnguarded(t, resolver)
						control.get(t, allowed.at("example.com", "/"))
						require.Contains(t, control.dialled(), c.reaches, "the attack must work on a client without a guard")
					}
					before := inside.connections.Load()
					grant := grantAt(t, allowed, "example.com")
					s := open(t, Options{Requests: everything(allowed.port, inside.port, 80), Grants: []manifests.NetworkGrant{grant}, Resolver: resolver})
					_, err := get(t, s, allowed.at("example.com", "/start?q=1"))
					rule := denied(t, err)
					assert.Contains(t, rule, "example.com:", rule)
					assert.Contains(t, rule, "redirected there")
					assert.NotContains(t, rule, "leads to", "the permission decides, before any address does")
					assert.Equal(t, before, inside.connections.Load(), "nothing was connected to")
					require.Len(t, s.Journal.HostCalls(), 1)
					assert.Equal(t, "denied", s.Journal.HostCalls()[0].Status)
					assert.False(t, s.Journal.HostCalls()[0].Allowed)
				})
			}
		})
	}
}

// TestAttackRedirectGranted is the control: a redirect to a granted location is followed.
func TestAttackRedirectGranted(t *testing.T) {
	second := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "arrived") })
	first := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.at("127.0.0.1", "/there?x=1#part"), http.StatusFound)
	})
	s := open(t, Options{
		Requests: everything(first.port, second.port),
		Grants:   []manifests.NetworkGrant{grantOf(first.permission("127.0.0.1")), grantOf(second.permission("127.0.0.1"))},
	})
	answer := must(get(t, s, first.at("127.0.0.1", "/")))
	assert.Equal(t, "arrived", string(answer.Body))
	assert.Equal(t, second.at("127.0.0.1", "/there?x=1"), answer.URL)
	assert.Equal(t, "302→200", s.Journal.HostCalls()[0].Status)
	assert.Equal(t, "GET "+first.at("127.0.0.1", "/"), s.Journal.HostCalls()[0].Target)
}

// TestAttackHeaderCrossHost: net/http drops Authorization when the host changes, and sends everything else.
func TestAttackHeaderCrossHost(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			var got http.Header
			resolver := newNames(t, map[string][]string{"example.com": {"127.0.0.1"}, "other.example.com": {"127.0.0.1"}}).resolver()
			other := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
			first := serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.at("other.example.com", "/"), http.StatusTemporaryRedirect)
			})
			headers := [][2]string{
				{"X-Api-Key", "k"}, {"Authorization", "Bearer b"}, {"Cookie", "c=1"}, {"Accept", "text/plain"}, {"User-Agent", "u"},
				{"Accept-Language", "de"}, {"Range", "bytes=0-1"}, {"Content-Type", "text/plain"},
			}
			control := newUnguarded(t, resolver)
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, first.at("example.com", "/"), nil)
			request.RequestURI = ""
			for _, h := range headers {
				request.Header.Set(h[0], h[1])
			}
			answer := must(control.Do(request))
			answer.Body.Close()
			require.Equal(t, "k", got.Get("X-Api-Key"), "the attack must work on a client without a guard")

			got = nil
			s := open(t, Options{
				Requests: everything(first.port, other.port), Resolver: resolver,
				Grants: []manifests.NetworkGrant{grantAt(t, first, "example.com", "POST"), grantAt(t, other, "other.example.com", "POST")},
			})
			require.NoError(t, errOf(s.Do(t.Context(), Request{Method: "POST", URL: first.at("example.com", "/"), Headers: headers, Body: []byte("text")})))
			assert.Empty(t, got.Values("X-Api-Key"))
			assert.Empty(t, got.Values("Authorization"))
			assert.Empty(t, got.Values("Cookie"))
			for _, kept := range headers[3:] {
				assert.Equal(t, kept[1], got.Get(kept[0]), kept[0])
			}
		})
	}
}

func TestRedirectMethods(t *testing.T) {
	type seen struct{ method, body, contentType string }
	cases := []struct {
		method string
		status int
		want   seen
	}{
		{"POST", 301, seen{"GET", "", ""}},
		{"POST", 302, seen{"GET", "", ""}},
		{"POST", 303, seen{"GET", "", ""}},
		{"POST", 307, seen{"POST", "body", "text/plain"}},
		{"POST", 308, seen{"POST", "body", "text/plain"}},
		{"PUT", 302, seen{"PUT", "body", "text/plain"}},
		{"PUT", 303, seen{"GET", "", ""}},
		{"HEAD", 303, seen{"HEAD", "", "text/plain"}},
	}
	for _, c := range cases {
		t.Run(c.method+" "+http.StatusText(c.status), func(t *testing.T) {
			var got seen
			s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					w.Header().Set("Location", "/next")
					w.WriteHeader(c.status)
					return
				}
				body, _ := io.ReadAll(r.Body)
				got = seen{r.Method, string(body), r.Header.Get("Content-Type")}
			})
			session := open(t, Options{
				Requests: everything(s.port),
				Grants:   []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1", "GET", "HEAD", "POST", "PUT"))},
			})
			request := Request{Method: c.method, URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"content-type", "text/plain"}}}
			if c.method != "HEAD" {
				request.Body = []byte("body")
			}
			require.NoError(t, errOf(session.Do(t.Context(), request)))
			assert.Equal(t, c.want, got)
		})
	}
}

// TestAttackRedirectMethod: a redirect that keeps the method needs the method at its target.
func TestAttackRedirectMethod(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/open" {
			http.Redirect(w, r, "/closed", http.StatusTemporaryRedirect)
		}
	})
	posts, reads := s.permission("127.0.0.1", "POST"), s.permission("127.0.0.1", "GET")
	posts.Paths = []string{"/open"}
	session := open(t, Options{Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(posts), grantOf(reads)}})
	_, err := session.Do(t.Context(), Request{Method: "POST", URL: s.at("127.0.0.1", "/open"), Body: []byte("x")})
	assert.Contains(t, denied(t, err), "redirected there")
	assert.EqualValues(t, 1, s.requests.Load())
}

func TestAttackRedirectDowngrade(t *testing.T) {
	resolver := newNames(t, map[string][]string{"example.com": {"127.0.0.1"}}).resolver()
	open80 := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	for name, schemes := range map[string]struct{ request, grant []string }{
		"not requested": {[]string{"https"}, []string{"https", "http"}},
		"not granted":   {[]string{"https", "http"}, []string{"https"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := serve(t, secure, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, open80.at("example.com", "/"), http.StatusFound)
			})
			requested := manifests.NetworkPermission{Host: "example.com", Schemes: schemes.request, Ports: []int{first.port, open80.port}}
			granted := grantOf(manifests.NetworkPermission{Host: "example.com", Schemes: schemes.grant, Ports: requested.Ports}, "127.0.0.1/32")
			granted.Authorities = first.authorities(t)
			s := open(t, Options{Requests: []manifests.NetworkPermission{requested}, Grants: []manifests.NetworkGrant{granted}, Resolver: resolver})
			_, err := get(t, s, first.at("example.com", "/"))
			assert.Contains(t, denied(t, err), "but not http on port")
			assert.Zero(t, open80.connections.Load())
		})
	}
}

func TestAttackRedirectLoop(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	control := newUnguarded(t, nil)
	require.Error(t, errOf(control.get(t, s.at("127.0.0.1", "/"))))
	require.EqualValues(t, 10, s.requests.Swap(0), "a client without a guard follows ten hops")

	session := open(t, Options{Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1"))}})
	_, err := get(t, session, s.at("127.0.0.1", "/"))
	var failed *hostfuncs.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "http_redirects", failed.Limit)
	assert.EqualValues(t, maxRedirects, failed.Value)
	assert.EqualValues(t, maxRedirects+1, s.requests.Load())
	assert.EqualValues(t, 1, session.Journal.Count())
}

// TestAttackRedirectURL: what a server sends as a location is read as strictly as what a guest writes.
func TestAttackRedirectURL(t *testing.T) {
	for _, location := range []string{
		"http://user:pass@127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "ftp://127.0.0.1/", "file:///etc/passwd",
		"http://[fe80::1%25eth0]/", "http://127.0.0.1:0/", "javascript:alert(1)", `http:\\127.0.0.1\`, "http://１２７.0.0.1/",
	} {
		s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
		session := open(t, Options{Requests: everything(s.port, 80), Grants: []manifests.NetworkGrant{grantOf(everything(s.port, 80)[0]), grantOf(s.permission("127.0.0.1"))}})
		require.ErrorIs(t, errOf(get(t, session, s.at("127.0.0.1", "/"))), hostfuncs.ErrIO, location)
		assert.EqualValues(t, 1, s.requests.Load())
	}
}
