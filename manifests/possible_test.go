package manifests_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// problemsOf returns the problems of a manifest with these lines, without their file and position.
func problemsOf(t *testing.T, lines string) []string {
	t.Helper()
	_, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: a\ndescription: d\nmodule: {path: a.wasm}\n"+lines))
	var found []string
	if invalid, ok := errors.AsType[*manifests.Error](err); ok {
		for _, p := range invalid.Problems {
			found = append(found, p.Path+": "+p.Message)
		}
	} else {
		require.NoError(t, err)
	}
	return found
}

// TestImpossibleParameters checks that parameters that no call can satisfy are reported, and only if that is certain.
func TestImpossibleParameters(t *testing.T) {
	const closed = "type: object, additionalProperties: false, properties: {a: {type: string}}, "
	for parameters, want := range map[string]string{
		closed + `allOf: [{required: [zz]}]`:                     `allOf[0].required[0]: "zz" is required, but there is no such property`,
		closed + `anyOf: [{required: [y]}, {required: [a, zz]}]`: `anyOf[0].required[0]: "y" is required, but there is no such property|anyOf[1].required[1]: "zz" is required, but there is no such property`,
		closed + `anyOf: [{required: [a]}, {required: [zz]}]`:    ``,
		closed + `oneOf: [{allOf: [{required: [zz]}]}]`:          `oneOf[0].allOf[0].required[0]: "zz" is required, but there is no such property`,
		`properties: {a: {$id: x, additionalProperties: false, properties: {b: {}}, $ref: "#/$defs/c", $defs: {c: {required: [b]}}}}, $defs: {c: {required: [zz]}}`: ``,
		closed + `not: {required: [zz]}`:                           ``,
		closed + `if: {required: [zz]}, then: {required: [zz]}`:    ``,
		closed + `dependentRequired: {a: [q]}`:                     `dependentRequired.a[0]: "q" is required with a, but there is no such property`,
		closed + `$ref: "#/$defs/x", $defs: {x: {required: [zz]}}`: `$defs.x.required[0]: "zz" is required, but there is no such property`,
		closed + `$ref: "#/$defs/x", $defs: {x: {required: [a]}}`:  ``,
		closed + `$schema: "http://json-schema.org/draft-07/schema#", allOf: [{$ref: "#/$defs/x", required: [zz]}], $defs: {x: {}}`:                        ``,
		closed + `patternProperties: {"^z": {}}, required: [zz]`:                                                                                           ``,
		`type: object, properties: {a: {$ref: "#/$defs/x"}}, $defs: {x: {type: object, properties: {q: {}}, required: [qq], additionalProperties: false}}`: `$defs.x.required[0]: "qq" is required, but there is no such property`,
		`type: object, properties: {a: {}}, allOf: [{$ref: "#/$defs/x"}], $defs: {x: {required: [a]}}`:                                                     ``,
		`type: object, properties: {a: {type: integer, minimum: 5, maximum: 3}}`:                                                                           `properties.a.minimum: no number has both minimum 5 and maximum 3`,
		`type: object, properties: {a: {type: number, minimum: 3, maximum: 3.0}}`:                                                                          ``,
		`type: object, properties: {a: {type: number, minimum: 3, exclusiveMaximum: 3}}`:                                                                   `properties.a.minimum: no number has both minimum 3 and exclusiveMaximum 3`,
		`type: object, properties: {a: {type: string, minimum: 5, maximum: 3}}`:                                                                            ``,
		`type: object, properties: {a: {type: array, items: {type: string, minLength: 5, maxLength: 3}}}`:                                                  `properties.a.items.minLength: no text has both minLength 5 and maxLength 3`,
		`type: object, properties: {minimum: {type: integer, default: 5}, maximum: {type: integer, default: 3}}`:                                           ``,
	} {
		t.Run(parameters, func(t *testing.T) {
			var places []string
			for _, found := range problemsOf(t, "parameters: {"+parameters+"}") {
				places = append(places, strings.TrimPrefix(found, "parameters."))
			}
			assert.Equal(t, want, strings.Join(places, "|"))
		})
	}
}

// TestImpossibleResult checks that what no tool could answer is reported.
func TestImpossibleResult(t *testing.T) {
	assert.Equal(t, []string{`result.allOf[0].required[0]: "b" is required, but there is no such property`},
		problemsOf(t, "result: {type: object, properties: {a: {}}, additionalProperties: false, allOf: [{required: [b]}]}"))
}

// TestImpossibleAliasValues checks that an alias translates to values that its parameter accepts. A number out of range
// is none of them: arguments are clamped.
func TestImpossibleAliasValues(t *testing.T) {
	const parameters = "parameters: {type: object, properties: {mode: {type: string, enum: [fast, slow]}, count: {type: integer, maximum: 5}}}\nparameter_aliases: "
	assert.Equal(t, []string{`parameter_aliases.x.values.q: the parameter mode cannot be "zzz"`},
		problemsOf(t, parameters+"{x: {parameter: mode, values: {q: zzz, r: fast}}}"))
	assert.Empty(t, problemsOf(t, parameters+"{x: {parameter: count, values: {q: 100, r: '3'}}}"))
}

// TestAttackManyClosedObjects: many closed objects lead to the same long chain of references, of which 50 KB took four
// seconds. The number of schemas looked at is bounded for all of them together. The control is a short chain, whose end
// is found.
func TestAttackManyClosedObjects(t *testing.T) {
	parameters := func(chain, closed int) []byte {
		var b strings.Builder
		b.WriteString(`{"schema":"caisson/v1","name":"t","description":"Does it.","execution":"client","parameters":{"type":"object","$defs":{`)
		for i := range chain {
			fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"required":["x"]}},"properties":{"first":{}`, chain)
		for i := range closed {
			fmt.Fprintf(&b, `,"p%d":{"additionalProperties":false,"properties":{},"$ref":"#/$defs/d0"}`, i)
		}
		return []byte(b.String() + `}}}`)
	}
	for chain, found := range map[int]int{3: 60, 1000: 32} {
		_, err := manifests.Parse("", parameters(chain, 60))
		var invalid *manifests.Error
		require.ErrorAs(t, err, &invalid)
		assert.Len(t, invalid.Problems, found, "those whose end is found")
	}
}
