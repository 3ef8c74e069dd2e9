package secrets_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const (
	requested = "SEARCH_KEY in the header X-Api-Key for api.search.example"
	given     = "SEARCH_KEY from the environment variable SEARCH_KEY for https://api.search.example (/etc/caisson/caisson.yaml:14)"
	effect    = "SEARCH_KEY in the header X-Api-Key for https://api.search.example"
)

var suggestion = tool.Allow{
	Grant: json.RawMessage(`{"tools":["web_search"],"secrets":[{"name":"SEARCH_KEY","from":{"env":"SEARCH_KEY"},"host":"api.search.example"}]}`),
}

func TestDecisions(t *testing.T) {
	grant := granted(key, host)
	changed := func(change func(*manifests.SecretGrant)) []manifests.SecretGrant {
		g := grant
		change(&g)
		return []manifests.SecretGrant{g}
	}
	values := environment{key: "0123456789abcdef", "EMPTY": ""}
	for name, c := range map[string]struct {
		grants []manifests.SecretGrant
		deny   []manifests.Deny
		want   tool.Decision
		rule   string // of the receipt that the guest gets; empty where the secret exists
	}{
		"granted": {grants: []manifests.SecretGrant{grant},
			want: tool.Decision{Granted: given, Effective: effect, Reason: "granted"}},
		"granted with the same place": {grants: changed(func(g *manifests.SecretGrant) { g.Place = inHeader("x-api-key") }),
			want: tool.Decision{Granted: given, Effective: effect, Reason: "granted"}},
		"granted with the host in another spelling": {grants: changed(func(g *manifests.SecretGrant) { g.Host = "API.search.example" }),
			want: tool.Decision{Granted: given, Effective: effect, Reason: "granted"}},
		"no grant": {
			want: tool.Decision{Reason: "no grant gives it", Allow: suggestion}, rule: "no grant gives the secret"},
		"another name": {grants: []manifests.SecretGrant{granted("OTHER_KEY", host)},
			want: tool.Decision{Reason: "no grant gives it", Allow: suggestion}, rule: "no grant gives the secret"},
		"another host": {grants: []manifests.SecretGrant{granted(key, "other.example")},
			want: tool.Decision{Reason: "/etc/caisson/caisson.yaml:14 grants it only for other.example", Allow: suggestion},
			rule: "no grant gives the secret for api.search.example"},
		"another place": {grants: changed(func(g *manifests.SecretGrant) { g.Place = inQuery("key") }),
			want: tool.Decision{Reason: "/etc/caisson/caisson.yaml:14 grants it only in the query parameter key", Allow: suggestion},
			rule: "no grant gives the secret in the header X-Api-Key"},
		"another prefix": {grants: changed(func(g *manifests.SecretGrant) {
			g.Place = manifests.SecretPlace{Header: "X-Api-Key", Prefix: "Bearer "}
		}),
			want: tool.Decision{Reason: `/etc/caisson/caisson.yaml:14 grants it only in the header X-Api-Key after "Bearer "`, Allow: suggestion},
			rule: "no grant gives the secret in the header X-Api-Key"},
		"denied": {grants: []manifests.SecretGrant{grant}, deny: []manifests.Deny{{Origin: "a/b.yaml:3", Secret: "OTHER"}, {Origin: "/etc/caisson.yaml:30", Secret: key}},
			want: tool.Decision{Granted: given, Reason: "denied by /etc/caisson.yaml:30"}, rule: "denied by caisson.yaml:30"},
		"denied without saying where": {grants: []manifests.SecretGrant{grant}, deny: []manifests.Deny{{Secret: key}},
			want: tool.Decision{Granted: given, Reason: "denied by the operator"}, rule: "denied by the operator"},
		"not set": {grants: changed(func(g *manifests.SecretGrant) { g.From.Env = "TAVILY_KEY" }),
			want: tool.Decision{Granted: "SEARCH_KEY from the environment variable TAVILY_KEY for https://api.search.example (/etc/caisson/caisson.yaml:14)",
				Reason: "the environment variable TAVILY_KEY is not set"},
			rule: "the secret is granted but has no value that can be used here"},
		"empty": {grants: changed(func(g *manifests.SecretGrant) { g.From.Env = "EMPTY" }),
			want: tool.Decision{Granted: "SEARCH_KEY from the environment variable EMPTY for https://api.search.example (/etc/caisson/caisson.yaml:14)",
				Reason: "the environment variable EMPTY is empty"},
			rule: "the secret is granted but has no value that can be used here"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := secrets.New(secrets.Options{
				Tool:     "web_search",
				Requests: []manifests.SecretPermission{request(key, inHeader("X-Api-Key"), host)},
				Grants:   c.grants, Deny: c.deny, LookupEnv: values.lookup,
			})
			require.NoError(t, err)
			c.want.Permission, c.want.Requested = "secrets", requested
			assert.Equal(t, []tool.Decision{c.want}, set.Decisions())
			exists, denial := set.Check(key)
			assert.Equal(t, c.rule == "", exists)
			assert.Equal(t, exists, set.Exists(key))
			assert.True(t, set.Requested(key))
			if !exists {
				assert.Equal(t, &tool.Denial{Permission: "secrets", Value: key, Rule: c.rule, Allow: c.want.Allow}, denial)
			} else {
				assert.Nil(t, denial)
			}
		})
	}
}

