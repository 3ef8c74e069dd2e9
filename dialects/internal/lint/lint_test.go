package lint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
)

func refused(message string) Keyword {
	return Keyword{Severity: dialects.Refused, Message: message, Fix: "fix"}
}

// strict is much like what providers ask for in their strict modes.
func strict() Rules {
	return Rules{
		ObjectRoot: refused("not an object"), Closed: refused("open"), AllRequired: refused("optional"),
		Keywords: map[string]Keyword{
			"format": {Severity: dialects.Weakened, Message: "ignored", Taken: OneOf("date"), Adapt: Describe},
			"oneOf":  {Severity: dialects.Refused, Message: "no oneOf", Adapt: RenameTo("anyOf"), Inside: true},
			"allOf":  {Severity: dialects.Refused, Message: "no allOf", Adapt: MergeAllOf, First: true},
			"not":    refused("no not"),
		},
	}
}

// openapi is much like a dialect without references and types in lists.
func openapi() Rules {
	rules := Rules{
		Flat: refused("no $ref"), NotRecursive: refused("recursive"),
		Booleans: Keyword{Severity: dialects.Refused, Message: "no booleans"},
		Others:   Keyword{Severity: dialects.Weakened, Message: "unknown", Adapt: Remove},
		Keywords: map[string]Keyword{
			"type":             {Severity: dialects.Refused, Taken: OneType, Adapt: Nullable},
			"const":            {Severity: dialects.Refused, Adapt: ConstToEnum},
			"exclusiveMinimum": {Severity: dialects.Refused, Adapt: FirstOf(Inclusive, Describe)},
			"exclusiveMaximum": {Severity: dialects.Refused, Adapt: FirstOf(Inclusive, Describe)},
		},
	}
	for _, keyword := range []string{"properties", "items", "description", "enum", "anyOf", "required", "minimum", "maximum", "title", "default"} {
		rules.Keywords[keyword] = Keyword{}
	}
	return rules
}

func lines(findings []dialects.Finding) string {
	var all []string
	for _, f := range findings {
		adapted := ""
		if f.Adapted {
			adapted = " adapted"
		}
		all = append(all, fmt.Sprintf("%s %s %s%s", f.Path, f.Severity, f.Keyword, adapted))
	}
	return strings.Join(all, "\n")
}

