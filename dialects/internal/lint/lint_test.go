package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

func refused(message string) Keyword {
	return Keyword{Severity: dialects.Refused, Message: message, Fix: "fix"}
}

// strict is much like what providers ask for in their strict modes.
func strict() Rules {
	return Rules{
		ObjectRoot: refused("not an object"), Closed: refused("open"), AllRequired: refused("optional"), NotRecursive: refused("recursive"),
		Property: NameRule{Most: 5},
		Root:     map[string]Keyword{"anyOf": refused("no anyOf")},
		Keywords: map[string]Keyword{
			"format": {Severity: dialects.Weakened, Message: "ignored", Taken: OneOf("date"), Dropped: true},
			"oneOf":  {Severity: dialects.Refused, Message: "no oneOf", Inside: true},
			"not":    refused("no not"),
			"$ref":   refused("no $ref").Only(Internal),
			"enum":   refused("no enum").Only(Each(func(v *Value) bool { return v.Literal() != "" })),
		},
	}
}

func lines(findings []dialects.Finding) string {
	var all []string
	for _, f := range findings {
		adapted := ""
		if f.Adapted {
			adapted = " adapted"
		}
		all = append(all, fmt.Sprintf("%s %s%s", f.Path, f.Severity, adapted))
	}
	return strings.Join(all, "\n")
}

func TestCheck(t *testing.T) {
	object := func(properties, rest string) string {
		return `{"type":"object","properties":{` + properties + `}` + rest + `}`
	}
	closed := func(properties, required string) string {
		return object(properties, `,"required":[`+required+`],"additionalProperties":false`)
	}
	for name, c := range map[string]struct {
		rules       Rules
		schema      string
		want, found string // an empty want is the schema unchanged
	}{
		"nothing":    {strict(), ``, `{"type":"object","properties":{},"additionalProperties":false}`, "additionalProperties refused adapted"},
		"null":       {Rules{}, ` null `, `{"type":"object","properties":{}}`, ""},
		"no rules":   {Rules{}, `{"type":"object", "x-y":1.50}`, ``, ""},
		"not object": {strict(), `{"type":"string","anyOf":[{}]}`, ``, "type refused\nproperties refused\nanyOf refused"},
		"optional": {strict(), object(`"a":{"type":"string","enum":["x"]},"b":{"type":"integer"}`, `,"required":["b"]`),
			object(`"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":"integer"}`, `,"required":["a","b"],"additionalProperties":false`),
			"additionalProperties refused adapted\nrequired refused adapted"},
		"required without a schema": {strict(), closed(`"a":{}`, `"z"`), ``, "required refused"},
		"nested": {strict(), closed(`"o":{"type":"object","properties":{"f":{"type":"string","format":"uri"}}}`, `"o"`),
			closed(`"o":{"type":"object","properties":{"f":{"type":["string","null"]}},"additionalProperties":false,"required":["f"]}`, `"o"`),
			"properties.o.additionalProperties refused adapted\nproperties.o.required refused adapted\nproperties.o.properties.f.format weakened adapted"},
		"maps": {strict(), closed(`"m":{"type":"object","additionalProperties":{"format":"uri"}},"n":{"type":"object"},"f":{"format":"date"}`, `"m","n","f"`),
			closed(`"m":{"type":"object","additionalProperties":{}},"n":{"type":"object"},"f":{"format":"date"}`, `"m","n","f"`),
			"properties.m.additionalProperties refused\nproperties.m.additionalProperties.format weakened adapted\nproperties.n.additionalProperties refused"},
		"unions": {strict(), closed(`"u":{"oneOf":[{"format":"x"}]},"n":{"not":{"oneOf":[]}}`, `"u","n"`), closed(`"u":{"oneOf":[{}]},"n":{"not":{"oneOf":[]}}`, `"u","n"`),
			"properties.u.oneOf refused\nproperties.u.oneOf[0].format weakened adapted\nproperties.n.not refused"},
		"taken in part": {strict(), closed(`"a":{"$ref":"https://example.com/x"},"b":{"enum":[1,[]]},"c":{"enum":1}`, `"a","b","c"`), ``,
			"properties.a.$ref refused\nproperties.b.enum refused\nproperties.c.enum refused"},
		"names":                       {strict(), closed(`"a\nlong":{}`, `"a\nlong"`), ``, "properties.a\ufffdlong refused"},
		"recursive":                   {strict(), object(`"n":{"$ref":"#/$defs/a~1b%22"}`, `,"required":["n"],"additionalProperties":false,"$defs":{"a/b\"":{"anyOf":[{"$ref":"#/$defs/a~1b%22/anyOf/0"}]}}`), ``, "$defs.a~1b%22.anyOf.0 refused"},
		"recursive, by an anchor":     {strict(), object(`"n":{"$anchor":"n","anyOf":[{"$ref":"#n"}]}`, `,"required":["n"],"additionalProperties":false`), ``, "#n refused"},
		"recursive, by an old anchor": {strict(), object(`"n":{"$id":"#n","anyOf":[{"$ref":"#n"}]}`, `,"required":["n"],"additionalProperties":false`), ``, "#n refused"},
		"twice, no cycle":             {strict(), object(`"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"},"c":{"$ref":"#/$defs/y/0"}`, `,"required":["a","b","c"],"additionalProperties":false,"$defs":{"x":{}}`), ``, ""},
		"limits": {Rules{Limits: Limits{Depth: 1, Properties: 1, Enum: 1, Text: 3}}, object(`"ab":{"type":"object","enum":["c","d"]},"b":{}`, ``), ``,
			" refused\n refused\n refused\n refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, findings := noerr.Get2(Check(json.RawMessage(c.schema), c.rules))(t)
			if c.want == "" {
				c.want = c.schema
			}
			assert.Equal(t, c.want, string(got))
			assert.Equal(t, c.found, lines(findings))
			again, left := noerr.Get2(Check(got, c.rules))(t)
			assert.Equal(t, string(got), string(again), "what was changed is taken as it is")
			for _, f := range left {
				assert.False(t, f.Adapted, "%+v", f)
			}
		})
	}
}

