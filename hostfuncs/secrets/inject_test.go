package secrets_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const maxFilled = 1 << 20 // bytes of a body, as the documentation says

func newRequest(t testing.TB, method, url string) *http.Request {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), method, url, nil))
	return r
}

func TestInjectIntoHeader(t *testing.T) {
	place := manifests.SecretPlace{Header: "authorization", Prefix: "Bearer "}
	set := one(t, place, "0123456789abcdef")
	r := newRequest(t, "POST", "https://api.search.example/v1")
	r.Header = http.Header{"Authorization": {"guest", "two"}, "AUTHORIZATION": {"three"}, "authorization": {"four"}, "Accept-Authorization": {"no"}, "Accept": {"*/*"}}
	body := must(set.Inject(r, []byte("body")))
	assert.Equal(t, "body", string(body))
	assert.Equal(t, http.Header{"Authorization": {"Bearer 0123456789abcdef"}, "Accept-Authorization": {"no"}, "Accept": {"*/*"}}, r.Header)
	r = newRequest(t, "GET", "https://api.search.example/v1")
	r.Header = nil
	require.NoError(t, errOf(set.Inject(r, nil)))
	assert.Equal(t, "Bearer 0123456789abcdef", r.Header.Get("Authorization"))
}

func TestInjectIntoQuery(t *testing.T) {
	set := one(t, inQuery("api_key"), "0123456789 a&b=c")
	const added = "api_key=0123456789%20a%26b%3Dc"
	for query, want := range map[string]string{
		"":                                  added,
		"q=a":                               "q=a&" + added,
		"q=%41+b&Q=%zz&&x":                  "q=%41+b&Q=%zz&&x&" + added,
		"api_key=guest":                     added,
		"a=1&api_key=x&b=2&api_key&c=3":     "a=1&b=2&c=3&" + added,
		"api%5Fkey=x&%61pi_key=y&api_key%=": added,
		"%20api_key&+api_key=x&%0aapi_key":  added,
		"api_key%00=x&api_key%00y=x":        added,
		"[api_key]=x&%5Bapi_key%5D&a[b]=c":  "a[b]=c&" + added,
		"%u0061pi_key=x&a%pi_key=y&a%20b=z": "a%20b=z&" + added,
		"API_KEY=x&api_key[]=y&xapi_key=z":  "xapi_key=z&" + added,
		"api.key=x&api%5B_key=y&api%20key":  "api%5B_key=y&" + added,
		"api_key%5Ba%5D=x&Api-Key=y&apikey": "apikey&" + added,
		"a=api_key=x":                       "a=api_key=x&" + added,
		"api[key=x&api%5bkey&api[[key=z":    "api[[key=z&" + added,
		"a=1;b=2&a;api_key=x&;api_key":      "a=1;b=2&" + added,
	} {
		r := newRequest(t, "GET", "https://api.search.example/v1")
		r.URL.RawQuery = query
		require.NoError(t, errOf(set.Inject(r, nil)))
		assert.Equal(t, want, r.URL.RawQuery, "%q", query)
		assert.Empty(t, r.Header)
	}
}

func TestInjectIntoJSON(t *testing.T) {
	set := one(t, inBody("api_key"), `0123456789"\abc`+"\u00e9")
	const added = `"api_key":"0123456789\"\\abcé"`
	for body, want := range map[string]string{
		`{}`:                                 `{` + added + `}`,
		" { } \n":                            " {" + added + "} \n",
		`{"a":1}`:                            `{"a":1,` + added + `}`,
		`{ "a" : 12345678901234567890.10 }`:  `{ "a" : 12345678901234567890.10 ,` + added + `}`,
		`{"api_key":"x"}`:                    `{` + added + `}`,
		`{"api_key":{"a":[1,{}]},"b":[","]}`: `{"b":[","],` + added + `}`,
		`{"a":1,"api_key":1,"b":2}`:          `{"a":1,"b":2,` + added + `}`,
		`{"a":1 , "api\u005fkey" : "}" }`:    `{"a":1 ,` + added + `}`,
		`{"api_key":1,"api_key":2,"\u0061pi_key":3,"b":"\\\""}`: `{"b":"\\\"",` + added + `}`,
		`{"a":{"api_key":"kept"},"a":2}`:                        `{"a":{"api_key":"kept"},"a":2,` + added + `}`,
		`{"API_KEY":1,"":null}`:                                 `{"API_KEY":1,"":null,` + added + `}`,
	} {
		for _, media := range []string{"application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"} {
			r := newRequest(t, "POST", "https://api.search.example/v1")
			r.Header.Set("Content-Type", media)
			source := []byte(body)
			got, err := set.Inject(r, source)
			require.NoError(t, err, body)
			assert.Equal(t, want, string(got))
			assert.Equal(t, body, string(source), "the caller's body stays")
		}
	}
}