func TestCheckAdapts(t *testing.T) {
	for _, c := range []struct {
		name        string
		rules       Rules
		schema      string
		want, found string
	}{
		{"nothing", strict(), ``, `{"type":"object","properties":{},"additionalProperties":false}`, "additionalProperties refused additionalProperties adapted"},
		{"null", Rules{}, ` null `, `{"type":"object","properties":{}}`, ""},
		{"no rules", Rules{}, `{"type":"object", "x-y":1.50}`, `{"type":"object","x-y":1.50}`, ""},
		{"root", strict(), `{"properties":{}, "type":["object","null"],"additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, "type refused type adapted"},
		{"root of another type", strict(), `{"type":"string"}`, `{"type":"string","properties":{},"additionalProperties":false}`,
			"type refused type\nproperties refused properties adapted\nadditionalProperties refused additionalProperties adapted"},
		{"optional", strict(), `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`,
			"required refused required adapted"},
		{"required without a schema", strict(), `{"type":"object","properties":{"a":{}},"required":["z"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{}},"required":["z"],"additionalProperties":false}`, "required refused required"},
		{"nested", strict(), `{"type":"object","properties":{"o":{"type":"object","properties":{"f":{"type":"string","format":"uri","description":"D"}}}},"required":["o"],"additionalProperties":false}`,
			`{"type":"object","properties":{"o":{"type":"object","properties":{"f":{"type":["string","null"],"description":"D (format: uri)"}},"additionalProperties":false,"required":["f"]}},"required":["o"],"additionalProperties":false}`,
			"properties.o.additionalProperties refused additionalProperties adapted\nproperties.o.required refused required adapted\nproperties.o.properties.f.format weakened format adapted"},
		{"maps", strict(), `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","format":"uri"}},"n":{"type":"object"},"f":{"format":"date"}},"required":["m","n","f"],"additionalProperties":false}`,
			`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","description":"(format: uri)"}},"n":{"type":"object"},"f":{"format":"date"}},"required":["m","n","f"],"additionalProperties":false}`,
			"properties.m.additionalProperties refused additionalProperties\nproperties.m.additionalProperties.format weakened format adapted\nproperties.n.additionalProperties refused additionalProperties"},
		{"unions", strict(), `{"type":"object","properties":{"u":{"description":"D","oneOf":[{"type":"string","format":"x"},{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]}]},"n":{"not":{"oneOf":[]}}},"required":["n"],"additionalProperties":false}`,
			`{"type":"object","properties":{"u":{"description":"D","anyOf":[{"type":"string","description":"(format: x)"},{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"additionalProperties":false},{"type":"null"}]},"n":{"not":{"oneOf":[]}}},"required":["u","n"],"additionalProperties":false}`,
			"required refused required adapted\nproperties.u.oneOf refused oneOf adapted\nproperties.u.oneOf[0].format weakened format adapted\nproperties.u.oneOf[1].additionalProperties refused additionalProperties adapted\nproperties.n.not refused not"},
		{"all of", strict(), `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`,
			"properties refused properties adapted\nallOf refused allOf adapted\nadditionalProperties refused additionalProperties adapted"},
		{"all of, contradicting", strict(), `{"type":"object","properties":{"a":{"allOf":[{"minimum":1},{"minimum":2}]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"allOf":[{"minimum":1},{"minimum":2}]}},"required":["a"],"additionalProperties":false}`, "properties.a.allOf refused allOf"},
		{"types", openapi(), `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":["string","integer"]},"c":{"const":"k"},"d":{"type":["string","integer"],"minimum":1}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"nullable":true},"b":{"anyOf":[{"type":"string"},{"type":"integer"}]},"c":{"enum":["k"]},"d":{"type":["string","integer"],"minimum":1}}}`,
			"properties.a.type refused type adapted\nproperties.b.type refused type adapted\nproperties.c.const refused const adapted\nproperties.d.type refused type"},
		{"bounds", openapi(), `{"properties":{"a":{"type":"integer","exclusiveMinimum":3},"b":{"type":"number","exclusiveMinimum":3.50},"c":{"type":"integer","exclusiveMaximum":3}}}`,
			`{"properties":{"a":{"type":"integer","minimum":4},"b":{"type":"number","description":"(exclusiveMinimum: 3.50)"},"c":{"type":"integer","maximum":2}}}`,
			"properties.a.exclusiveMinimum refused exclusiveMinimum adapted\nproperties.b.exclusiveMinimum refused exclusiveMinimum adapted\nproperties.c.exclusiveMaximum refused exclusiveMaximum adapted"},
		{"others", openapi(), `{"$schema":"x","properties":{"a":{"if":{"if":true}}}}`, `{"properties":{"a":{}}}`, "$schema weakened $schema adapted\nproperties.a.if weakened if adapted"},
		{"booleans", openapi(), `{"properties":{"a":true}}`, `{"properties":{"a":true}}`, "properties.a refused true"},
		{"references", openapi(), `{"properties":{"a":{"$ref":"#/$defs/a~1b","description":"mine"},"b":{"$ref":"#/$defs/b%22"}},"$defs":{"a/b":{"type":"string","description":"theirs"},"b\"":{"items":{"$ref":"#/$defs/a~1b"}}}}`,
			`{"properties":{"a":{"type":"string","description":"mine"},"b":{"items":{"type":"string","description":"theirs"}}}}`,
			"properties.a.$ref refused $ref adapted\nproperties.b.$ref refused $ref adapted\nproperties.b.items.$ref refused $ref adapted"},
		{"recursive", openapi(), `{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}}}}}`,
			`{"properties":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}}}},"$defs":{"n":{"properties":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}}}}}}}`,
			"properties.n.$ref refused $ref adapted\nproperties.n.properties.n.$ref refused $ref\n$defs.n.properties.n.$ref refused $ref adapted\n$defs.n.properties.n.properties.n.$ref refused $ref\n$defs.n refused $ref"},
		{"references elsewhere", openapi(), `{"properties":{"a":{"$ref":"https://example.com/x"},"b":{"$ref":"#nowhere"},"c":{"$ref":"#/enum/0"}},"enum":[1]}`,
			`{"properties":{"a":{"$ref":"https://example.com/x"},"b":{"$ref":"#nowhere"},"c":{"$ref":"#/enum/0"}},"enum":[1]}`,
			"properties.a.$ref refused $ref\nproperties.b.$ref refused $ref\nproperties.c.$ref refused $ref"},
		{"a reference that more is said beside", openapi(), `{"properties":{"a":{"$ref":"#/$defs/a","minimum":2}},"$defs":{"a":{"minimum":1}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/a","minimum":2}},"$defs":{"a":{"minimum":1}}}`, "properties.a.$ref refused $ref"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, findings, err := Check(json.RawMessage(c.schema), c.rules, true)
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
			assert.Equal(t, c.found, lines(findings))

			// What was adapted is taken as it is; what was not is found again.
			again, left, err := Check(got, c.rules, true)
			require.NoError(t, err)
			assert.Equal(t, Refuses(findings), Refuses(left), lines(left))
			if !Refuses(findings) {
				assert.Equal(t, string(got), string(again))
			}
		})
	}
}

func TestCheckOnlyLooks(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string","format":"uri"}}}`
	got, findings, err := Check([]byte(" "+schema+"\n"), strict(), false)
	require.NoError(t, err)
	assert.Equal(t, schema, string(got))
	assert.Equal(t, "additionalProperties refused additionalProperties\nrequired refused required\nproperties.a.format weakened format", lines(findings))
	assert.Equal(t, `optional (not required: "a")`, findings[1].Message)
	assert.True(t, Refuses(findings))
	assert.False(t, Refuses(findings[2:]))
}

