package network

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// isCGI reports whether this process was started by [serveCGI].
func isCGI() bool { return os.Getenv("GATEWAY_INTERFACE") != "" }

// answerCGI is the program of [serveCGI]: it answers with the key that it was given.
func answerCGI() error {
	return cgi.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Api-Key"))
	}))
}

// serveCGI is a server that has this test's program answer over CGI, which makes variables of the headers' names.
func serveCGI(t *testing.T) *server {
	program := must(os.Executable())
	handler := &cgi.Handler{Path: program, Dir: t.TempDir()}
	return serve(t, plain, handler.ServeHTTP)
}

var spellingsOfKey = []string{"X_Api_Key", "x_api-key", "X.Api.Key", "X~Api*Key", "XApi_Key", "xa_pi-key"}

// TestAttackHeaderInAnotherSpelling: a guest cannot put its key in place of the operator's under a name that the server
// takes for the same, neither in its request nor in one that is sent again after a redirect.
func TestAttackHeaderInAnotherSpelling(t *testing.T) {
	s := serveCGI(t)
	permission := s.permission("127.0.0.1")
	set := secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"})
	session := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}, Secrets: set,
	})
	for _, name := range spellingsOfKey {
		_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, "the guest's"}}})
		assert.Equal(t, "the host fills in the header X-Api-Key for 127.0.0.1; the tool may not", denied(t, err), name)
	}
	assert.Zero(t, s.connections.Load())

	assert.Equal(t, "[secret API_KEY]", string(must(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"X-Api-Key2", "another"}}})).Body))

	request := must(http.NewRequestWithContext(t.Context(), "GET", s.at("127.0.0.1", "/"), nil))
	for _, name := range spellingsOfKey {
		request.Header[name] = []string{"the guest's"}
	}
	require.NoError(t, errOf(set.Inject(request, nil)))
	assert.Equal(t, http.Header{"X-Api-Key": {theSecret}}, request.Header)
}

// TestHeaderInAnotherSpellingControl: with a client that replaces only the exact name, the guest's key arrives in the
// place of the secret.
func TestHeaderInAnotherSpellingControl(t *testing.T) {
	s := serveCGI(t)
	client := newUnguarded(t, nil)
	took := false
	for range 100 { // which of the two arrives is left to chance
		request := must(http.NewRequestWithContext(t.Context(), "GET", s.at("127.0.0.1", "/"), nil))
		request.Header["X_Api_Key"] = []string{"the guest's"}
		request.Header.Set("X-Api-Key", theSecret)
		answer := must(client.Do(request))
		body := must(io.ReadAll(answer.Body))
		require.NoError(t, answer.Body.Close())
		if took = string(body) == "the guest's"; took {
			break
		}
	}
	assert.True(t, took)
}

