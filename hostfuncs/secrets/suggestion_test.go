package secrets_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

// TestWhatIsSuggestedGrants: the rule, as an element of a policy's grants, puts the secret into effect.
func TestWhatIsSuggestedGrants(t *testing.T) {
	for _, asked := range []manifests.SecretPermission{
		request(key, inHeader("X-Api-Key"), host), request("NO", inQuery("q"), "127.0.0.1"), request("K", inHeader("X"), "2001:db8::1"),
	} {
		options := secrets.Options{
			Tool: "web_search", Requests: []manifests.SecretPermission{asked},
			LookupEnv: environment{asked.Name: "0123456789abcdef"}.lookup,
		}
		refused := must(secrets.New(options))
		_, denial := refused.Check(asked.Name)
		require.NotNil(t, denial)

		policy := must(manifests.ParsePolicy("caisson.json", []byte(`{"schema":"caisson-config/v1","grants":[`+string(denial.Allow.Grant)+`]}`)))
		options.Grants = policy.For("web_search", "").Secrets
		assert.True(t, must(secrets.New(options)).Exists(asked.Name), "%s", denial.Allow.Grant)
	}
}

// TestSuggestionNamesTheOrigin: where the manifest asks for requests to another port than
// the scheme's own, the secret is suggested for that one.
func TestSuggestionNamesTheOrigin(t *testing.T) {
	options := secrets.Options{
		Tool: "web_search", Requests: []manifests.SecretPermission{request(key, inHeader("X-Api-Key"), "localhost")},
		Network:   []manifests.NetworkPermission{{Host: "other.example"}, {Host: "localhost", Schemes: []string{"http"}, Ports: []int{8080}}},
		LookupEnv: environment{key: "0123456789abcdef"}.lookup,
	}
	refused := must(secrets.New(options))
	_, denial := refused.Check(key)
	require.NotNil(t, denial)
	assert.Equal(t, `{"tools":["web_search"],"secrets":[{"name":"SEARCH_KEY","from":{"env":"SEARCH_KEY"},"host":"localhost","ports":[8080],"schemes":["http"]}]}`, string(denial.Allow.Grant))
}

// TestGrantWithoutAPlaceIsForHeaders: a manifest cannot choose that a secret goes where an API keeps and shows it.
func TestGrantWithoutAPlaceIsForHeaders(t *testing.T) {
	for _, place := range []manifests.SecretPlace{inQuery("q"), inBody("description"), inHeader("X-Api-Key")} {
		options := secrets.Options{
			Requests: []manifests.SecretPermission{request(key, place, host)}, Grants: []manifests.SecretGrant{granted(key, host)},
			LookupEnv: environment{key: "0123456789abcdef"}.lookup,
		}
		set := must(secrets.New(options))
		assert.Equal(t, place.Header != "", set.Exists(key), "%+v", place)
		options.Grants[0].Place = place
		assert.True(t, must(secrets.New(options)).Exists(key), "%+v", place)
	}
}

// TestSetServesManyAtOnce is for the race detector.
func TestSetServesManyAtOnce(t *testing.T) {
	set := one(t, inHeader("X-Api-Key"), value)
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 20 {
				r := newRequest(t, "GET", "https://"+host)
				require.NoError(t, errOf(set.Inject(r, nil)))
				require.Equal(t, "[secret SEARCH_KEY]", set.MaskText(r.Header.Get("X-Api-Key")))
				require.NotEmpty(t, set.Decisions())
				exists, _ := set.Check(key)
				require.True(t, exists)
			}
		})
	}
}
