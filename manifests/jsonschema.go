package manifests

import (
	_ "embed"
	"fmt"
	"strings"
)

// In the schemas, "$kinds" stands for what belongs to each kind of permission: as a member for the keys
// with their schemas, as an element for the requirement of each key.

//go:embed manifest.schema.json
var manifestSchema string

//go:embed policy.schema.json
var policySchema string

// JSONSchema returns a JSON Schema (draft 2020-12) of manifests, for editors. It knows
// every key and most rules; [Parse] knows them all. The caller may change the result.
func JSONSchema() []byte {
	var asked schemaKeys
	for _, k := range kinds() {
		if k.asks != nil {
			asked.add(k.asks.key, k.asks.schema)
		}
	}
	return []byte(asked.fill(manifestSchema))
}

// PolicyJSONSchema returns a JSON Schema (draft 2020-12) of policies, as [JSONSchema] does
// of manifests.
func PolicyJSONSchema() []byte {
	var given, taken schemaKeys
	for _, k := range kinds() {
		if k.gives != nil {
			given.add(k.gives.key, k.gives.schema)
		}
		if k.takes != nil {
			taken.add(k.takes.key, k.takes.schema)
		}
	}
	const deny = `"deny": {`
	grants, denials, _ := strings.Cut(policySchema, deny)
	return []byte(given.fill(grants) + deny + taken.fill(denials))
}

// schemaKeys are keys of an object with their schemas.
type schemaKeys struct{ members, required []string }

func (s *schemaKeys) add(key, schema string) {
	s.members = append(s.members, fmt.Sprintf("%q: %s", key, schema))
	s.required = append(s.required, fmt.Sprintf(`{"required": [%q]}`, key))
}

// fill puts the keys into a schema that has a place for them.
func (s *schemaKeys) fill(schema string) string {
	schema = strings.ReplaceAll(schema, `"$kinds": true`, strings.Join(s.members, ",\n"))
	return strings.ReplaceAll(schema, `"$kinds"`, strings.Join(s.required, ", "))
}
