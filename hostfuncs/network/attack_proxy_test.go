package network

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// behindProxy is set for the process that TestAttackProxyEnvironment starts.
const behindProxy = "CAISSON_TEST_BEHIND_PROXY"

// TestAttackProxyEnvironment: the environment of the host does not say where requests go.
// net/http reads it once in a process, so that the test needs one of its own.
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
	assert.EqualValues(t, 1, proxy.requests.Load(), "the control alone asked the proxy")
}

func requestBehindProxy(t *testing.T) {
	page := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "direct") })
	resolver := newNames(t, map[string][]string{"page.example.com": {"127.0.0.1"}}).resolver()
	control := newUnguarded(t, resolver)
	control.Transport.(*http.Transport).Proxy = http.ProxyFromEnvironment
	answer, err := control.get(t, page.at("page.example.com", "/"))
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "through the proxy", string(text), "the attack must work on a client that asks the environment")

	permission := page.permission("page.example.com")
	s := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Resolver: resolver,
		Grants: []manifests.NetworkGrant{grantOf(permission, "127.0.0.1/32")},
	})
	got, err := get(t, s, page.at("page.example.com", "/"))
	require.NoError(t, err)
	assert.Equal(t, "direct", string(got.Body))
}