func TestOrNull(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: ``, `{"type":["null","string"]}`: ``, `{"enum":[1,null]}`: ``, `{"description":"D","anyOf":[{"type":"null"}]}`: ``,
		`true`: `{"anyOf":[true,{"type":"null"}]}`, `{"const":"a"}`: `{"enum":["a",null]}`,
		`{"$ref":"#/$defs/a"}`:                             `{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}`,
		`{"anyOf":[{"type":"string"}],"description":"D"}`:  `{"anyOf":[{"type":"string"},{"type":"null"}],"description":"D"}`,
		`{"type":"object","anyOf":[{}],"description":"D"}`: `{"anyOf":[{"type":"object","anyOf":[{}],"description":"D"},{"type":"null"}]}`,
	} {
		value := noerr.Get(Parse([]byte(schema), 9, 99))(t)
		if want == "" {
			want = schema
		}
		assert.Equal(t, want, string(orNull(value).Append(nil)))
	}
}

func TestNames(t *testing.T) {
	rule := NameRule{Most: 5, Extra: "_-", First: "_"}
	for name, fault := range map[string]string{
		"a_b-1": "", "_a": "", "": "is empty", "abcdef": "has 6 bytes, more than 5", "a.b": `contains '.'`, "é": `contains 'é'`, "1a": `begins with '1'`,
	} {
		_, findings := noerr.Get2(Offer(wire.Reader{}, []tool.Definition{{Name: name}}, rule, func(*tool.Definition) (any, []dialects.Finding, error) { return nil, nil, nil }))(t)
		if fault == "" {
			assert.Empty(t, findings, name)
			continue
		}
		require.Len(t, findings, 1, name)
		assert.Equal(t, "the request is refused: the name "+fault, findings[0].Message)
		assert.Equal(t, "offer the tool under another name: ASCII letters, digits and _ -, a letter or one of _ at the beginning, at most 5 bytes", findings[0].Fix)
	}
}

func TestCheckIsBounded(t *testing.T) {
	many := `{"properties":{"a":{}`
	for i := range MaxFindings + 1 {
		many += fmt.Sprintf(`,"p%d":{"not":1}`, i)
	}
	for name, c := range map[string]struct{ schema, fault string }{
		"not JSON":    {`{`, "unexpected end"},
		"a list":      {`[]`, "must be a JSON object"},
		"deep":        {strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000), "nested deeper"},
		"large":       {`{"enum":[` + strings.Repeat("1,", MaxValues) + `1]}`, "more than 20000 values"},
		"twice":       {`{"a":1,"a":2}`, `"a" occurs twice`},
		"two":         {`{} {}`, "after top-level value"},
		"much to say": {many + `}}`, "more than 4096 findings"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, _, err := Check([]byte(c.schema), strict())
			var refusal *dialects.Error
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, "definitions", refusal.Op)
			assert.ErrorContains(t, err, c.fault)
			assert.Less(t, time.Since(start), 5*time.Second)
		})
	}
}

// FuzzCheck: a changed schema is JSON, is the same each time, and checking it again finds nothing new.
func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"format":"uri"}},"required":["a"]}`)
	f.Add(`{"$ref":"#","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"oneOf":[true,{"const":1}]}}}`)
	f.Add(`{"items":[{"not":{}}],"type":"object","patternProperties":{"a":{"exclusiveMinimum":-0}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		for _, rules := range []Rules{strict(), {}} {
			changed, findings, err := Check([]byte(schema), rules)
			if err != nil {
				require.Nil(t, changed)
				continue
			}
			require.True(t, json.Valid(changed))
			again, same := noerr.Get2(Check([]byte(schema), rules))(t)
			require.Equal(t, string(changed), string(again))
			require.Equal(t, findings, same)
			if _, left, err := Check(changed, rules); err == nil && len(unheld(findings)) == 0 {
				require.Empty(t, unheld(left), "%s\n%s\n%s", schema, changed, lines(left))
			}
		}
	})
}

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
// once the nulls of optional properties are removed, as the executor's repair does. Objects within
// objects are not looked at: within unions, the optional properties depend on the branch.
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
		changed, findings := noerr.Get2(Check(source, rules))(t)
		require.Empty(t, unheld(findings), lines(findings))
		read := noerr.Get(Parse(source, MaxDepth, MaxValues))(t)
		own, strict := compiled(source), compiled(changed)
		for range 30 {
			value := fmt.Sprintf(`{"p":%s,"q":%s}`, g.value(), g.value())
			if strict.Validate(t.Context(), []byte(value)) != nil {
				continue
			}
			fits++
			arguments := noerr.Decode[map[string]any](t, []byte(value))
			for name, value := range arguments {
				if value == nil && !read.Get("required").HasText(name) {
					delete(arguments, name)
				}
			}
			left := noerr.Get(json.Marshal(arguments))(t)
			require.NoError(t, own.Validate(t.Context(), left), "%s\n%s\n%s", value, source, changed)
		}
	}
	require.Greater(t, fits, 300, "enough of the values must fit")
}