// TestNoEnvironmentIsRead that was not given.
func TestNoEnvironmentIsRead(t *testing.T) {
	t.Setenv(key, "0123456789abcdef")
	set, err := secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{request(key, inHeader("X"), host)}, Grants: []manifests.SecretGrant{granted(key, host)},
	})
	require.NoError(t, err)
	assert.False(t, set.Exists(key))
}

func TestCheckOfWhatTheManifestDoesNotAskFor(t *testing.T) {
	set := one(t, inHeader("X"), "0123456789abcdef")
	for name, want := range map[string]tool.Denial{
		"OTHER_KEY": {Value: "OTHER_KEY", Allow: tool.Allow{
			Manifest: json.RawMessage(`{"secrets":[{"name":"OTHER_KEY","header":null,"host":null}]}`),
			Grant:    json.RawMessage(`{"tools":["web_search"],"secrets":[{"name":"OTHER_KEY","from":{"env":"OTHER_KEY"},"host":null}]}`)}},
		"search_key":              {Value: "search_key"},
		"K; rm -rf /":             {Value: "K; rm -rf /"},
		"K\x1b[2J\u202eK":         {Value: "K\ufffd[2J\ufffdK"},
		"K\xff":                   {Value: "K\ufffd"},
		"":                        {},
		string(make([]byte, 200)): {Value: repeated("\ufffd", 128) + "…"},
	} {
		want.Permission, want.Rule = "secrets", "the manifest does not ask for the secret"
		exists, denial := set.Check(name)
		assert.False(t, exists)
		assert.Equal(t, &want, denial)
		assert.False(t, set.Requested(name))
	}
}

func repeated(text string, n int) string {
	out := ""
	for range n {
		out += text
	}
	return out
}

func TestSuggestionsAreSafeToPaste(t *testing.T) {
	for name, c := range map[string]struct {
		tool, secret, host string
		want               tool.Allow
	}{
		"an IPv6 address": {"web", "K", "2001:DB8::1", tool.Allow{
			Grant: json.RawMessage(`{"tools":["web"],"secrets":[{"name":"K","from":{"env":"K"},"host":"2001:db8::1"}]}`)}},
		"words of YAML": {"null", "NO", "127.0.0.1", tool.Allow{
			Grant: json.RawMessage(`{"tools":["null"],"secrets":[{"name":"NO","from":{"env":"NO"},"host":"127.0.0.1"}]}`)}},
		"no tool":             {"", "K", host, tool.Allow{}},
		"a tool with syntax":  {"a]", "K", host, tool.Allow{}},
		"a name with syntax":  {"web", "K;x", host, tool.Allow{}},
		"a host with syntax":  {"web", "K", "$(x)", tool.Allow{}},
		"a host with a space": {"web", "K", "a b", tool.Allow{}},
		"no host":             {"web", "K", "", tool.Allow{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, must(secrets.New(secrets.Options{Tool: c.tool, Requests: []manifests.SecretPermission{request(c.secret, inHeader("X"), c.host)}})).Decisions()[0].Allow)
		})
	}
}

