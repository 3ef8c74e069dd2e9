package permission_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/permission/permissiontest"
)

func TestDecideNames(t *testing.T) {
	name := func(text string) permission.Rule { return permission.NewName("env", text) }
	line := func(random *rand.Rand) permissiontest.Line[string] {
		text := []string{"", "A", "a", "B", "C"}[random.IntN(5)]
		return permissiontest.Line[string]{Rule: name(text), Text: text, Matches: func(use string) bool { return text != "" && use == text }}
	}
	sample := permissiontest.Sample[string]{
		Request: line, Grant: line, Denial: line, Uses: []string{"A", "a", "B", "C", "D"},
		Matches: func(rule permission.Rule, use string) bool { return rule.Covers(name(use)) },
	}
	for seed := range uint64(20) {
		permissiontest.Check(t, sample, seed)
	}
}

func TestDecideSaysWhy(t *testing.T) {
	name := func(text, origin, digest string) permission.Statement {
		return permission.Statement{Rule: permission.NewName("env", text), Binding: permission.Binding{Origin: origin, SHA256: digest}}
	}
	var requests []permission.Rule
	for _, text := range []string{"A", "B", "C", "D"} {
		requests = append(requests, permission.NewName("env", text))
	}
	grants := []permission.Statement{name("A", "p:1", ""), name("B", "p:2", "other"), name("C", "p:3", ""), name("A", "p:4", "this"), {Rule: permission.NewName("tools", "D")}}
	denials := []permission.Statement{name("C", "p:9", ""), name("X", "p:10", "")}
	a := permission.Permit{Rule: permission.NewName("env", "A"), Grant: 0}
	again := permission.Permit{Rule: permission.NewName("env", "A"), Grant: 3}
	c := permission.Permit{Rule: permission.NewName("env", "C"), Grant: 2}
	assert.Equal(t, []permission.Outcome{
		{Granted: []permission.Permit{a, again}, Effective: []permission.Permit{a, again}},
		{Elsewhere: []int{1}},
		{Granted: []permission.Permit{c}, Effective: []permission.Permit{}, Taken: []int{0}, Cut: []int{0}},
		{},
	}, permission.Rules{Requests: requests, Grants: grants, Denials: denials, Module: "this"}.Decide())
	unknown := permission.Rules{Requests: requests[:1], Grants: grants}.Decide()
	assert.Equal(t, []permission.Permit{a}, unknown[0].Granted, "of a module that cannot be read, nothing is known")
	assert.Equal(t, []int{3}, unknown[0].Elsewhere)
	assert.Empty(t, permission.Rules{Grants: grants, Denials: denials, Module: "this"}.Decide())
}
