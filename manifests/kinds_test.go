package manifests

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

// TestKindsAreWhole: each kind that can be granted can be denied, and no two have the same name.
func TestKindsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds() {
		assert.False(t, seen[string(k.name)], k.name)
		seen[string(k.name)] = true
		assert.Equal(t, k.gives != nil, k.takes != nil, k.name)
	}
}

// TestNoKindIsForgotten: each list of a grant is some kind's, which hands it over with the grant's binding
// and says it, and so is each field of a denial.
func TestNoKindIsForgotten(t *testing.T) {
	grant := Grant{Binding: Binding{Origin: "caisson.yaml:1", SHA256: "ab"}, Tools: []string{"*"}}
	value := reflect.ValueOf(&grant.Grants).Elem()
	lists := 0
	for i := range value.NumField() {
		element := value.Type().Field(i).Type
		if element.Kind() != reflect.Slice || element.Elem().Kind() != reflect.Struct {
			continue
		}
		if name := value.Type().Field(i).Name; name == "Deny" || name == "Approved" { // a policy has lists for these
			continue
		}
		lists++
		value.Field(i).Set(reflect.MakeSlice(element, 1, 1))
	}
	require.NotZero(t, lists)
	grants := (&Policy{Grants: []Grant{grant}}).For("a", "")
	given, handed := reflect.ValueOf(grants), 0
	for i := range given.NumField() {
		if list := given.Field(i); list.Kind() == reflect.Slice && list.Len() == 1 {
			handed++
			assert.Equal(t, grant.Binding, list.Index(0).FieldByName("Binding").Interface(), given.Type().Field(i).Name)
		}
	}
	assert.Equal(t, lists, handed)
	said := grants.Elements()
	require.Len(t, said, lists)
	for _, s := range said {
		assert.Equal(t, grant.Binding, s.Binding, s.Key)
	}
	denial := reflect.TypeFor[Deny]()
	for i := range denial.NumField() {
		var deny Deny
		switch field := reflect.ValueOf(&deny).Elem().Field(i); {
		case denial.Field(i).Name == "Origin":
			continue
		case field.Kind() == reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			field.SetString("A")
		}
		assert.NotEmpty(t, deny.Element().Kind, denial.Field(i).Name)
	}
	assert.False(t, Deny{}.Element().Concerns(&Manifest{}))
}

// TestElementsConcernWhoAsks, by what their rules have in common and not by how they are spelt; what
// cannot be read may be about anything.
func TestElementsConcernWhoAsks(t *testing.T) {
	m := &Manifest{Context: []string{"project_id"}, Permissions: Permissions{
		Files: []FilePermission{{Path: permission.NewGuestPath("/project/a"), Access: AccessRead}}, Network: []NetworkPermission{{Host: "*.example.com"}},
		Secrets: []SecretPermission{{Name: "KEY", Host: "api.example.com"}}, Env: []string{"LANG"}, Tools: []string{"other"},
	}}
	concern := func(g Grants) []string {
		var keys []string
		for _, s := range g.Elements() {
			if s.Concerns(m) {
				keys = append(keys, s.Key)
			}
		}
		return keys
	}
	assert.Equal(t, []string{"files[1]", "network[0]", "network[1]", "network[3]", "secrets[0]", "secrets[3]", "context[1]", "env.LANG", "calls[0]"}, concern(Grants{
		Files: []FileGrant{{Path: permission.NewGuestPath("/project")}, {Path: permission.NewGuestPath("/project/a")}},
		Network: []NetworkGrant{
			{NetworkPermission: NetworkPermission{Host: "API.Example.com"}}, {NetworkPermission: NetworkPermission{Host: "*"}},
			{NetworkPermission: NetworkPermission{Host: "example.com"}}, {NetworkPermission: NetworkPermission{Host: "a b"}},
		},
		Secrets: []SecretGrant{{Name: "KEY", Host: "API.example.com"}, {Name: "KEY", Host: "example.com"}, {Name: "OTHER", Host: "api.example.com"}, {Name: "KEY", Host: "?"}},
		Context: []NameGrant{{Name: "user"}, {Name: "project_id"}}, Env: []EnvGrant{{Name: "LANG"}, {Name: "HOME"}}, Calls: []NameGrant{{Name: "other"}, {Name: "Other"}},
	}))
	for _, c := range []struct {
		deny  Deny
		about bool
	}{
		{Deny{Files: &FilePermission{Path: permission.NewGuestPath("/project")}}, true}, {Deny{Files: &FilePermission{Path: permission.NewGuestPath("/project/a/b")}}, false}, {Deny{Files: &FilePermission{Path: permission.NewGuestPath("x")}}, true},
		{Deny{Network: &NetworkDeny{}}, true}, {Deny{Network: &NetworkDeny{Host: "API.example.com"}}, true}, {Deny{Network: &NetworkDeny{Host: "example.org"}}, false},
		{Deny{Secret: "KEY"}, true}, {Deny{Secret: "OTHER"}, false}, {Deny{Context: "project_id"}, true}, {Deny{Env: "HOME"}, false}, {Deny{Call: "other"}, true},
	} {
		assert.Equal(t, c.about, c.deny.Element().Concerns(m), "%+v", c.deny)
	}
}

// TestKindsAreInTheSchemas: editors know the keys that the readers know.
func TestKindsAreInTheSchemas(t *testing.T) {
	for _, schema := range [][]byte{JSONSchema(), PolicyJSONSchema()} {
		require.True(t, json.Valid(schema))
		require.NotContains(t, string(schema), "$kinds")
	}
	var policy struct {
		Properties struct {
			Grants struct {
				Items struct{ Properties map[string]any }
			}
			Deny struct {
				Items struct{ OneOf []struct{ Required []string } }
			}
		}
	}
	require.NoError(t, json.Unmarshal(PolicyJSONSchema(), &policy))
	given := slices.Sorted(maps.Keys(policy.Properties.Grants.Items.Properties))
	var taken []string
	for _, one := range policy.Properties.Deny.Items.OneOf {
		taken = append(taken, one.Required...)
	}
	r := &reader{}
	of := append(keysOf(r.grantFields(&Grants{})), "sha256", "source", "tools")
	slices.Sort(of)
	assert.Equal(t, of, given)
	assert.Equal(t, keysOf(r.denyFields(&Deny{})), taken)
}