func TestGrantsThatSayNothingDefinite(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*manifests.SecretGrant)
		want   string
	}{
		"no name":           {func(g *manifests.SecretGrant) { g.Name = "" }, "the grant has no name"},
		"no source":         {func(g *manifests.SecretGrant) { g.From = manifests.SecretSource{} }, "exactly one of"},
		"two sources":       {func(g *manifests.SecretGrant) { g.From.File = "x" }, "exactly one of"},
		"no identity":       {func(g *manifests.SecretGrant) { g.From = manifests.SecretSource{Age: "x"} }, "needs the identity file"},
		"a lonely identity": {func(g *manifests.SecretGrant) { g.From.Identity = "x" }, "belong to an age file"},
		"a lonely key":      {func(g *manifests.SecretGrant) { g.From.Key = "x" }, "belong to an age file"},
		"no host":           {func(g *manifests.SecretGrant) { g.Host = "" }, "bound to one host"},
		"a wildcard":        {func(g *manifests.SecretGrant) { g.Host = "*.example" }, `bound to one host; host "*.example" stands for many hosts`},
		"a URL":             {func(g *manifests.SecretGrant) { g.Host = "https://a.example" }, "is not a host alone"},
		"brackets":          {func(g *manifests.SecretGrant) { g.Host = "[::1]" }, "has a port or brackets"},
		"the root's dot":    {func(g *manifests.SecretGrant) { g.Host = "a.example." }, "is not a host name"},
		"a letter like k":   {func(g *manifests.SecretGrant) { g.Host = "\u212a.example" }, "is not a host name"},
		"a scheme":          {func(g *manifests.SecretGrant) { g.Schemes = []string{"ftp"} }, `the scheme "ftp"`},
		"a port":            {func(g *manifests.SecretGrant) { g.Ports = []int{65536} }, "the port 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			grant := granted(key, host)
			c.change(&grant)
			_, err := secrets.New(secrets.Options{Grants: []manifests.SecretGrant{grant}})
			require.ErrorIs(t, err, secrets.ErrGrant)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "caisson.yaml:14")
		})
	}
}

func TestTwoGrantsForOneOrigin(t *testing.T) {
	second := granted(key, host)
	second.Origin = "--secret SEARCH_KEY=env:B@api.search.example"
	try := func(change func(*manifests.SecretGrant), requests ...manifests.SecretPermission) error {
		second := second
		change(&second)
		_, err := secrets.New(secrets.Options{
			Requests: requests, Grants: []manifests.SecretGrant{granted(key, host), second},
			LookupEnv: environment{key: "0123456789abcdef"}.lookup,
		})
		return err
	}
	asked := request(key, inHeader("X"), host)
	err := try(func(*manifests.SecretGrant) {}, asked)
	require.ErrorIs(t, err, secrets.ErrGrant)
	assert.EqualError(t, err, "secret SEARCH_KEY (--secret SEARCH_KEY=env:B@api.search.example): granted for https://api.search.example already, by /etc/caisson/caisson.yaml:14; keep one of the two")
	require.ErrorIs(t, try(func(g *manifests.SecretGrant) { g.Ports = []int{8443, 443} }, asked), secrets.ErrGrant)
	require.NoError(t, try(func(g *manifests.SecretGrant) { g.Ports = []int{8443} }, asked), "another port is another origin")
	require.NoError(t, try(func(g *manifests.SecretGrant) { g.Schemes = []string{"http"} }, asked), "as is another scheme")
	require.NoError(t, try(func(g *manifests.SecretGrant) { g.Place = inQuery("q") }, asked), "a grant for another place is not for this request")
	require.NoError(t, try(func(*manifests.SecretGrant) {}), "grants of a secret that is not requested do not conflict")
}

// TestAlternativesForOnePlace: the first in the manifest's order that has a value goes there.
func TestAlternativesForOnePlace(t *testing.T) {
	options := secrets.Options{
		Requests: []manifests.SecretPermission{
			request("FIRST", inHeader("Authorization"), host), request("SECOND", manifests.SecretPlace{Header: "authorization", Prefix: "Bearer "}, host),
		},
		Grants: []manifests.SecretGrant{granted("FIRST", host), granted("SECOND", host)},
	}
	for name, c := range map[string]struct {
		values environment
		want   string
		reason string
	}{
		"both":   {environment{"FIRST": "0123456789abcdef", "SECOND": "fedcba9876543210"}, "0123456789abcdef", "the header Authorization for https://api.search.example holds FIRST already"},
		"second": {environment{"SECOND": "fedcba9876543210"}, "Bearer fedcba9876543210", "granted"},
	} {
		t.Run(name, func(t *testing.T) {
			options := options
			options.LookupEnv = c.values.lookup
			set := must(secrets.New(options))
			r := newRequest(t, "GET", "https://api.search.example")
			require.NoError(t, errOf(set.Inject(r, nil)))
			assert.Equal(t, []string{c.want}, r.Header["Authorization"])
			assert.Equal(t, c.reason, set.Decisions()[1].Reason)
			assert.Len(t, set.Names(), 1)
		})
	}
}