func TestOrNull(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`:                                     `{}`,
		`true`:                                   `true`,
		`{"type":["null","string"]}`:             `{"type":["null","string"]}`,
		`{"const":"a"}`:                          `{"enum":["a",null]}`,
		`{"enum":[1,null]}`:                      `{"enum":[1,null]}`,
		`{"$ref":"#/$defs/a","description":"D"}`: `{"anyOf":[{"$ref":"#/$defs/a","description":"D"},{"type":"null"}]}`,
		`{"anyOf":[{"type":"null"}]}`:            `{"anyOf":[{"type":"null"}]}`,
		`{"anyOf":[{"type":["null"],"enum":[1]}]}`:         `{"anyOf":[{"type":["null"],"enum":[1]},{"type":"null"}]}`,
		`{"type":"object","anyOf":[{}],"description":"D"}`: `{"description":"D","anyOf":[{"type":"object","anyOf":[{}]},{"type":"null"}]}`,
	} {
		value, err := Parse([]byte(schema))
		require.NoError(t, err)
		assert.Equal(t, want, string(OrNull(value).JSON()))
	}
}

func TestName(t *testing.T) {
	rules := Rules{Name: NameRule{Most: 5, Extra: "_-", First: "_"}}
	for name, fault := range map[string]string{
		"a_b-1": "", "_a": "", "": "is empty", "abcdef": "has 6 bytes, more than 5", "a.b": `holds '.'`, "é": `holds 'é'`, "1a": `begins with '1'`,
	} {
		findings := Name(name, rules)
		if fault == "" {
			assert.Empty(t, findings, name)
			continue
		}
		require.Len(t, findings, 1, name)
		assert.Equal(t, "the request is refused: the name "+fault, findings[0].Message)
		assert.Equal(t, "offer the tool under another name: ASCII letters, digits and _ -, a letter or one of _ at the beginning, at most 5 bytes", findings[0].Fix)
	}
	assert.Empty(t, Name("", Rules{}))
	_, findings, err := Check([]byte(`{"properties":{"a b":{}}}`), Rules{Property: rules.Name}, true)
	require.NoError(t, err)
	assert.Equal(t, "properties.a b refused properties", lines(findings))
}

func TestLimits(t *testing.T) {
	const schema = `{"type":"object","properties":{"ab":{"type":"object","properties":{"c":{"enum":["de","f"]}}}}}`
	rules := Rules{Limits: Limits{Depth: 2, Properties: 2, Enum: 2, Text: 6}}
	_, findings, err := Check([]byte(schema), rules, true)
	require.NoError(t, err)
	assert.Empty(t, findings)
	_, findings, err = Check([]byte(schema), Rules{Limits: Limits{1, 1, 1, 5}}, true)
	require.NoError(t, err)
	assert.Equal(t, " refused properties\n refused properties\n refused enum\n refused enum", lines(findings))
	assert.Contains(t, findings[0].Message, "nested 2 levels deep, where 1 are allowed")
}

func TestCheckIsBounded(t *testing.T) {
	doubling := &strings.Builder{}
	doubling.WriteString(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 60 {
		fmt.Fprintf(doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d60":{}}}`)
	many := `{"properties":{"a":{}`
	for i := range MaxFindings + 1 {
		many += fmt.Sprintf(`,"p%d":{"x":1}`, i)
	}
	for name, c := range map[string]struct{ schema, fault string }{
		"not JSON":    {`{`, "unexpected EOF"},
		"a list":      {`[]`, "must be a JSON object"},
		"deep":        {strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000), "nested deeper"},
		"large":       {`{"enum":[` + strings.Repeat("1,", MaxValues) + `1]}`, "more than 20000 values"},
		"twice":       {`{"a":1,"a":2}`, `"a" stands twice`},
		"two":         {`{} {}`, "something follows"},
		"much to say": {many + `}}`, "more to say"},
		"doubling":    {doubling.String(), "more to say"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, _, err := Check([]byte(c.schema), openapi(), true)
			var refusal *dialects.Error
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, "definitions", refusal.Op)
			assert.ErrorContains(t, err, c.fault)
			assert.Less(t, time.Since(start), 5*time.Second)
		})
	}
}

// FuzzCheck: what is adapted is JSON, is the same each time, and has no more against it than before.
func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"format":"uri"}},"required":["a"]}`)
	f.Add(`{"$ref":"#","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"oneOf":[true,{"const":1}]}}}`)
	f.Add(`{"items":[{"not":{}}],"type":"object","patternProperties":{"a":{"exclusiveMinimum":-0}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		for _, rules := range []Rules{strict(), openapi(), {}} {
			adapted, findings, err := Check([]byte(schema), rules, true)
			if err != nil {
				require.Nil(t, adapted)
				continue
			}
			require.True(t, json.Valid(adapted))
			again, same, err := Check([]byte(schema), rules, true)
			require.NoError(t, err)
			require.Equal(t, string(adapted), string(again))
			require.Equal(t, findings, same)
			if _, left, err := Check(adapted, rules, false); err == nil && !Refuses(findings) {
				require.False(t, Refuses(left), "%s\n%s\n%s", schema, adapted, lines(left))
			}
		}
	})
}
