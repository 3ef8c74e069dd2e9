package answer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

func TestLastWords(t *testing.T) {
	long := strings.Repeat("a line of a log\n", 1000)
	for log, want := range map[string]string{
		"":                        "",
		" \n":                     "",
		"no\n":                    "no",
		"a\nb\n":                  "a\nb",
		"caf\xe9":                 "caf\uFFFD",
		long + "why":              "… " + strings.Repeat("a line of a log\n", 127) + "why",
		strings.Repeat("é", 3000): "… " + strings.Repeat("é", 1024),
	} {
		a := &Answer{log: guestLog{text: []byte(log)}}
		assert.Equal(t, want, a.lastWords(maxWords))
	}
	cut := &Answer{log: guestLog{text: []byte("the begin"), end: []byte("ning\nthe end"), missing: 1}}
	assert.Equal(t, "… the end", cut.lastWords(maxWords))
	assert.Empty(t, (&Answer{log: guestLog{omitted: true}}).lastWords(maxWords))
}

// TestAttackSecretsAtTheCut: where a log is cut, no part of a secret can be seen, wherever the cut is.
func TestAttackSecretsAtTheCut(t *testing.T) {
	const limit = 4 << 10
	masked := oneSecret(t)
	for _, length := range []int{limit + maxWords + 1, limit + maxWords + 500, 3 * limit} {
		for _, cut := range []int{limit, length - maxWords} {
			for before := range len(secretValue) + 2 {
				a := &Answer{Limits: manifests.Limits{Stderr: limit}, Secrets: masked}
				a.Collect(masked.Longest())
				text := []byte(strings.Repeat(".", length))
				copy(text[cut-before:], secretValue)
				_, err := a.Stderr.Write(text)
				require.NoError(t, err)
				a.log = a.maskedLog(t.Context())
				require.Positive(t, a.log.missing)
				for n := range len(secretValue) - 5 {
					require.NotContains(t, a.shown(), secretValue[n:n+6], "%d bytes, cut at %d, %d before it", length, cut, before)
				}
			}
		}
	}
}

// TestLogThatCannotBeMaskedIsNotShown: one that is so long that the time is over first.
func TestLogThatCannotBeMaskedIsNotShown(t *testing.T) {
	a := &Answer{Limits: manifests.Limits{Stderr: 1 << 20}, Secrets: oneSecret(t)}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	a.Stderr.Bytes = []byte(secretValue + strings.Repeat("%25", 64<<20/3))
	a.log = a.maskedLog(ctx)
	assert.Equal(t, unmaskedLog, a.shown())
	a.Stderr.Bytes = []byte(secretValue)
	assert.Equal(t, "[secret API_KEY]", string(a.maskedLog(ctx).text))
}

const secretValue = "s3cr3t/+value=of_24_bytes" // of API_KEY

// oneSecret returns the secrets of a tool that was granted one.
func oneSecret(t *testing.T) *secrets.Set {
	t.Helper()
	m, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: guest\ndescription: A guest.\nmodule: {path: guest.wasm}\n"+
		"permissions: {secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}"))
	require.NoError(t, err)
	set, err := secrets.New(secrets.Options{
		Tool: "guest", Requests: m.Permissions.Secrets, LookupEnv: func(string) (string, bool) { return secretValue, true },
		Grants: []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}},
	})
	require.NoError(t, err)
	return set
}