// TestPlacesThatServersTakeForOne do not hold two secrets, of which chance would pick one.
func TestPlacesThatServersTakeForOne(t *testing.T) {
	for _, c := range []struct {
		first, second manifests.SecretPlace
		want          []string
	}{
		{inHeader("X-Key"), inHeader("x_key"), []string{"FIRST"}},
		{inHeader("Authorization"), inHeader("Auth_orization"), []string{"FIRST"}},
		{inQuery("api.key"), inQuery("API_KEY"), []string{"FIRST"}},
		{inBody("api-key"), inBody("api_key"), []string{"FIRST"}},
		{inHeader("X-Key"), inQuery("X-Key"), []string{"FIRST", "SECOND"}},
		{inQuery("key"), inBody("key"), []string{"FIRST", "SECOND"}},
		{inQuery("key"), inQuery("key2"), []string{"FIRST", "SECOND"}},
	} {
		set, err := secrets.New(secrets.Options{
			Requests:  []manifests.SecretPermission{request("FIRST", c.first, host), request("SECOND", c.second, host)},
			Grants:    []manifests.SecretGrant{in(c.first, granted("FIRST", host)), in(c.second, granted("SECOND", host))},
			LookupEnv: environment{"FIRST": "0123456789abcdef", "SECOND": "fedcba9876543210"}.lookup,
		})
		require.NoError(t, err)
		assert.Equal(t, c.want, set.Names(), "%v and %v", c.first, c.second)
	}
}

func TestPartOfAGrantMayHaveNoValue(t *testing.T) {
	second := granted(key, host)
	second.Ports, second.From.Env, second.Origin = []int{8443}, "UNSET", "caisson.yaml:20"
	set, err := secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{request(key, inHeader("X-Api-Key"), host)},
		Grants:   []manifests.SecretGrant{granted(key, host), second}, LookupEnv: environment{key: "0123456789abcdef"}.lookup,
	})
	require.NoError(t, err)
	decision := set.Decisions()[0]
	assert.Equal(t, effect, decision.Effective)
	assert.Equal(t, "granted; the environment variable UNSET is not set", decision.Reason)
	assert.Contains(t, decision.Granted, "; SEARCH_KEY from the environment variable UNSET for https://api.search.example:8443 (caisson.yaml:20)")
}

// TestUnsent: Unsent reports a secret that is granted for the request's host but has no value, or is bound to another
// scheme or port. It does not report a secret that is not granted or is denied, or in whose place another one is sent.
func TestUnsent(t *testing.T) {
	elsewhere := granted("PORT_KEY", host)
	elsewhere.Ports = []int{8443}
	set := must(secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{
			request(key, inHeader("X-Api-Key"), host), request("UNSET_KEY", inHeader("X-Unset"), host), request("PORT_KEY", inHeader("X-Port"), host),
			request("OTHER_KEY", inHeader("x-api_key"), host), request("DENIED_KEY", inHeader("X-Denied"), host), request("NO_GRANT", inHeader("X-None"), host),
		},
		Grants:    []manifests.SecretGrant{granted(key, host), granted("UNSET_KEY", host), elsewhere, granted("OTHER_KEY", host), granted("DENIED_KEY", host)},
		Deny:      []manifests.Deny{{Secret: "DENIED_KEY"}},
		LookupEnv: environment{key: "0123456789abcdef", "PORT_KEY": "0123456789abcdef", "OTHER_KEY": "0123456789abcdef", "DENIED_KEY": "0123456789abcdef"}.lookup,
	}))
	const unset, bound, port = "the secret is granted but has no value that can be used here", "the secret is sent only to https://api.search.example", "the secret is sent only to https://api.search.example:8443"
	for url, want := range map[string]map[string]string{
		"https://api.search.example":      {"UNSET_KEY": unset, "PORT_KEY": port},
		"https://api.search.example:8443": {key: bound, "UNSET_KEY": unset},
		"http://api.search.example":       {key: bound, "UNSET_KEY": unset, "PORT_KEY": port},
		"https://www.search.example":      {},
	} {
		target := newRequest(t, "GET", url).URL
		number := permission.DefaultPort(target.Scheme)
		if target.Port() != "" {
			number = 8443
		}
		got := map[string]string{}
		for _, receipt := range set.Unsent(permission.Origin{Scheme: target.Scheme, Host: oneHost(t, target.Hostname()), Port: number}) {
			assert.True(t, receipt.Note && receipt.Permission == "secrets" && receipt.Allow.Grant == nil)
			got[receipt.Value] = receipt.Rule
		}
		assert.Equal(t, want, got, url)
	}
	assert.Empty(t, (*secrets.Set)(nil).Unsent(permission.Origin{Scheme: "https", Host: oneHost(t, host), Port: 443}))
}
