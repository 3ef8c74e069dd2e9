package network

import (
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// TestAttackPort: a grant for one port of a host does not grant its other ports.
func TestAttackPort(t *testing.T) {
	granted := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	other := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	target := other.at("127.0.0.1", "/")
	require.True(t, hostCheck(func(host string) bool { return host == "127.0.0.1" }, target), "a check of only the host lets it through")
	s := open(t, Options{Requests: everything(granted.port, other.port), Grants: []manifests.NetworkGrant{grantOf(granted.permission("127.0.0.1"))}})
	_, err := get(t, s, target)
	assert.Equal(t, "the grant at policy.yaml:7 covers 127.0.0.1, but not http on port "+strconv.Itoa(other.port), denied(t, err))
	assert.Zero(t, other.connections.Load())
	require.NoError(t, errOf(get(t, s, granted.at("127.0.0.1", "/"))))
}

// TestAttackNumericHosts: text that only inet_aton accepts as an address is not a host.
func TestAttackNumericHosts(t *testing.T) {
	for _, host := range []string{
		"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7f.0.0.0x1", "017700000001", "127.0.0.0x1",
		"00000177.0.0.1", "127.000.000.001", "1.2.3.4.5", "0", "0x", "256.256.256.256", "a.0x7f", "example.1",
	} {
		require.Error(t, errOf(parseURL("http://"+host+"/")), host)
		require.Error(t, errOf(permission.ParseHost(host)), host)
	}
}

// TestAttackAuthority: parts of a URL that another reader takes for its host.
func TestAttackAuthority(t *testing.T) {
	evil := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	port := strconv.Itoa(evil.port)
	permission := evil.permission("allowed.example.com")
	resolver := newNames(t, map[string][]string{"allowed.example.com": {"203.0.113.1"}}).resolver()
	s := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}, Resolver: resolver})
	control := newUnguarded(t, resolver)
	prefixCheck := func(target string) bool { return strings.HasPrefix(target, "http://allowed.example.com") }
	reached := 0
	for _, target := range []string{
		"http://allowed.example.com@127.0.0.1:" + port + "/",
		"http://allowed.example.com:80@127.0.0.1:" + port + "/",
		"http://allowed.example.com%40@127.0.0.1:" + port + "/",
		"http://127.0.0.1:" + port + "#@allowed.example.com/",
		"http://127.0.0.1:" + port + "?@allowed.example.com/",
		"http://127.0.0.1:" + port + `\@allowed.example.com/`,
		"http://127.0.0.1:" + port + "/@allowed.example.com",
		"http://allowed.example.com:" + port + ":80/",
		"http://allowed.example.com\t@127.0.0.1:" + port + "/",
		"http://allowed.example.com%00.evil.example/",
		"http://allowed.example.com%2f.evil.example/",
		"http://allowed。example。com/",
		"http://[127.0.0.1]:" + port + "/",
		"http://[::ffff:127.0.0.1%25lo]:" + port + "/",
		"http:///127.0.0.1:" + port + "/",
		"http:127.0.0.1:" + port + "/",
		"//127.0.0.1:" + port + "/",
		" http://127.0.0.1:" + port + "/",
		"http://127.0.0.1:" + port + " /",
		"http://127.0.0.1:+80/", "http://127.0.0.1:080/", "http://127.0.0.1:65536/", "http://127.0.0.1:0/", "http://127.0.0.1:/",
		"gopher://127.0.0.1:" + port + "/", "file:///etc/passwd", "ftp://allowed.example.com/", "unix:///run/docker.sock", "http+unix://x/",
		"http://allowed.example.com:" + port + "/" + strings.Repeat("a", maxURL),
		"http://allowed.example.com:" + port + "/\xff",
	} {
		if prefixCheck(target) {
			if _, err := control.get(t, target); err == nil {
				reached++
			}
		}
		before := evil.connections.Load()
		_, err := get(t, s, target)
		require.Error(t, err, target)
		if !isInvalid(err) {
			denied(t, err)
		}
		assert.Equal(t, before, evil.connections.Load(), target)
	}
	require.NotZero(t, reached, "the attack must work on a check of the URL's first characters")
}