func TestInjectIntoForm(t *testing.T) {
	set := one(t, inBody("api_key"), "0123456789+abcdef")
	r := newRequest(t, "POST", "https://api.search.example/v1")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	assert.Equal(t, "a=1+2&b=%41&api_key=0123456789%2Babcdef", string(must(set.Inject(r, []byte("a=1+2&api%5fkey=x&b=%41")))))
}

// TestAttackLongBodies: the search for a secret's place in a body is bounded, and allocates for the whole body, not for
// each parameter. In the longest body, it ends with the request's context while it waits for other searches.
func TestAttackLongBodies(t *testing.T) {
	set := one(t, inBody("api_key"), "0123456789abcdef")
	for media, part := range map[string]string{"application/x-www-form-urlencoded": "a&", "application/json": " "} {
		inject := func(ctx context.Context, length int) error {
			r := newRequest(t, "POST", "https://api.search.example/v1").WithContext(ctx)
			r.Header.Set("Content-Type", media)
			_, err := set.Inject(r, []byte("{}" + strings.Repeat(part, length))[:length])
			return err
		}
		require.NoError(t, inject(t.Context(), maxFilled))
		assert.Less(t, testing.AllocsPerRun(1, func() { _ = inject(t.Context(), maxFilled) }), 100.0)
		err := inject(t.Context(), maxFilled+1)
		require.ErrorIs(t, err, hostfuncs.ErrInvalid)
		assert.ErrorContains(t, err, "at most 1048576 bytes")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		others := make(chan error)
		leave := occupied(t, set)
		go func() { others <- inject(ctx, maxFilled) }()
		require.ErrorIs(t, <-others, context.Canceled)
		leave()
	}
}

// TestInjectWithoutMasking: a value that is too short to be masked is put into long bodies all the same.
func TestInjectWithoutMasking(t *testing.T) {
	grant := in(inBody("api_key"), granted(key, host))
	grant.Force = true
	set, err := secrets.New(secrets.Options{
		Requests:  []manifests.SecretPermission{request(key, inBody("api_key"), host)},
		Grants:    []manifests.SecretGrant{grant},
		LookupEnv: environment{key: "hunter2"}.lookup,
	})
	require.NoError(t, err)
	r := newRequest(t, "POST", "https://"+host+"/v1")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	long := strings.Repeat("a", 100<<10)
	assert.Equal(t, long+"&api_key=hunter2", string(must(set.Inject(r, []byte(long)))))
}

func TestInjectRefusesBodiesWithoutRoom(t *testing.T) {
	const value = "0123456789abcdef"
	set := one(t, inBody("api_key"), value)
	for name, c := range map[string]struct {
		method string
		header http.Header
		body   string
	}{
		"no type":          {"POST", http.Header{}, `{}`},
		"two types":        {"POST", http.Header{"Content-Type": {"application/json", "text/plain"}}, `{}`},
		"another charset":  {"POST", http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=ibm037"}}, `a=b`},
		"no valid type":    {"POST", http.Header{"Content-Type": {"application/json; charset"}}, `{}`},
		"text":             {"POST", http.Header{"Content-Type": {"text/plain"}}, `{}`},
		"multipart":        {"POST", http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, `{}`},
		"compressed":       {"POST", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, `{}`},
		"an array":         {"POST", http.Header{"Content-Type": {"application/json"}}, `[{}]`},
		"a text":           {"POST", http.Header{"Content-Type": {"application/json"}}, `"{}"`},
		"two objects":      {"POST", http.Header{"Content-Type": {"application/json"}}, `{}{}`},
		"half an object":   {"POST", http.Header{"Content-Type": {"application/json"}}, `{"a":1`},
		"a trailing comma": {"POST", http.Header{"Content-Type": {"application/json"}}, `{"a":1,}`},
		"nothing":          {"POST", http.Header{"Content-Type": {"application/json"}}, ``},
		"a GET":            {"GET", http.Header{"Content-Type": {"application/json"}}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t, c.method, "https://api.search.example/v1")
			r.Header = c.header
			body, err := set.Inject(r, []byte(c.body))
			require.ErrorIs(t, err, hostfuncs.ErrInvalid)
			assert.Nil(t, body)
			assert.Contains(t, err.Error(), "secret SEARCH_KEY: the ")
			assert.NotContains(t, err.Error(), value)
		})
	}
	for _, method := range []string{"GET", "HEAD", ""} { // as after a redirect
		r := newRequest(t, "GET", "https://api.search.example/v1")
		r.Method = method
		assert.Empty(t, must(set.Inject(r, nil)))
	}
}

