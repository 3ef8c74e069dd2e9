package secrets_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

// TestWhatIsSuggestedGrants: the flag and the element of a policy, each pasted as it
// stands, put the secret into effect.
func TestWhatIsSuggestedGrants(t *testing.T) {
	for _, asked := range []manifests.SecretPermission{
		request(key, inHeader("X-Api-Key"), host), request("NO", inQuery("q"), "127.0.0.1"), request("K", inHeader("X"), "2001:db8::1"),
	} {
		options := secrets.Options{
			Tool: "web_search", Requests: []manifests.SecretPermission{asked},
			LookupEnv: environment{asked.Name: "0123456789abcdef"}.lookup,
		}
		refused, err := secrets.New(options)
		require.NoError(t, err)
		_, denial := refused.Check(asked.Name)
		require.NotNil(t, denial)

		flag := strings.ReplaceAll(strings.TrimPrefix(denial.Allow.Grant, "--secret "), "'", "")
		grant, err := manifests.ParseSecretFlag(flag)
		require.NoError(t, err)
		options.Grants = []manifests.SecretGrant{grant}
		set, err := secrets.New(options)
		require.NoError(t, err)
		assert.True(t, set.Exists(asked.Name), flag)

		policy, err := manifests.ParsePolicy("caisson.yaml", []byte("schema: caisson-config/v1\ngrants:\n  "+denial.Allow.Config+"\n"))
		require.NoError(t, err)
		options.Grants = policy.For("web_search", "").Secrets
		set, err = secrets.New(options)
		require.NoError(t, err)
		assert.True(t, set.Exists(asked.Name), denial.Allow.Config)
	}
}

// TestSetServesManyAtOnce has something to find for the race detector alone.
func TestSetServesManyAtOnce(t *testing.T) {
	set := one(t, inHeader("X-Api-Key"), value)
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 20 {
				r := newRequest(t, "GET", "https://"+host)
				_, err := set.Inject(r, nil)
				require.NoError(t, err)
				require.Equal(t, "[secret SEARCH_KEY]", set.MaskText(r.Header.Get("X-Api-Key")))
				require.NotEmpty(t, set.Decisions())
				exists, _ := set.Check(key)
				require.True(t, exists)
			}
		})
	}
}
