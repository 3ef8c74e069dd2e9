package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/internal/exact"
	"github.com/caisson-run/caisson/manifests/schema"
)

// generator makes random schemas, and values that have a good chance to fit them.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) schema() string {
	leaf := func() string {
		return g.pick(`{"type":"integer","exclusiveMinimum":1}`, `{"const":"x"}`, `{"const":null}`, `{"type":"string","enum":["x","y"]}`,
			`{"type":["string","null"]}`, `{"type":"string","const":"x"}`, `{"enum":[1,"x"]}`, `{}`, `{"not":{"type":"string"}}`, `true`)
	}
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, leaf(), leaf())
	case 1:
		return fmt.Sprintf(`{"type":"array","items":%s}`, leaf())
	}
	return leaf()
}

func (g generator) value() string {
	return g.pick(`0`, `1`, `2`, `1.5`, `"x"`, `"y"`, `null`, `true`, `[1]`, `["x"]`, `[null]`, `{"p":1}`)
}

// TestStrictSchemasAskForNothingElse: arguments that fit the strict schema fit the tool's own
// once the nulls of what is optional are left out, as the executor's repair does. Objects within
// objects are not looked at: within unions, what is optional depends on the branch.
func TestStrictSchemasAskForNothingElse(t *testing.T) {
	rules := Rules{ObjectRoot: refused("not an object"), Closed: refused("open"), AllRequired: refused("optional")}
	compiled := func(source []byte) *schema.Schema {
		s, err := schema.Compile(source)
		require.NoError(t, err, "%s", source)
		return s
	}
	g := generator{rand.New(rand.NewPCG(5, 6))}
	fits := 0
	for range 600 {
		source := fmt.Appendf(nil, `{"type":"object","properties":{"p":%s,"q":%s},"required":%s}`, g.schema(), g.schema(), g.pick(`[]`, `["p"]`, `["q"]`, `["p","q"]`))
		changed, findings, err := Check(source, rules)
		require.NoError(t, err)
		require.Empty(t, unheld(findings), lines(findings))
		read, err := exact.Parse(source, MaxDepth, MaxValues)
		require.NoError(t, err)
		own, strict := compiled(source), compiled(changed)
		for range 30 {
			value := fmt.Sprintf(`{"p":%s,"q":%s}`, g.value(), g.value())
			if strict.Validate(t.Context(), []byte(value)) != nil {
				continue
			}
			fits++
			var arguments map[string]any
			require.NoError(t, json.Unmarshal([]byte(value), &arguments))
			for name, value := range arguments {
				if value == nil && !read.Get("required").HasText(name) {
					delete(arguments, name)
				}
			}
			left, err := json.Marshal(arguments)
			require.NoError(t, err)
			require.NoError(t, own.Validate(t.Context(), left), "%s\n%s\n%s", value, source, changed)
		}
	}
	require.Greater(t, fits, 300, "enough of the values must fit")
}
