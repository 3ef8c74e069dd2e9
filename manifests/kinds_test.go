package manifests

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKindsAreWhole: each kind has all that belongs to a key, and each field that grants and denials
// have is some kind's.
func TestKindsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds() {
		assert.False(t, seen[string(k.name)], k.name)
		seen[string(k.name)] = true
		assert.Equal(t, k.manifest != "", k.request != nil, k.name)
		assert.Equal(t, k.grant != "", k.give != nil, k.name)
		assert.Equal(t, k.grant != "", k.hand != nil, k.name)
		assert.Equal(t, k.grant != "", k.given != nil, "%s: what can be granted can be suggested", k.name)
		assert.Equal(t, k.deny != "", k.take != nil, k.name)
		assert.Equal(t, k.grant != "", k.deny != "", "%s: what can be granted can be denied", k.name)
	}
}

// TestKindsHandOverWhatTheyAreGiven: a grant's elements reach the tool with the grant's binding. A list
// of Grants that no row of the table hands over would be lost.
func TestKindsHandOverWhatTheyAreGiven(t *testing.T) {
	grant := Grant{Binding: Binding{Origin: "caisson.yaml:1", SHA256: "ab"}, Tools: []string{"*"}}
	value := reflect.ValueOf(&grant).Elem()
	lists := 0
	for i := range value.NumField() {
		element := value.Type().Field(i).Type
		if element.Kind() != reflect.Slice || element.Elem().Kind() != reflect.Struct {
			continue
		}
		lists++
		value.Field(i).Set(reflect.MakeSlice(element, 1, 1))
	}
	require.NotZero(t, lists)
	given := reflect.ValueOf((&Policy{Grants: []Grant{grant}}).For("a", ""))
	handed := 0
	for i := range given.NumField() {
		if list := given.Field(i); list.Kind() == reflect.Slice && list.Len() == 1 {
			handed++
			assert.Equal(t, grant.Binding, list.Index(0).FieldByName("Binding").Interface(), given.Type().Field(i).Name)
		}
	}
	assert.Equal(t, lists, handed)
}

// TestKindsAreInTheSchemas: editors know the keys that the readers know.
func TestKindsAreInTheSchemas(t *testing.T) {
	type properties struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var manifest struct {
		Properties struct {
			Permissions properties `json:"permissions"`
		} `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(JSONSchema(), &manifest))
	r := &reader{}
	assert.ElementsMatch(t, keysOf(r.requestFields(&Permissions{})), slices.Collect(maps.Keys(manifest.Properties.Permissions.Properties)))
}