// TestInjectGoesToItsOriginAlone: nothing of a request to any other origin changes.
func TestInjectGoesToItsOriginAlone(t *testing.T) {
	set := one(t, inHeader("X-Api-Key"), "0123456789abcdef")
	for url, want := range map[string]bool{
		"https://api.search.example":                true,
		"https://api.search.example:443/":           true,
		"https://API.Search.Example./":              true,
		"HTTPS://api.search.example/?q":             true,
		"http://api.search.example/":                false,
		"http://api.search.example:443/":            false,
		"https://api.search.example:8443/":          false,
		"https://api.search.example:0443/":          true,
		"https://api.search.example:65979/":         false, // 443 in 16 bits
		"https://search.example/":                   false,
		"https://a.api.search.example/":             false,
		"https://api.search.example.evil.example/":  false,
		"https://evil.example/api.search.example":   false,
		"https://api.search.example@evil.example/":  false,
		"https://evil.example/#@api.search.example": false,
		"ftp://api.search.example:443/":             false,
		"https://api.search.example../":             false,
	} {
		r := newRequest(t, "GET", url)
		before := r.URL.String()
		require.NoError(t, errOf(set.Inject(r, nil)))
		assert.Equal(t, want, r.Header.Get("X-Api-Key") != "", url)
		assert.Equal(t, before, r.URL.String())
	}
}

func TestGrantWidensToPortsAndSchemes(t *testing.T) {
	grant := granted(key, "::1")
	grant.Schemes, grant.Ports = []string{"http", "https"}, []int{80, 8443}
	set, err := secrets.New(secrets.Options{
		Requests:  []manifests.SecretPermission{request(key, inHeader("X-Api-Key"), "0:0:0:0:0:0:0:1")},
		Grants:    []manifests.SecretGrant{grant},
		LookupEnv: environment{key: "0123456789abcdef"}.lookup,
	})
	require.NoError(t, err)
	for url, want := range map[string]bool{
		"http://[::1]/": true, "http://[::1]:8443/": true, "https://[0::1]:80/": true, "https://[::1]:8443/": true,
		"https://[::1]/": false, "https://[::2]:8443/": false, "http://[::ffff:0:1]/": false,
	} {
		r := newRequest(t, "GET", url)
		require.NoError(t, errOf(set.Inject(r, nil)))
		assert.Equal(t, want, r.Header.Get("X-Api-Key") != "", url)
	}
	assert.Equal(t, "SEARCH_KEY in the header X-Api-Key for http://[::1], http://[::1]:8443, https://[::1]:80, https://[::1]:8443", set.Decisions()[0].Effective)
	assert.Equal(t, []manifests.SecretPlace{inHeader("X-Api-Key")}, set.Places(permission.Origin{Scheme: "http", Host: oneHost(t, "::1"), Port: 80}))
	assert.Equal(t, []manifests.SecretPlace{inHeader("X-Api-Key")}, set.Places(permission.Origin{Scheme: "https", Host: oneHost(t, "0::1"), Port: 8443}))
	assert.Empty(t, set.Places(permission.Origin{Scheme: "https", Host: oneHost(t, "::1"), Port: 443}))

	set, err = secrets.New(secrets.Options{
		Requests:  []manifests.SecretPermission{request(key, inHeader("X-Api-Key"), "::ffff:192.0.2.1")},
		Grants:    []manifests.SecretGrant{granted(key, "192.0.2.1")},
		LookupEnv: environment{key: "0123456789abcdef"}.lookup,
	})
	require.NoError(t, err)
	assert.NotEmpty(t, set.Places(permission.Origin{Scheme: "https", Host: oneHost(t, "192.0.2.1"), Port: 443}), "one address in two spellings")
	assert.NotEmpty(t, set.Places(permission.Origin{Scheme: "https", Host: oneHost(t, "::ffff:c000:201"), Port: 443}))
}

// TestSecretsOfOneOriginGoTogether, each to its own place; and one name goes to two hosts with two values.
func TestSecretsOfOneOriginGoTogether(t *testing.T) {
	other := in(inQuery("key"), granted("KEY", "other.example"))
	other.From.Env = "OTHER"
	set, err := secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{
			request("KEY", inHeader("X-Key"), host), request("APP", inQuery("app"), host), request("TOKEN", inBody("token"), host),
			request("KEY", inQuery("key"), "other.example"),
		},
		Grants:    []manifests.SecretGrant{granted("KEY", host), in(inQuery("app"), granted("APP", host)), in(inBody("token"), granted("TOKEN", host)), other},
		LookupEnv: environment{"KEY": strings.Repeat("k", 16), "APP": strings.Repeat("a", 16), "TOKEN": strings.Repeat("t", 16), "OTHER": strings.Repeat("o", 16)}.lookup,
	})
	require.NoError(t, err)
	r := newRequest(t, "POST", "https://api.search.example/")
	r.Header.Set("Content-Type", "application/json")
	body := must(set.Inject(r, []byte("{}")))
	assert.Equal(t, strings.Repeat("k", 16), r.Header.Get("X-Key"))
	assert.Equal(t, "app="+strings.Repeat("a", 16), r.URL.RawQuery)
	assert.Equal(t, `{"token":"`+strings.Repeat("t", 16)+`"}`, string(body))
	r = newRequest(t, "GET", "https://other.example/")
	require.NoError(t, errOf(set.Inject(r, nil)))
	assert.Equal(t, "key="+strings.Repeat("o", 16), r.URL.RawQuery)
	assert.Empty(t, r.Header)
	assert.Equal(t, []string{"APP", "KEY", "TOKEN"}, set.Names())
}
