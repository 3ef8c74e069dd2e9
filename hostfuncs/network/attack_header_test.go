package network

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// serveCGI is a server that has this test's program answer over CGI, which makes variables of the
// headers' names.
func serveCGI(t *testing.T) *server {
	program, err := os.Executable()
	require.NoError(t, err)
	handler := &cgi.Handler{Path: program, Dir: t.TempDir()}
	return serve(t, plain, handler.ServeHTTP)
}

var spellingsOfKey = []string{"X_Api_Key", "x_api-key", "X.Api.Key", "X~Api*Key"}

// TestAttackHeaderInAnotherSpelling: a guest cannot put a key of its own in the place of the
// operator's by a name that the server takes for the same, neither in its request nor in one that
// is sent again after a redirect.
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

	answer, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"X-Api-Key2", "another"}}})
	require.NoError(t, err)
	assert.Equal(t, "[secret API_KEY]", string(answer.Body))

	request, err := http.NewRequestWithContext(t.Context(), "GET", s.at("127.0.0.1", "/"), nil)
	require.NoError(t, err)
	for _, name := range spellingsOfKey {
		request.Header[name] = []string{"the guest's"}
	}
	_, err = set.Inject(request, nil)
	require.NoError(t, err)
	assert.Equal(t, http.Header{"X-Api-Key": {theSecret}}, request.Header)
}

// TestHeaderInAnotherSpellingControl: with a client that replaces the exact name alone, the
// guest's key arrives in the place of the secret.
func TestHeaderInAnotherSpellingControl(t *testing.T) {
	s := serveCGI(t)
	client := newUnguarded(t, nil)
	took := false
	for range 100 { // which of the two arrives is left to chance
		request, err := http.NewRequestWithContext(t.Context(), "GET", s.at("127.0.0.1", "/"), nil)
		require.NoError(t, err)
		request.Header["X_Api_Key"] = []string{"the guest's"}
		request.Header.Set("X-Api-Key", theSecret)
		answer, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if took = string(body) == "the guest's"; took {
			break
		}
	}
	assert.True(t, took)
}