func TestHostsAreNormalised(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	permission := s.permission("Example.COM")
	session := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
		Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.1"}}).resolver(),
	})
	for _, host := range []string{"example.com", "EXAMPLE.com", "example.com.", "eXaMpLe.CoM."} {
		answer, err := get(t, session, s.at(host, "/"))
		require.NoError(t, err, host)
		assert.Equal(t, "example.com:"+strconv.Itoa(s.port), string(answer.Body))
	}
	for _, host := range []string{"example.com..", "e\u212aample.com", "\u212a.example.com"} { // the Kelvin sign is a k in lower case
		require.ErrorIs(t, errOf(get(t, session, s.at(host, "/"))), hostfuncs.ErrInvalid, host)
	}
}

// TestAttackGlob: a wildcard matches whole labels.
func TestAttackGlob(t *testing.T) {
	glob := func(pattern, host string) bool { matches, _ := path.Match(pattern, host); return matches }
	require.True(t, glob("allowed*", "allowedevil.test"), "a glob matches what a label does not")
	require.True(t, glob("*.test", "a.b.test"))
	cases := []struct {
		pattern, host string
		matches       bool
	}{
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "evilexample.com", false},
		{"*.example.com", "example.com.evil.test", false},
		{"*.example.com", ".example.com", false},
		{"example.com", "a.example.com", false},
		{"*", "anything.test", true},
		{"*", "::1", true},
		{"127.0.0.1", "127.0.0.1", true},
	}
	for _, c := range cases {
		p := must(permission.ParseHost(c.pattern))
		host, err := permission.ParseURLHost(c.host)
		assert.Equal(t, c.matches, err == nil && p.Matches(host), "%s and %s", c.pattern, c.host)
	}
	for _, invalid := range []string{"allowed*", "*allowed.test", "a.*.test", "*.*", "**", "", ".", "*.", "*.127.0.0.1", "*.0.0.1", "a b", "host:80", "http://host", "[::1]", "fe80::1%eth0", "ä.test", "allowed.test."} {
		assert.Error(t, errOf(permission.ParseHost(invalid)), invalid)
	}
}

// TestAttackCRLF: what a guest writes cannot become another line of the request.
func TestAttackCRLF(t *testing.T) {
	var got *http.Request
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { got = r })
	session := open(t, Options{Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1"))}})
	many := make([][2]string, maxHeaders+1)
	for i := range many {
		many[i] = [2]string{"X-" + strconv.Itoa(i), "v"}
	}
	for name, request := range map[string]Request{
		"header name":   {Headers: [][2]string{{"X-A: b\r\nX-Evil", "v"}}},
		"empty name":    {Headers: [][2]string{{"", "v"}}},
		"name space":    {Headers: [][2]string{{"Host ", "evil"}}},
		"header value":  {Headers: [][2]string{{"X-A", "v\r\nX-Evil: v"}}},
		"line feed":     {Headers: [][2]string{{"X-A", "v\nX-Evil: v"}}},
		"null":          {Headers: [][2]string{{"X-A", "v\x00"}}},
		"url":           {URL: s.at("127.0.0.1", "/ HTTP/1.1\r\nX-Evil: v\r\n\r\n")},
		"method":        {Method: "GET / HTTP/1.1\r\nX-Evil: v\r\n\r\nGET"},
		"lower method":  {Method: "get"},
		"connect":       {Method: "CONNECT"},
		"trace":         {Method: "TRACE"},
		"host":          {Headers: [][2]string{{"hOsT", "evil"}}},
		"length":        {Headers: [][2]string{{"Content-Length", "0"}}},
		"encoding":      {Headers: [][2]string{{"Transfer-Encoding", "chunked"}}},
		"connection":    {Headers: [][2]string{{"Connection", "X-Api-Key"}}},
		"keep-alive":    {Headers: [][2]string{{"Keep-Alive", "timeout=5"}}},
		"upgrade":       {Headers: [][2]string{{"Upgrade", "h2c"}}},
		"settings":      {Headers: [][2]string{{"HTTP2-Settings", "AA"}}},
		"te":            {Headers: [][2]string{{"TE", "trailers"}}},
		"trailer":       {Headers: [][2]string{{"Trailer", "X-A"}}},
		"expect":        {Headers: [][2]string{{"Expect", "100-continue"}}},
		"proxy":         {Headers: [][2]string{{"Proxy-Authorization", "Basic eA=="}}},
		"pseudo-header": {Headers: [][2]string{{":authority", "evil"}}},
		"too many":      {Headers: many},
		"too large":     {Headers: [][2]string{{"X-A", strings.Repeat("v", maxHeaderBytes)}}},
	} {
		t.Run(name, func(t *testing.T) {
			if request.URL == "" {
				request.URL = s.at("127.0.0.1", "/")
			}
			_, err := session.Do(t.Context(), request)
			require.ErrorIs(t, err, hostfuncs.ErrInvalid)
			assert.Zero(t, s.connections.Load())
			for _, r := range err.Error() {
				assert.Greater(t, r, rune(0x1f))
			}
		})
	}
	require.NoError(t, errOf(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"x-a", "1"}, {"X-A", "2"}, {"Accept-Encoding", "br"}, {"Cookie", "a=b"}}})))
	assert.Equal(t, []string{"1", "2"}, got.Header.Values("X-A"))
	assert.Equal(t, "gzip", got.Header.Get("Accept-Encoding"))
	assert.Equal(t, "a=b", got.Header.Get("Cookie"))
	assert.Equal(t, "caisson", got.UserAgent())
}

