package network

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

const theSecret = "s3cr3t-value-of-the-operator-0123456789"

// secretFor binds the secret to one server.
func secretFor(t testing.TB, s *server, host string, place manifests.SecretPlace) *secrets.Set {
	t.Helper()
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	set, err := secrets.New(secrets.Options{
		Tool:     "fetch",
		Requests: []manifests.SecretPermission{{Name: "API_KEY", Place: place, Host: host}},
		Grants: []manifests.SecretGrant{{
			Name: "API_KEY", From: manifests.SecretSource{Env: "API_KEY"}, Host: host, Place: place, Ports: []int{s.port}, Schemes: []string{scheme},
		}},
		LookupEnv: func(string) (string, bool) { return theSecret, true },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"API_KEY"}, set.Names())
	return set
}

// TestSecretsStayWithTheirOrigin: a redirect does not carry a secret away, and a redirect back brings it anew.
func TestSecretsStayWithTheirOrigin(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			var home *server
			var atHome, away []string
			other := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
				away = append(away, r.Header.Get("X-Api-Key")+r.URL.RawQuery)
				http.Redirect(w, r, home.at("example.com", "/back"), http.StatusFound)
			})
			home = serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
				atHome = append(atHome, r.Header.Get("X-Api-Key"))
				if r.URL.Path == "/" {
					http.Redirect(w, r, other.at("example.com", "/"), http.StatusFound)
				}
			})
			s := open(t, Options{
				Requests: everything(home.port, other.port),
				Grants:   []manifests.NetworkGrant{grantAt(t, home, "example.com"), grantAt(t, other, "example.com")},
				Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.1"}}).resolver(),
				Secrets:  secretFor(t, home, "example.com", manifests.SecretPlace{Header: "X-Api-Key"}),
			})
			require.NoError(t, errOf(get(t, s, home.at("example.com", "/"))))
			assert.Equal(t, []string{theSecret, theSecret}, atHome)
			assert.Equal(t, []string{""}, away)
		})
	}
}

// TestSecretsAreMasked: a server that echoes a request does not tell the guest.
func TestSecretsAreMasked(t *testing.T) {
	echo := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		out := io.Writer(w)
		if r.Header.Get("Accept-Encoding") != "" {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			defer compressed.Close()
			out = compressed
		}
		io.WriteString(out, "you sent "+r.Header.Get("Authorization")+" or "+base64.StdEncoding.EncodeToString([]byte("x:"+theSecret)))
	})
	permission := echo.permission("127.0.0.1")
	s := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, echo, "127.0.0.1", manifests.SecretPlace{Header: "Authorization", Prefix: "Bearer "}),
	})
	for _, headers := range [][][2]string{nil, {{"Accept-Encoding", "gzip"}}} {
		answer := must(s.Do(t.Context(), Request{URL: echo.at("127.0.0.1", "/"), Headers: headers}))
		assert.True(t, strings.HasPrefix(string(answer.Body), "you sent Bearer [secret API_KEY] or "), string(answer.Body))
		for _, header := range answer.Headers {
			assert.NotContains(t, header[0]+header[1], theSecret[:8])
		}
		assert.NotContains(t, string(answer.Body), base64.StdEncoding.EncodeToString([]byte("x:" + theSecret))[4:20])
	}
}

func TestSecretInQuery(t *testing.T) {
	var got []string
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.RawQuery)
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next?"+r.URL.RawQuery, http.StatusFound) // as servers do
		}
	})
	permission := s.permission("127.0.0.1")
	session := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Query: "key"}),
	})
	answer := must(get(t, session, s.at("127.0.0.1", "/?q=1")))
	assert.Equal(t, []string{"q=1&key=" + theSecret, "q=1&key=" + theSecret}, got)
	assert.Equal(t, s.at("127.0.0.1", "/next?q=1&key=[secret API_KEY]"), answer.URL)
	assert.NotContains(t, session.Journal.HostCalls()[0].Target, "key")
}

