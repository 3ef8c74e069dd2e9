package repair_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

func compile(t testing.TB, source string) *schema.Schema {
	t.Helper()
	compiled := noerr.Get(schema.Compile([]byte(source)))(t)
	return compiled
}

func newRepairer(t testing.TB, s *schema.Schema, reserved ...string) *repair.Repairer {
	t.Helper()
	return repair.New(t.Context(), s, nil, func(name string) bool {
		return slices.ContainsFunc(reserved, func(other string) bool { return strings.EqualFold(other, name) })
	})
}

func parse(t testing.TB, text string) tool.Arguments {
	t.Helper()
	arguments := noerr.Get(tool.ParseArguments(text))(t)
	return arguments
}

func text(t testing.TB, arguments tool.Arguments) string {
	t.Helper()
	written := noerr.Get(arguments.MarshalJSON())(t)
	return string(written)
}

// check returns the check that an executor would make.
func check(s *schema.Schema) func(tool.Arguments) error {
	return func(arguments tool.Arguments) error {
		written, err := arguments.MarshalJSON()
		if err != nil {
			return err
		}
		return s.Validate(context.Background(), written)
	}
}

func run(t testing.TB, s *schema.Schema, arguments string) repair.Result {
	t.Helper()
	var last tool.Arguments
	result := newRepairer(t, s, "owned").Repair(t.Context(), parse(t, arguments), []string{"my_tool", "alias"}, func(arguments tool.Arguments) error {
		last = arguments
		return check(s)(arguments)
	})
	if result.Misfit == nil {
		require.Equal(t, result.Arguments, last, "callers keep what the last check found")
	}
	return result
}

// changes writes repairs on lines: path rule: from -> to.
func changes(repairs []tool.Repair) string {
	var lines []string
	for _, r := range repairs {
		lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", r.Path, r.Rule, r.From, r.To))
	}
	return strings.Join(lines, "\n")
}

// ruleCase is one repair. The schema is of the member v, unless it begins with "{"type":"object"".
type ruleCase struct {
	name, schema, arguments, want string
	changes                       string
	misfit                        string // a part; empty where the result fits
}

func (c ruleCase) run(t *testing.T) {
	source := c.schema
	if !strings.HasPrefix(source, `{"type":"object","properties"`) {
		source = `{"type":"object","properties":{"v":` + source + `}}`
	}
	s := compile(t, source)
	result := run(t, s, c.arguments)
	assert.Equal(t, c.want, text(t, result.Arguments))
	assert.Equal(t, c.changes, changes(result.Repairs))
	if c.misfit == "" {
		require.NoError(t, result.Misfit)
	} else {
		assert.ErrorContains(t, result.Misfit, c.misfit)
	}
	holdsProperties(t, s, c.arguments)
}

