package manifests

import _ "embed"

//go:embed manifest.schema.json
var manifestSchema string

// JSONSchema returns a JSON Schema (draft 2020-12) of manifests, for editors. It knows
// every key and most rules; [Parse] knows them all. The caller may change the result.
func JSONSchema() []byte { return []byte(manifestSchema) }

//go:embed policy.schema.json
var policySchema string

// PolicyJSONSchema returns a JSON Schema (draft 2020-12) of policies, as [JSONSchema] does
// of manifests.
func PolicyJSONSchema() []byte { return []byte(policySchema) }
