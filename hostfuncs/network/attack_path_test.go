package network

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

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
		Requests: []manifests.NetworkPermission{all}, Grants: []manifests.NetworkGrant{grantOf(all)}, Deny: []Denied{{NetworkDeny: deny}},
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
		_, err := session.Do(t.Context(), Request{Method: http.MethodPost, URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{name, "DELETE"}}})
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	assert.Zero(t, s.requests.Load())
}
