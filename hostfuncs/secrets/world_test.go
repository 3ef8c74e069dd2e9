package secrets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const (
	host = "api.search.example"
	key  = "SEARCH_KEY"
	// value has what encodings treat in their own ways: slash, plus, quotes, percent,
	// ampersand, angle brackets and a backslash.
	value = `sk-4f/9+Q"x%41&amp<y\n>kz_Tr0ub4dor`
)

// environment is a LookupEnv over a map.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, set := e[name]
	return value, set
}

func inHeader(name string) manifests.SecretPlace { return manifests.SecretPlace{Header: name} }
func inQuery(name string) manifests.SecretPlace  { return manifests.SecretPlace{Query: name} }
func inBody(name string) manifests.SecretPlace   { return manifests.SecretPlace{Body: name} }

func request(name string, place manifests.SecretPlace, host string) manifests.SecretPermission {
	return manifests.SecretPermission{Name: name, Place: place, Host: host}
}

// granted is a grant of a secret from the environment variable of its name.
func granted(name, host string) manifests.SecretGrant {
	return manifests.SecretGrant{
		Binding: manifests.Binding{Origin: "/etc/caisson/caisson.yaml:14"},
		Name:    name, Host: host, From: manifests.SecretSource{Env: name},
	}
}

// in is a grant that names a place.
func in(place manifests.SecretPlace, grant manifests.SecretGrant) manifests.SecretGrant {
	grant.Place = place
	return grant
}

// one returns a set with one secret for https://api.search.example.
func one(t testing.TB, place manifests.SecretPlace, value string) *secrets.Set {
	t.Helper()
	set := must(tryOne(place, value))
	require.Equal(t, []string{key}, set.Names())
	return set
}

func tryOne(place manifests.SecretPlace, value string) (*secrets.Set, error) {
	return secrets.New(secrets.Options{
		Tool:      "web_search",
		Requests:  []manifests.SecretPermission{request(key, place, host)},
		Grants:    []manifests.SecretGrant{in(place, granted(key, host))},
		LookupEnv: environment{key: value}.lookup,
	})
}

// several returns a set with many secrets, each in a header of its name.
func several(t testing.TB, values map[string]string) *secrets.Set {
	t.Helper()
	options := secrets.Options{LookupEnv: environment(values).lookup}
	for name := range values {
		options.Requests = append(options.Requests, request(name, inHeader("X-"+name), host))
		options.Grants = append(options.Grants, granted(name, host))
	}
	set := must(secrets.New(options))
	require.Len(t, set.Names(), len(values))
	return set
}

func oneHost(t *testing.T, text string) permission.Host {
	t.Helper()
	host := must(permission.ParseOneHost(text))
	return host
}

// must returns the result of a step that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }
