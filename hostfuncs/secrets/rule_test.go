package secrets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/permission/permissiontest"
	"github.com/caisson-run/caisson/manifests"
)

// secretUse is a secret in one place of a request to one origin.
type secretUse struct {
	name, scheme, host string
	port               int
	place              manifests.SecretPlace
}

func oneOf[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

// TestDecideSecrets: the effective secrets are those that a few plain comparisons find.
func TestDecideSecrets(t *testing.T) {
	places := []manifests.SecretPlace{{Header: "X-Key"}, {Header: "Authorization", Prefix: "Bearer "}, {Query: "key"}, {Body: "key"}}
	var uses []secretUse
	for _, name := range []string{"A", "B"} {
		for _, host := range []string{"a.test", "b.test"} {
			for _, place := range places {
				uses = append(uses, secretUse{name, "https", host, 443, place}, secretUse{name, "http", host, 80, place}, secretUse{name, "https", host, 8443, place})
			}
		}
	}
	request := func(random *rand.Rand) permissiontest.Line[secretUse] {
		p := manifests.SecretPermission{Name: oneOf(random, "A", "B"), Host: oneOf(random, "a.test", "B.test", "*", ""), Place: oneOf(random, append(places, manifests.SecretPlace{})...)}
		return permissiontest.Line[secretUse]{Rule: readRequest(p).rule(), Text: fmt.Sprintf("%+v", p), Matches: func(u secretUse) bool {
			return u.name == p.Name && u.host == strings.ToLower(p.Host) && u.place == p.Place
		}}
	}
	grant := func(random *rand.Rand) permissiontest.Line[secretUse] {
		g := manifests.SecretGrant{
			Name: oneOf(random, "A", "B"), Host: oneOf(random, "A.test", "b.test"), From: manifests.SecretSource{Env: "E"},
			Schemes: oneOf(random, nil, []string{"https"}, []string{"http", "https"}), Ports: oneOf(random, nil, []int{8443}, []int{443, 8443}),
			Place: oneOf(random, append(places, manifests.SecretPlace{}, manifests.SecretPlace{Header: "x-key"})...),
		}
		read, err := readGrant(g)
		require.NoError(t, err)
		return permissiontest.Line[secretUse]{Rule: read.statement().Rule, Text: fmt.Sprintf("%+v", g), Matches: func(u secretUse) bool {
			schemes, ports := g.Schemes, g.Ports
			if len(schemes) == 0 {
				schemes = []string{"https"}
			}
			if len(ports) == 0 {
				ports = []int{map[string]int{"https": 443, "http": 80}[u.scheme]}
			}
			origin := u.host == strings.ToLower(g.Host) && slices.Contains(schemes, u.scheme) && slices.Contains(ports, u.port)
			anyHeader := g.Place == manifests.SecretPlace{} && u.place.Header != ""
			same := u.place.Query == g.Place.Query && u.place.Body == g.Place.Body && u.place.Prefix == g.Place.Prefix && strings.EqualFold(u.place.Header, g.Place.Header)
			return u.name == g.Name && origin && (anyHeader || same)
		}}
	}
	sample := permissiontest.Sample[secretUse]{
		Request: request, Grant: grant, Uses: uses,
		Denial: func(random *rand.Rand) permissiontest.Line[secretUse] {
			name := oneOf(random, "A", "B", "")
			return permissiontest.Line[secretUse]{Rule: &rule{name: name, everywhere: true}, Text: name, Matches: func(u secretUse) bool { return u.name == name }}
		},
		Matches: func(r permission.Rule, u secretUse) bool {
			host, err := permission.ParseOneHost(u.host)
			require.NoError(t, err)
			return r.Covers(&rule{name: u.name, host: host, origins: []permission.Origin{{Scheme: u.scheme, Host: host, Port: u.port}}, place: canonical(u.place)})
		},
	}
	for seed := range uint64(10) {
		permissiontest.Check(t, sample, seed)
	}
}