// TestAttackSecretInRedirect: a server that copies a secret into its redirects would send it to their targets.
func TestAttackSecretInRedirect(t *testing.T) {
	other := serve(t, plain, http.NotFound)
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.at("127.0.0.1", "/login/"+r.URL.Query().Get("key")+"?"+r.URL.RawQuery), http.StatusFound)
	})
	session := open(t, Options{
		Requests: everything(s.port, other.port),
		Grants:   []manifests.NetworkGrant{grantOf(s.permission("127.0.0.1")), grantOf(other.permission("127.0.0.1"))},
		Secrets:  secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Query: "key"}),
	})
	_, err := get(t, session, s.at("127.0.0.1", "/"))
	assert.Contains(t, denied(t, err), "the redirect would carry a secret to another origin")
	assert.NotContains(t, session.Journal.Denials()[0].Value, theSecret[:8])
	assert.Zero(t, other.connections.Load())
}

// TestReceiptWithoutSecret: a server can put a secret into the path of a redirect, from where it would get into a
// receipt's suggested rules.
func TestReceiptWithoutSecret(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/echo/"+r.Header.Get("X-Api-Key"), http.StatusFound)
	})
	permission := s.permission("127.0.0.1")
	permission.Paths = []string{"/start"}
	session := open(t, Options{
		Tool: "fetch", Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"}),
	})
	_, err := get(t, session, s.at("127.0.0.1", "/start"))
	assert.Contains(t, denied(t, err), "but not this path")
	assert.Zero(t, session.Journal.Denials()[0].Allow)
	assert.Equal(t, s.at("127.0.0.1", "/echo/[secret API_KEY]"), session.Journal.Denials()[0].Value)
}

// TestSecretPlaceIsTheHosts: a guest can neither set nor remove a secret's header.
func TestSecretPlaceIsTheHosts(t *testing.T) {
	s := serve(t, plain, http.NotFound)
	permission := s.permission("127.0.0.1")
	session := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"}),
	})
	_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"x-aPI-key", "mine"}}})
	assert.Equal(t, "the host fills in the header X-Api-Key for 127.0.0.1; the tool may not", denied(t, err))
	assert.Zero(t, s.connections.Load())
}

func TestSecretInBody(t *testing.T) {
	var got string
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
	})
	permission := s.permission("127.0.0.1", "POST")
	session := open(t, Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Body: "key"}),
	})
	request := Request{Method: "POST", URL: s.at("127.0.0.1", "/"), Headers: [][2]string{{"Content-Type", "application/json"}}, Body: []byte(`{"n":1}`)}
	require.NoError(t, errOf(session.Do(t.Context(), request)))
	assert.JSONEq(t, `{"n":1,"key":"`+theSecret+`"}`, got)
	request.Body = []byte(`[1]`)
	require.ErrorIs(t, errOf(session.Do(t.Context(), request)), hostfuncs.ErrInvalid)
	assert.EqualValues(t, 1, s.requests.Load())
}

// TestAttackCutSecret: a guest that has its bytes end within a secret learns no part of it.
func TestAttackCutSecret(t *testing.T) {
	text := strings.Repeat("x", 100) + theSecret + base64.StdEncoding.EncodeToString([]byte(theSecret)) + strings.Repeat("y", 100)
	// Each piece arrives separately, so that the client must wait for the bytes beyond the cut.
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		io.WriteString(w, text[:size+1])
		http.NewResponseController(w).Flush()
		time.Sleep(time.Millisecond)
		io.WriteString(w, text[size+1:]+text)
	})
	permission := s.permission("127.0.0.1")
	options := Options{
		Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)},
		Secrets: secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"}),
	}
	client, err := New(options)
	require.NoError(t, err)
	defer client.Close()
	cutPlain := 0
	for size := 100; size < len(text); size++ {
		session := client.Open(Limits{Bytes: manifests.Bytes(size)})
		answer, err := get(t, session, s.at("127.0.0.1", "/"+strconv.Itoa(size)))
		session.Close()
		require.NoError(t, err)
		assert.True(t, answer.Truncated)
		require.Empty(t, around(answer.Body), "after %d bytes", size)
		if around(client.secrets.Mask([]byte(text[:size]))) != "" {
			cutPlain++
		}
	}
	require.NotZero(t, cutPlain, "the attack must work where the text is cut before it is masked")
}

// around returns a text without the secret's placeholder and the letters that TestAttackCutSecret puts around the
// secret.
func around(text []byte) string {
	return strings.Trim(strings.ReplaceAll(string(text), "[secret API_KEY]", ""), "xy")
}