func runCases(t *testing.T, cases []ruleCase) {
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func TestCastNumber(t *testing.T) {
	const list = `{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array","items":{"type":"number"}}}}}}`
	runCases(t, []ruleCase{
		{"integer", `{"type":"integer"}`, `{"v":"5"}`, `{"v":5}`, `v cast_number: "5" -> 5`, ""},
		{"number", `{"type":"number"}`, `{"v":"-5.50e1"}`, `{"v":-5.50e1}`, `v cast_number: "-5.50e1" -> -5.50e1`, ""},
		{"a whole number with a fraction", `{"type":"integer"}`, `{"v":"5.0"}`, `{"v":5.0}`, `v cast_number: "5.0" -> 5.0`, ""},
		{"many digits", `{"type":"integer"}`, `{"v":"123456789012345678901234567890"}`, `{"v":123456789012345678901234567890}`, `v cast_number: "123456789012345678901234567890" -> 123456789012345678901234567890`, ""},
		{"nullable", `{"type":["integer","null"]}`, `{"v":"7"}`, `{"v":7}`, `v cast_number: "7" -> 7`, ""},
		{"by enum", `{"enum":[1,2]}`, `{"v":"2"}`, `{"v":2}`, `v cast_number: "2" -> 2`, ""},
		{"by const", `{"const":3}`, `{"v":"3"}`, `{"v":3}`, `v cast_number: "3" -> 3`, ""},
		{"nested", list, `{"o":{"l":[1,"2",3.10]}}`, `{"o":{"l":[1,2,3.10]}}`, `o.l[1] cast_number: "2" -> 2`, ""},
		{"an odd name", `{"type":"object","properties":{"a b":{"type":"integer"}}}`, `{"a b":"1"}`, `{"a b":1}`, `["a b"] cast_number: "1" -> 1`, ""},
		{"additional members", `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, `{"x":"1"}`, `{"x":1}`, `x cast_number: "1" -> 1`, ""},
		{"not from a fraction", `{"type":"integer"}`, `{"v":"5.5"}`, `{"v":"5.5"}`, "", "v: want integer"},
		{"not where a string can stand", `{"type":["integer","string"],"maxLength":1}`, `{"v":"55"}`, `{"v":"55"}`, "", "v: "},
		{"not with space", `{"type":"integer"}`, `{"v":"5 "}`, `{"v":"5 "}`, "", "v: "},
		{"not with a sign or zeros", `{"type":"array","items":{"type":"integer"}}`, `{"v":["+5","05","0x5","","NaN","1,000"]}`, `{"v":["+5","05","0x5","","NaN","1,000"]}`, "", "v[0]: "},
		{"not below a pattern of names", `{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":{"type":"integer"}}`, `{"v":{"y":"1"}}`, `{"v":{"y":"1"}}`, "", "v.y: "},
		{"too large", `{"type":"number"}`, `{"v":"1e999"}`, `{"v":1e999}`, `v cast_number: "1e999" -> 1e999`, "too large"},
		{"what it is is wrong still", `{"enum":[1,2]}`, `{"v":"3"}`, `{"v":3}`, `v cast_number: "3" -> 3`, "v: want one of 1, 2"},
	})
}

func TestCastBoolean(t *testing.T) {
	runCases(t, []ruleCase{
		{"true", `{"type":"boolean"}`, `{"v":"true"}`, `{"v":true}`, `v cast_boolean: "true" -> true`, ""},
		{"false", `{"type":["boolean","number"]}`, `{"v":"false"}`, `{"v":false}`, `v cast_boolean: "false" -> false`, ""},
		{"in no other spelling", `{"type":"array","items":{"type":"boolean"}}`, `{"v":["True","yes","1"]}`, `{"v":["True","yes","1"]}`, "", "v[0]: "},
		{"no number", `{"type":"boolean"}`, `{"v":1}`, `{"v":1}`, "", "v: "},
		{"no number as text", `{"type":"string"}`, `{"v":1.50}`, `{"v":1.50}`, "", "v: want string"},
		{"no object as text", `{"type":"string"}`, `{"v":{}}`, `{"v":{}}`, "", "v: "},
	})
}

func TestParseJSON(t *testing.T) {
	const object = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"o":{"type":"object"}}}`
	runCases(t, []ruleCase{
		{"an object", object, `{"v":"{\"n\": 1.0}"}`, `{"v":{"n": 1.0}}`, `v parse_json: "{\"n\": 1.0}" -> {"n": 1.0}`, ""},
		{"an array", `{"type":"array"}`, `{"v":" [1, 2] "}`, `{"v":[1, 2]}`, `v parse_json: " [1, 2] " -> [1, 2]`, ""},
		{"and what is in it", object, `{"v":"{\"n\":\"1\"}"}`, `{"v":{"n":1}}`, "v parse_json: \"{\\\"n\\\":\\\"1\\\"}\" -> {\"n\":\"1\"}\nv.n cast_number: \"1\" -> 1", ""},
		{"but what it lacks", object, `{"v":"{}"}`, `{"v":{}}`, `v parse_json: "{}" -> {}`, "v.n: required, but missing"},
		{"no string inside", object, `{"v":"{\"n\":1,\"o\":\"{}\"}"}`, `{"v":"{\"n\":1,\"o\":\"{}\"}"}`, "", "v: want object"},
		{"no string of a string", object, `{"v":"\"{}\""}`, `{"v":"\"{}\""}`, "", "v: want object"},
		{"not where a string can stand", `{"type":["object","string"],"minLength":9}`, `{"v":"{}"}`, `{"v":"{}"}`, "", "v: "},
		{"not of another type", object, `{"v":"[]"}`, `{"v":"[]"}`, "", "v: "},
		{"no doubled key", object, `{"v":"{\"n\":1,\"n\":2}"}`, `{"v":"{\"n\":1,\"n\":2}"}`, "", "v: "},
		{"nothing behind it", object, `{"v":"{\"n\":1}]"}`, `{"v":"{\"n\":1}]"}`, "", "v: "},
		{"no trick with the braces", object, `{"v":"{\"n\":1},\"w\":{}"}`, `{"v":"{\"n\":1},\"w\":{}"}`, "", "v: "},
	})
}

func TestWrapArray(t *testing.T) {
	runCases(t, []ruleCase{
		{"a string", `{"type":"array","items":{"type":"string"}}`, `{"v":"a"}`, `{"v":["a"]}`, `v wrap_array: "a" -> ["a"]`, ""},
		{"an object", `{"type":["array","null"],"items":{"type":"object"}}`, `{"v":{"a":1}}`, `{"v":[{"a":1}]}`, `v wrap_array: {"a":1} -> [{"a":1}]`, ""},
		{"after repair", `{"type":"array","items":{"type":"integer"}}`, `{"v":"5"}`, `{"v":[5]}`, "v wrap_array: \"5\" -> [\"5\"]\nv[0] cast_number: \"5\" -> 5", ""},
		{"twice", `{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`, `{"v":5}`, `{"v":[[5]]}`, "v wrap_array: 5 -> [5]\nv[0] wrap_array: 5 -> [5]", ""},
		{"the first of a list of schemas", `{"type":"array","prefixItems":[{"type":"boolean"}]}`, `{"v":true}`, `{"v":[true]}`, `v wrap_array: true -> [true]`, ""},
		{"not what does not fit", `{"type":"array","items":{"type":"integer"}}`, `{"v":"x"}`, `{"v":"x"}`, "", "v: want array"},
		{"not null", `{"type":"object","properties":{"v":{"type":"array"}},"required":["v"]}`, `{"v":null}`, `{"v":null}`, "", "v: "},
		{"not what another type allows", `{"type":["array","string"],"minLength":3}`, `{"v":"a"}`, `{"v":"a"}`, "", "v: "},
		{"not what was to be an array", `{"type":"array","items":{"type":"string"}}`, `{"v":"[\"a\""}`, `{"v":"[\"a\""}`, "", "v: "},
	})
}

func TestUnwrap(t *testing.T) {
	const parameters = `{"type":"object","properties":{"a":{"type":"integer"},"b":{},"owned":{}},"required":["a"]}`
	const taken = `{"type":"object","properties":{"input":{"type":"integer"},"a":{}},"required":["a"]}`
	runCases(t, []ruleCase{
		{"arguments", parameters, `{"arguments":{"a":1,"b":2.0}}`, `{"a":1,"b":2.0}`, ` unwrap: {"arguments":{"a":1,"b":2.0}} -> {"a":1,"b":2.0}`, ""},
		{"input, and what is in it", parameters, `{"input":{"a":"1"}}`, `{"a":1}`, " unwrap: {\"input\":{\"a\":\"1\"}} -> {\"a\":\"1\"}\na cast_number: \"1\" -> 1", ""},
		{"parameters", parameters, `{"parameters":{"b":1}}`, `{"b":1}`, ` unwrap: {"parameters":{"b":1}} -> {"b":1}`, "a: required, but missing"},
		{"the tool's name", parameters, `{"my_tool":{"a":1}}`, `{"a":1}`, ` unwrap: {"my_tool":{"a":1}} -> {"a":1}`, ""},
		{"the tool's alias", parameters, `{"alias":{"a":1}}`, `{"a":1}`, ` unwrap: {"alias":{"a":1}} -> {"a":1}`, ""},
		{"no other name", parameters, `{"args":{"a":1}}`, `{"args":{"a":1}}`, "", "a: required, but missing"},
		{"no second key", parameters, `{"input":{"a":1},"b":2}`, `{"input":{"a":1},"b":2}`, "", "a: required, but missing"},
		{"no parameter", taken, `{"input":{"a":1}}`, `{"input":{"a":1}}`, "", "a: required, but missing"},
		{"nothing unknown inside", parameters, `{"input":{"a":1,"c":2}}`, `{"input":{"a":1,"c":2}}`, "", "a: required, but missing"},
		{"nothing of the host's inside", parameters, `{"input":{"a":1,"owned":2}}`, `{"input":{"a":1,"owned":2}}`, "", "a: required, but missing"},
		{"one level only", parameters, `{"input":{"input":{"a":1}}}`, `{"input":{"input":{"a":1}}}`, "", "a: required, but missing"},
	})
}

func TestClamp(t *testing.T) {
	runCases(t, []ruleCase{
		{"maximum", `{"type":"integer","maximum":10}`, `{"v":500}`, `{"v":10}`, `v clamp: 500 -> 10`, ""},
		{"minimum", `{"type":"number","minimum":-0.50}`, `{"v":-1e3}`, `{"v":-0.50}`, `v clamp: -1e3 -> -0.50`, ""},
		{"after a cast", `{"type":"integer","maximum":10}`, `{"v":"500"}`, `{"v":10}`, "v cast_number: \"500\" -> 500\nv clamp: 500 -> 10", ""},
		{"an integer above a fraction", `{"type":"integer","minimum":0.5}`, `{"v":0}`, `{"v":1}`, `v clamp: 0 -> 1`, ""},
		{"an integer below a fraction", `{"type":"integer","maximum":-0.5}`, `{"v":0}`, `{"v":-1}`, `v clamp: 0 -> -1`, ""},
		{"exclusive minimum", `{"type":"integer","exclusiveMinimum":0}`, `{"v":-3}`, `{"v":1}`, `v clamp: -3 -> 1`, ""},
		{"exclusive maximum", `{"type":"integer","exclusiveMaximum":10}`, `{"v":10}`, `{"v":9}`, `v clamp: 10 -> 9`, ""},
		{"exclusive fraction", `{"type":"integer","exclusiveMaximum":9.5}`, `{"v":10}`, `{"v":9}`, `v clamp: 10 -> 9`, ""},
		{"the narrower of two", `{"type":"integer","allOf":[{"maximum":10},{"maximum":5}]}`, `{"v":20}`, `{"v":5}`, `v clamp: 20 -> 5`, ""},
		{"many digits", `{"type":"integer","maximum":123456789012345678901234567890}`, `{"v":123456789012345678901234567891}`, `{"v":123456789012345678901234567890}`, `v clamp: 123456789012345678901234567891 -> 123456789012345678901234567890`, ""},
		{"no exclusive bound of fractions", `{"type":"number","exclusiveMaximum":10}`, `{"v":11}`, `{"v":11}`, "", "v: "},
		{"not to what does not fit", `{"type":"integer","minimum":5,"multipleOf":10}`, `{"v":3}`, `{"v":3}`, "", "v: "},
		{"not between bounds that exclude each other", `{"type":"integer","minimum":5,"maximum":3}`, `{"v":9}`, `{"v":9}`, "", "v: "},
		{"not a number of another type", `{"type":"integer","maximum":3}`, `{"v":9.5}`, `{"v":9.5}`, "", "v: "},
		{"not what is too large to compute with", `{"type":"number","maximum":3}`, `{"v":1e400}`, `{"v":1e400}`, "", "too large"},
	})
}

func TestDropNull(t *testing.T) {
	const parameters = `{"type":"object","properties":{"a":{"type":"integer"},"n":{"type":["integer","null"]},"u":{"anyOf":[{"type":"string"},{"type":"null"}]},"x":{},"d":{"type":"integer","default":4}},"required":["r"],"additionalProperties":{"type":"integer"}}`
	runCases(t, []ruleCase{
		{"optional", parameters, `{"r":1,"a":null,"d":1}`, `{"r":1,"d":1}`, `a drop_null: null -> null`, ""},
		{"allowed", parameters, `{"r":"1","n":null,"u":null,"x":null,"d":1}`, `{"r":1,"n":null,"u":null,"x":null,"d":1}`, `r cast_number: "1" -> 1`, ""},
		{"required", parameters, `{"r":null,"d":1}`, `{"r":null,"d":1}`, "", "r: "},
		{"unknown", parameters, `{"r":1,"y":null,"d":1}`, `{"r":1,"y":null,"d":1}`, "", "y: "},
		{"with a default", parameters, `{"r":1,"d":null}`, `{"r":1,"d":4}`, "d drop_null: null -> null\nd default: null -> 4", ""},
		{"nested", `{"type":"array","items":{"properties":{"a":{"type":"integer"}}}}`, `{"v":[{"a":null}]}`, `{"v":[{}]}`, `v[0].a drop_null: null -> null`, ""},
		{"not an element", `{"type":"array","items":{"type":"integer"}}`, `{"v":[null]}`, `{"v":[null]}`, "", "v[0]: "},
	})
}

func TestDefault(t *testing.T) {
	const nested = `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"default":1.50},"b":{"type":"string","default":"<x>"}}},"l":{"items":{"properties":{"c":{"default":[]}}}}}}`
	const filled = `{"type":"object","properties":{"o":{"default":{},"properties":{"a":{"default":1}}}}}`
	const reference = `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"integer","default":"x"},"c":{"allOf":[{"default":1},{"default":2}]}},"$defs":{"a":{"default":true}}}`
	runCases(t, []ruleCase{
		{"nothing to fill in", nested, `{}`, `{}`, "", ""},
		{"in objects that are there", nested, `{"o":{"b":"y"},"l":[{},{"c":1}]}`, `{"o":{"b":"y","a":1.50},"l":[{"c":[]},{"c":1}]}`, "o.a default: null -> 1.50\nl[0].c default: null -> []", ""},
		{"all of an object", nested, `{"o":{}}`, `{"o":{"a":1.50,"b":"<x>"}}`, "o.a default: null -> 1.50\no.b default: null -> \"<x>\"", ""},
		{"inside a default", filled, `{}`, `{"o":{"a":1}}`, "o default: null -> {}\no.a default: null -> 1", ""},
		{"by reference, not what does not fit or is not one", reference, `{}`, `{"a":true}`, `a default: null -> true`, ""},
		{"beside a repair", `{"type":"object","properties":{"n":{"type":"integer"},"d":{"default":1}}}`, `{"n":"5"}`, `{"n":5,"d":1}`, "n cast_number: \"5\" -> 5\nd default: null -> 1", ""},
		{"required", `{"type":"object","properties":{"d":{"default":1}},"required":["d"]}`, `{}`, `{"d":1}`, `d default: null -> 1`, ""},
		{"not where it would break what fits", `{"type":"object","properties":{"d":{"default":1}},"maxProperties":1}`, `{"x":1}`, `{"x":1}`, "", ""},
		{"not where it would break what is repaired", `{"type":"object","properties":{"d":{"default":1},"n":{"type":"integer"}},"maxProperties":1}`, `{"n":"1"}`, `{"n":1}`, `n cast_number: "1" -> 1`, ""},
		{"not the host's", `{"type":"object","properties":{"Owned":{"default":1},"d":{"default":1}}}`, `{}`, `{"d":1}`, `d default: null -> 1`, ""},
		{"not without end", `{"type":"object","properties":{"child":{"$ref":"#","default":{}}}}`, `{}`, `{}`, "", ""},
	})
}

func TestUnions(t *testing.T) {
	const shapes = `{"anyOf":[{"type":"object","required":["r"],"properties":{"kind":{"const":"circle"},"r":{"type":"number","maximum":9,"default":1}},"additionalProperties":false},{"type":"object","required":["w"],"properties":{"kind":{"const":"square"},"w":{"type":"number"}},"additionalProperties":false}]}`
	runCases(t, []ruleCase{
		{"a type of any", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `{"v":"5"}`, `{"v":5}`, `v cast_number: "5" -> 5`, ""},
		{"what fits one", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `{"v":"5"}`, `{"v":"5"}`, "", ""},
		{"the only one that it can be", shapes, `{"v":{"kind":"circle","r":"50"}}`, `{"v":{"kind":"circle","r":9}}`, "v.r cast_number: \"50\" -> 50\nv.r clamp: 50 -> 9", ""},
		{"out of a string", shapes, `{"v":"{\"kind\":\"square\",\"w\":\"1\"}"}`, `{"v":{"kind":"square","w":1}}`, "v parse_json: \"{\\\"kind\\\":\\\"square\\\",\\\"w\\\":\\\"1\\\"}\" -> {\"kind\":\"square\",\"w\":\"1\"}\nv.w cast_number: \"1\" -> 1", ""},
		{"no default to choose it", shapes, `{"v":{"kind":"circle"}}`, `{"v":{"kind":"circle"}}`, "", "v"},
		{"two that it can be", `{"anyOf":[{"type":"integer","maximum":5},{"type":"integer","minimum":10}]}`, `{"v":7}`, `{"v":7}`, "", "v: "},
		{"two that are the same", `{"anyOf":[{"type":"integer"},{"type":"integer","maximum":10}]}`, `{"v":"7"}`, `{"v":7}`, `v cast_number: "7" -> 7`, ""},
		{"exactly one", `{"oneOf":[{"type":"integer","maximum":5},{"const":"auto"}]}`, `{"v":"9"}`, `{"v":5}`, "v cast_number: \"9\" -> 9\nv clamp: 9 -> 5", ""},
		{"not both", `{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `{"v":"7"}`, `{"v":7}`, `v cast_number: "7" -> 7`, "v: "},
		{"beside what all have", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":"1"}`, `{"a":1}`, `a cast_number: "1" -> 1`, ""},
	})
}

