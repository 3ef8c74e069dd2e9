package network

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// TestDeadlineOfTheContext: a request without a timeout has the context's deadline.
func TestDeadlineOfTheContext(t *testing.T) {
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	session := granted(t, s, Limits{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, errOf(session.Do(ctx, Request{URL: s.at("127.0.0.1", "/")})), hostfuncs.ErrDeadline)

	caused, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { stop(fmt.Errorf("the call: %w", context.DeadlineExceeded)) })
	require.ErrorIs(t, errOf(session.Do(caused, Request{URL: s.at("127.0.0.1", "/")})), hostfuncs.ErrDeadline, "a deadline that the caller keeps itself")
	assert.Equal(t, "deadline", session.Journal.HostCalls()[1].Status)
}

func TestFailures(t *testing.T) {
	for message, cause := range map[string]error{
		"the server did not answer in time":                            &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"the server cannot be reached":                                 &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"the server refuses connections":                               &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"the connection failed, or the response is not valid HTTP/1.1": net.UnknownNetworkError("10.0.0.1"),
		"the host's name cannot be resolved":                           &net.DNSError{Err: "server misbehaving", Server: "10.0.0.1:53"},
	} {
		failed := failure(t.Context(), cause)
		assert.Equal(t, message, failed.Message)
		assert.NotContains(t, failed.Error(), "10.0.0.1")
		require.ErrorIs(t, failed, cause)
	}
}

func TestShown(t *testing.T) {
	assert.Equal(t, "a\uFFFDb\uFFFD", shown("a\x1bb\u202e"))
	long := shown(strings.Repeat("ü", maxShown))
	assert.True(t, utf8.ValidString(long))
	assert.Less(t, len(long), maxShown+len("…")+1)
}

// TestConnectKeepsTheName: the operator chooses the address of connections, but the request and the check of the
// certificate use the host's name.
func TestConnectKeepsTheName(t *testing.T) {
	var host, name string
	s := serve(t, secure, func(_ http.ResponseWriter, r *http.Request) { host, name = r.Host, r.TLS.ServerName })
	permission := manifests.NetworkPermission{Host: "example.com"}
	grant := grantOf(permission)
	grant.Connect, grant.Authorities = s.Listener.Addr().String(), s.authorities(t)
	session := open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grant}})
	require.NoError(t, errOf(get(t, session, "https://example.com/")))
	assert.Equal(t, "example.com", host)
	assert.Equal(t, "example.com", name)

	permission.Host, grant.Host = "other.test", "other.test"
	session = open(t, Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grant}})
	require.ErrorIs(t, errOf(get(t, session, "https://other.test/")), hostfuncs.ErrIO, "the certificate is not one for this name")
}

// TestAuthoritiesAreForTheirHost: who is trusted for one host is not for another.
func TestAuthoritiesAreForTheirHost(t *testing.T) {
	s := serve(t, secure, func(http.ResponseWriter, *http.Request) {})
	trusted, plainly := grantOf(s.permission("example.com"), "127.0.0.0/8"), grantOf(s.permission("127.0.0.1"))
	trusted.Authorities = s.authorities(t)
	session := open(t, Options{
		Requests: everything(s.port), Grants: []manifests.NetworkGrant{trusted, plainly},
		Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.1"}}).resolver(),
	})
	require.NoError(t, errOf(get(t, session, s.at("example.com", "/"))))
	_, err := get(t, session, s.at("127.0.0.1", "/"))
	require.ErrorIs(t, err, hostfuncs.ErrIO)
	assert.Contains(t, err.Error(), "certificate")
}
