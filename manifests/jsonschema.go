package manifests

import (
	_ "embed"
	"fmt"
	"strings"
)

// In the schemas, "$kinds" is a placeholder for the kinds of permissions. A member is replaced by
// their keys and schemas, an element by the requirements of their keys.

//go:embed manifest.schema.json
var manifestSchema string

//go:embed policy.schema.json
var policySchema string

// JSONSchema returns a JSON Schema (draft 2020-12) of manifests, for editors. It covers every key
// and most rules; [Parse] checks all of them. The caller may modify the result.
func JSONSchema() []byte {
	var asked schemaKeys
	for _, k := range kinds() {
		if k.asks != nil {
			asked.add(k.asks.key, k.asks.schema)
		}
	}
	return []byte(asked.fill(manifestSchema))
}

// PolicyJSONSchema returns a JSON Schema (draft 2020-12) of policies, as [JSONSchema] does for
// manifests.
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

// fill replaces the placeholders in a schema by the keys.
func (s *schemaKeys) fill(schema string) string {
	const place = `"$kinds": true`
	before, _, _ := strings.Cut(schema, place)
	indentation := before[strings.LastIndexByte(before, '\n'):]
	schema = strings.ReplaceAll(schema, place, strings.Join(s.members, ","+indentation))
	return strings.ReplaceAll(schema, `"$kinds"`, strings.Join(s.required, ", "))
}