func TestReferences(t *testing.T) {
	const tree = `{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#"},"all":{"items":{"$ref":"#"}}}}`
	const old = `{"type":"object","properties":{"v":{"$ref":"#/definitions/a~1%25","type":"boolean"},"w":{"items":[{"type":"integer"}],"additionalItems":{"type":"boolean"}}},"definitions":{"a/%":{"type":"integer"}},"$schema":"http://json-schema.org/draft-07/schema#"}`
	runCases(t, []ruleCase{
		{"in circles", tree, `{"n":"1","next":{"n":"2","all":[{"n":"3"}]}}`, `{"n":1,"next":{"n":2,"all":[{"n":3}]}}`, "n cast_number: \"1\" -> 1\nnext.n cast_number: \"2\" -> 2\nnext.all[0].n cast_number: \"3\" -> 3", ""},
		{"to an $id", `{"type":"object","properties":{"v":{"$ref":"b/i"}},"$id":"https://example.com/a","$defs":{"b":{"$id":"b/","$defs":{"i":{"$id":"i","type":"integer"}}}}}`, `{"v":"1"}`, `{"v":1}`, `v cast_number: "1" -> 1`, ""},
		{"to an anchor", `{"type":"object","properties":{"v":{"$ref":"#i"}},"$defs":{"x":{"$anchor":"i","type":"integer"}}}`, `{"v":"1"}`, `{"v":1}`, `v cast_number: "1" -> 1`, ""},
		{"beside other keywords", `{"type":"object","properties":{"v":{"$ref":"#/$defs/x","maximum":3}},"$defs":{"x":{"type":"integer"}}}`, `{"v":"4"}`, `{"v":3}`, "v cast_number: \"4\" -> 4\nv clamp: 4 -> 3", ""},
		{"alone in draft 7", old, `{"v":"1","w":["1","true"]}`, `{"v":1,"w":[1,true]}`, "v cast_number: \"1\" -> 1\nw[0] cast_number: \"1\" -> 1\nw[1] cast_boolean: \"true\" -> true", ""},
	})
}

