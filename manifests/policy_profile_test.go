package manifests_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

func TestBuiltinProfiles(t *testing.T) {
	want := []manifests.Profile{
		{Name: "strict", Limits: manifests.Limits{Timeout: 5 * time.Second, Memory: 32 << 20}, NoNetwork: true, NoWrites: true},
		{Name: "standard", Limits: manifests.Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
		{Name: "lenient", Limits: manifests.Limits{Timeout: 30 * time.Second, Memory: 512 << 20}},
	}
	assert.Equal(t, want, manifests.BuiltinProfiles())
	manifests.BuiltinProfiles()[0].Limits.Memory = 1
	for _, p := range []*manifests.Policy{nil, {}, {Profiles: []manifests.Profile{{Name: "strict"}}}} {
		for _, profile := range want {
			got, err := p.ProfileNamed(profile.Name)
			require.NoError(t, err)
			assert.Equal(t, profile, got, "a built-in name means the built-in profile")
		}
		got, err := p.ProfileNamed("")
		require.NoError(t, err)
		assert.Equal(t, "standard", got.Name)
	}
}

func TestProfileNamed(t *testing.T) {
	p := parsePolicy(t, "profile: mine\nprofiles: {mine: {extends: strict}}")
	mine, err := p.ProfileNamed("")
	require.NoError(t, err)
	assert.Equal(t, "mine", mine.Name)
	assert.True(t, mine.NoNetwork)
	_, err = p.ProfileNamed("Mine")
	require.ErrorIs(t, err, manifests.ErrProfile)
	assert.ErrorContains(t, err, `"Mine"; there are strict, standard, lenient, mine`)
	_, err = (*manifests.Policy)(nil).ProfileNamed("mine")
	require.ErrorIs(t, err, manifests.ErrProfile)
	_, err = (&manifests.Policy{Profile: "gone"}).ProfileNamed("")
	require.ErrorIs(t, err, manifests.ErrProfile)
}

func TestProgramsExtendProfiles(t *testing.T) {
	strict := manifests.BuiltinProfiles()[0]
	mine := strict.Extend("mine", manifests.Limits{Timeout: time.Second, Fuel: 7})
	mine.NoNetwork = false
	assert.Equal(t, manifests.Profile{Name: "mine", Limits: manifests.Limits{Timeout: time.Second, Memory: 32 << 20, Fuel: 7}, NoWrites: true}, mine)
	assert.Equal(t, manifests.BuiltinProfiles()[0], strict)
	p := &manifests.Policy{Profile: "mine", Profiles: []manifests.Profile{mine}}
	got, err := p.ProfileNamed("")
	require.NoError(t, err)
	assert.Equal(t, mine, got)
}

func TestProfilesExtendEachOther(t *testing.T) {
	p := parsePolicy(t, `
profiles:
  c: {extends: b, network: granted}
  a: {limits: {timeout: 3s}}
  b: {extends: a, limits: {memory: 1MiB}, network: none, writes: none}
  d: {}
`)
	limits := manifests.Limits{Timeout: 3 * time.Second, Memory: 128 << 20}
	narrow := limits
	narrow.Memory = 1 << 20
	assert.Equal(t, []manifests.Profile{
		{Name: "c", Limits: narrow, NoWrites: true},
		{Name: "a", Limits: limits},
		{Name: "b", Limits: narrow, NoNetwork: true, NoWrites: true},
		{Name: "d", Limits: manifests.Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
	}, p.Profiles)

	var chain strings.Builder
	for i := range 255 {
		fmt.Fprintf(&chain, "  p%d: {extends: p%d}\n", i, i+1)
	}
	p = parsePolicy(t, "profiles:\n"+chain.String()+"  p255: {extends: lenient}\n")
	assert.Equal(t, manifests.BuiltinProfiles()[2].Limits, p.Profiles[0].Limits)
}

func TestProfilesInACircle(t *testing.T) {
	for body, paths := range map[string][]string{
		"a: {extends: a}":                                                    {"profiles.a.extends"},
		"a: {extends: b}, b: {extends: a}":                                   {"profiles.a.extends"},
		"x: {extends: a}, a: {extends: b}, b: {extends: a}":                  {"profiles.a.extends"},
		"a: {extends: b}, b: {extends: a}, c: {extends: d}, d: {extends: c}": {"profiles.a.extends", "profiles.c.extends"},
		"a: {extends: none}, b: {extends: a}":                                {"profiles.a.extends"},
	} {
		var got []string
		for _, p := range policyProblems(t, "profiles: {"+body+"}") {
			got = append(got, p.Path)
		}
		assert.Equal(t, paths, got, body)
	}
}