// TestAttackHeaderWithMorePunctuation: a server that ignores punctuation in the names of headers gets only the host's
// credentials. The control is a client without the check, with which it gets the guest's in addition.
func TestAttackHeaderWithMorePunctuation(t *testing.T) {
	var arrived []string
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) {
		arrived = nil
		for name, values := range r.Header {
			if strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) == "authorization" {
				arrived = append(arrived, values...)
			}
		}
	})
	permission := s.permission("127.0.0.1")
	set := secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "Authorization"})
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}, Secrets: set})
	for _, name := range []string{"Auth_orization", "auth-orization", "Authorization_"} {
		_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, "the guest's"}}})
		assert.Equal(t, "the host fills in the header Authorization for 127.0.0.1; the tool may not", denied(t, err), name)
	}
	require.NoError(t, errOf(session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/")})))
	assert.Equal(t, []string{theSecret}, arrived)

	request := must(http.NewRequestWithContext(t.Context(), "GET", s.at("127.0.0.1", "/"), nil))
	request.Header = http.Header{"Auth_orization": {"the guest's"}, "Authorization": {theSecret}}
	answer := must(newUnguarded(t, nil).Do(request))
	require.NoError(t, answer.Body.Close())
	assert.ElementsMatch(t, []string{"the guest's", theSecret}, arrived)
}

// TestPathsUnderOtherNames: what a lax server takes for another path is neither within a
// granted prefix nor outside a denied one.
func TestPathsUnderOtherNames(t *testing.T) {
	s := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	narrow := s.permission("127.0.0.1")
	narrow.Paths = []string{"/v1"}
	granted := open(t, Options{Requests: []manifests.NetworkPermission{narrow}, Grants: []manifests.NetworkGrant{grantOf(narrow)}})
	for path, allowed := range map[string]bool{
		"/v1/a": true, "/v1/a;b=c": true, "/v1/a.b": true, "/v1/.well-known": true, "/v1/%C3%A9": true,
		"/v1/%c0%ae%c0%ae/admin": false, "/v1/.%20./admin": false, "/v1/..%20/admin": false, "/v1/.../admin": false, "/v10": false, "/V1": false,
	} {
		_, err := get(t, granted, s.at("127.0.0.1", path))
		assert.Equal(t, allowed, err == nil, "%s: %v", path, err)
	}

	all := s.permission("127.0.0.1")
	deny := manifests.NetworkDeny{Host: "127.0.0.1", Paths: []string{"/admin"}}
	less := open(t, Options{
		Requests: []manifests.NetworkPermission{all}, Grants: []manifests.NetworkGrant{grantOf(all)}, Deny: []manifests.Deny{{Network: &deny}},
	})
	for path, allowed := range map[string]bool{
		"/": true, "/administrator": true, "/a;admin": true, "/x?p=/admin": true,
		"/admin": false, "/admin/": false, "/admin;x": false, "/admin;x/y": false, "/admin%3fx": false, "/admin%23x": false,
		"/Admin": false, "/admin.": false, "/admin%20/x": false, "/%61dmin": false,
	} {
		_, err := get(t, less, s.at("127.0.0.1", path))
		assert.Equal(t, allowed, err == nil, "%s: %v", path, err)
	}
}

// TestHeadersThatOverrideTheRequest: a guest cannot have a server read another method, path
// or host than those that were checked.
func TestHeadersThatOverrideTheRequest(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) { // as many frameworks do
		_, _ = io.WriteString(w, r.Header.Get("X-Http-Method-Override")+r.Header.Get("X-Original-Url")+r.Header.Get("X-Forwarded-Host"))
	})
	permission := s.permission("127.0.0.1", http.MethodPost)
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}})
	for _, name := range []string{
		"X-HTTP-Method-Override", "x-http-method", "X_Method_Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Host", "Forwarded", "X-Host",
		"X-Original-URI", "X-Forwarded-Path", "X_Forwarded_Server", "X-HTTP-Host-Override", "Destination", "Proxy", "Content_Length", "Transfer_Encoding",
	} {
		require.ErrorIs(t, errOf(session.Do(t.Context(), Request{Method: http.MethodPost, URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, "DELETE"}}})), hostfuncs.ErrInvalid, name)
	}
	assert.Zero(t, s.requests.Load())
}

// behindProxy is set for the process that TestAttackProxyEnvironment starts.
const behindProxy = "CAISSON_TEST_BEHIND_PROXY"

// TestAttackProxyEnvironment: the environment of the host does not say where requests go. net/http reads it once in a
// process, so the test needs a separate process.
func TestAttackProxyEnvironment(t *testing.T) {
	if os.Getenv(behindProxy) != "" {
		requestBehindProxy(t)
		return
	}
	proxy := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "through the proxy") })
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAttackProxyEnvironment$", "-test.v")
	command.Env = append(os.Environ(), behindProxy+"=1")
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		command.Env = append(command.Env, name+"="+proxy.URL)
	}
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "PASS: TestAttackProxyEnvironment")
	assert.EqualValues(t, 1, proxy.requests.Load(), "only the control asked the proxy")
}

func requestBehindProxy(t *testing.T) {
	page := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "direct") })
	resolver := newNames(t, map[string][]string{"page.example.com": {"127.0.0.1"}}).resolver()
	control := newUnguarded(t, resolver)
	control.Transport.(*http.Transport).Proxy = http.ProxyFromEnvironment
	answer := must(control.get(t, page.at("page.example.com", "/")))
	text := must(io.ReadAll(answer.Body))
	require.Equal(t, "through the proxy", string(text), "the attack must work on a client that asks the environment")

	permission := page.permission("page.example.com")
	s := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Resolver: resolver,
		Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
	})
	assert.Equal(t, "direct", string(must(get(t, s, page.at("page.example.com", "/"))).Body))
}