// TestBounds: arguments that exceed a bound are not repaired in part.
func TestBounds(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}`)
	list := func(count int) string { return `{"l":["1"` + strings.Repeat(`,"1"`, count-1) + `]}` }
	assert.Len(t, run(t, s, list(repair.MaxRepairs)).Repairs, repair.MaxRepairs)
	over := run(t, s, list(repair.MaxRepairs+1))
	assert.Empty(t, over.Repairs)
	assert.Equal(t, list(repair.MaxRepairs+1), text(t, over.Arguments))
	require.Error(t, over.Misfit)

	t.Run("depth", func(t *testing.T) {
		s := compile(t, `{"type":"object","properties":{"v":{"type":"object","required":["n"],"properties":{"v":{"$ref":"#/properties/v"}}}}}`)
		inner := strings.Repeat(`{"v":`, tool.MaxArgumentsDepth-1) + "{}" + strings.Repeat("}", tool.MaxArgumentsDepth-1)
		assert.Empty(t, run(t, s, `{"v":`+string(mustQuote(t, inner))+`}`).Repairs)
	})
	t.Run("length", func(t *testing.T) {
		s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"},"d":{"default":"`+strings.Repeat("d", 2000)+`"}}}`)
		long := `{"n":1,"x":"` + strings.Repeat("x", tool.MaxArgumentsBytes-1000) + `"}`
		assert.Empty(t, run(t, s, long).Repairs)
	})
	t.Run("alternatives inside each other", func(t *testing.T) {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{`)
		for i := range 30 {
			fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d","minimum":1}]},`, i, i+1)
		}
		b.WriteString(`"d30":{"type":"integer","multipleOf":7}}}`)
		s := compile(t, b.String())
		result := run(t, s, `{"v":3}`)
		assert.Empty(t, result.Repairs)
		require.Error(t, result.Misfit)
	})
}

func mustQuote(t testing.TB, said string) []byte {
	t.Helper()
	quoted := noerr.Get(json.Marshal(said))(t)
	return quoted
}

// TestCheckIsAsked: the last word is the caller's, who knows more than the schema.
func TestCheckIsAsked(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	refusal := errors.New("the host's value does not fit")
	result := newRepairer(t, s).Repair(t.Context(), parse(t, `{"n":"1"}`), nil, func(tool.Arguments) error { return refusal })
	assert.Equal(t, `{"n":1}`, text(t, result.Arguments))
	require.ErrorIs(t, result.Misfit, refusal)
}