// TestAttackAmbiguousPath: a path that servers read in two ways is below no prefix.
func TestAttackAmbiguousPath(t *testing.T) {
	var got string
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI })
	permission := s.permission("127.0.0.1")
	permission.Paths = []string{"/v1", "/only/"}
	restricted := open(t, Options{Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(permission)}})
	free := open(t, Options{Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1"))}})
	forbidding := open(t, Options{
		Requests: everything(s.port), Grants: []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1"))},
		Deny: []manifests.Deny{{Origin: "policy.yaml:9", Network: &manifests.NetworkDeny{Paths: []string{"/admin"}}}},
	})
	for _, path := range []string{
		"/v1/../admin", "/v1/%2e%2e/admin", "/v1/.%2E/admin", "/v1/..;/admin", "/v1/..;x=y/admin", "/v1/%2fadmin", "/v1%2fx", "/v1/..%2fadmin",
		"/v1/..%5cadmin", "/v1//admin", "/v1/./x", "/v1/%00", "/v1/%252e%252e/admin", "/v1/%0a", "/v1/..", "/v1/%2e%2e",
	} {
		_, err := get(t, restricted, s.at("127.0.0.1", path))
		assert.Contains(t, denied(t, err), "a path that can be read in two ways", path)
		_, err = get(t, forbidding, s.at("127.0.0.1", path))
		assert.Equal(t, "denied by policy.yaml:9", denied(t, err), path)
		require.Zero(t, restricted.Journal.Denials()[0].Allow)
		require.NoError(t, errOf(get(t, free, s.at("127.0.0.1", path))), path)
		assert.Equal(t, path, got, "the part that no permission reads is sent unchanged")
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/x", "/%76%31/x", "/only/", "/only/x", "/v1/a%20b", "/v1/ü"} {
		require.NoError(t, errOf(get(t, restricted, s.at("127.0.0.1", path))), path)
	}
	for _, path := range []string{"", "/", "/v", "/v1x", "/V1", "/only", "/admin"} {
		_, err := get(t, restricted, s.at("127.0.0.1", path))
		assert.Contains(t, denied(t, err), "but not this path", path)
	}
	_, err := get(t, forbidding, s.at("127.0.0.1", "/admin/x"))
	denied(t, err)
	require.NoError(t, errOf(get(t, forbidding, s.at("127.0.0.1", "/administrator"))))
}
