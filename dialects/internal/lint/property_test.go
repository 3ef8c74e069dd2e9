package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/manifests/schema"
)

// generator makes random schemas, and values that have a good chance to fit them.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// schema returns a schema. References are to a, b and c; c refers to b.
func (g generator) schema(depth int, references, merges bool) string {
	if references && g.IntN(4) == 0 {
		return fmt.Sprintf(`{"$ref":"#/$defs/%s"}`, g.pick("a", "b", "c"))
	}
	if merges && depth > 0 && g.IntN(6) == 0 {
		return fmt.Sprintf(`{"description":"d","allOf":[%s,%s]}`, g.schema(depth-1, references, merges), g.schema(depth-1, references, merges))
	}
	if depth == 0 || g.IntN(3) == 0 {
		return g.pick(`{"type":"integer","exclusiveMinimum":1}`, `{"type":"integer","exclusiveMaximum":2,"minimum":1}`, `{"type":"number","exclusiveMinimum":1}`,
			`{"const":"x"}`, `{"const":null}`, `{"type":"string","enum":["x","y"]}`, `{"type":["string","null"]}`, `{"type":["integer","null"],"exclusiveMinimum":0}`,
			`{"type":"string","const":"x"}`, `{"enum":[1,"x"]}`, `{}`, `{"not":{"type":"string"}}`, `true`)
	}
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, g.schema(depth-1, references, merges), g.schema(depth-1, references, merges))
	case 1:
		return fmt.Sprintf(`{"type":"array","items":%s}`, g.schema(depth-1, references, merges))
	}
	return g.object(depth, references, merges, "")
}

func (g generator) object(depth int, references, merges bool, more string) string {
	required := g.pick(`[]`, `["p"]`, `["q"]`, `["p","q"]`)
	return fmt.Sprintf(`{"type":"object","properties":{"p":%s,"q":%s},"required":%s%s}`,
		g.schema(depth-1, references, merges), g.schema(depth-1, references, merges), required, more)
}

func (g generator) value(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return g.pick(`0`, `1`, `2`, `3`, `1.5`, `"x"`, `"y"`, `null`, `true`)
	}
	switch g.IntN(5) {
	case 0:
		return "[" + g.value(depth-1) + "]"
	case 1:
		return fmt.Sprintf(`{"p":%s}`, g.value(depth-1))
	case 2:
		return fmt.Sprintf(`{"q":%s}`, g.value(depth-1))
	}
	return fmt.Sprintf(`{"p":%s,"q":%s}`, g.value(depth-1), g.value(depth-1))
}

func compiled(t *testing.T, source []byte) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(source)
	require.NoError(t, err, "%s", source)
	return s
}

// TestAdaptedSchemasMeanTheSame: what is said in other words fits the same values.
func TestAdaptedSchemasMeanTheSame(t *testing.T) {
	rules := Rules{
		Flat: refused("no $ref"), ObjectRoot: refused("not an object"),
		Keywords: map[string]Keyword{
			"allOf":            {Severity: dialects.Refused, Adapt: MergeAllOf, First: true},
			"const":            {Severity: dialects.Refused, Adapt: ConstToEnum},
			"exclusiveMinimum": {Severity: dialects.Refused, Adapt: Inclusive},
			"exclusiveMaximum": {Severity: dialects.Refused, Adapt: Inclusive},
		},
	}
	g := generator{rand.New(rand.NewPCG(3, 4))}
	fits, changed := 0, 0
	for range 600 {
		definitions := fmt.Sprintf(`,"$defs":{"a":%s,"b":%s,"c":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"boolean"}]}}`, g.schema(1, false, true), g.schema(1, false, true))
		source := g.object(3, true, true, definitions)
		adapted, findings, err := Check([]byte(source), rules, true)
		require.NoError(t, err)
		if len(findings) > 0 {
			changed++
		}
		before, after := compiled(t, []byte(source)), compiled(t, adapted)
		for range 20 {
			value := []byte(g.value(4))
			want := before.Validate(t.Context(), value) == nil
			if want {
				fits++
			}
			require.Equal(t, want, after.Validate(t.Context(), value) == nil, "%s\n%s\n%s", value, source, adapted)
		}
	}
	require.Greater(t, fits, 300, "enough of the values must fit")
	require.Greater(t, changed, 400, "enough of the schemas must be changed")
}

// TestStrictSchemasAskForNothingElse: arguments that fit the strict schema fit the tool's own
// once the nulls of what is optional are left out, as the executor's repair does. Objects within
// objects are not looked at: within unions, what is optional depends on the branch.
func TestStrictSchemasAskForNothingElse(t *testing.T) {
	rules := Rules{ObjectRoot: refused("not an object"), Closed: refused("open"), AllRequired: refused("optional")}
	g := generator{rand.New(rand.NewPCG(5, 6))}
	fits := 0
	for range 600 {
		source := []byte(g.object(1, false, false, ""))
		adapted, findings, err := Check(source, rules, true)
		require.NoError(t, err)
		require.False(t, Refuses(findings), lines(findings))
		own, strict := compiled(t, source), compiled(t, adapted)
		for range 30 {
			value := fmt.Sprintf(`{"p":%s,"q":%s}`, g.value(2), g.value(2))
			if strict.Validate(t.Context(), []byte(value)) != nil {
				continue
			}
			var arguments any
			require.NoError(t, json.Unmarshal([]byte(value), &arguments))
			fits++
			left, err := json.Marshal(withoutOptionalNulls(arguments, source))
			require.NoError(t, err)
			require.NoError(t, own.Validate(t.Context(), left), "%s\n%s\n%s", value, source, adapted)
		}
	}
	require.Greater(t, fits, 300, "enough of the values must fit")
}

func withoutOptionalNulls(arguments any, source []byte) any {
	root, _ := Parse(source)
	left := map[string]any{}
	for name, value := range arguments.(map[string]any) {
		if value != nil || root.Get("required").HasText(name) {
			left[name] = value
		}
	}
	return left
}
