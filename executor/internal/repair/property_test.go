package repair_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// holdsProperties checks the properties of every repair.
func holdsProperties(t testing.TB, s *schema.Schema, arguments string) repair.Result {
	t.Helper()
	original := parse(t, arguments)
	result := run(t, s, arguments)
	repaired := text(t, result.Arguments)

	if check(s)(original) == nil {
		require.NoError(t, result.Misfit)
		for _, r := range result.Repairs {
			require.Equal(t, string(repair.Default), r.Rule, "%s\nof %s\nwhat fits is not changed: %s", s.JSON(), arguments, changes(result.Repairs))
		}
	}
	require.Equal(t, result.Misfit == nil, s.Validate(t.Context(), []byte(repaired)) == nil, "%s", repaired)
	namesSomethingElse(t, check(s)(original), result)
	if len(result.Repairs) == 0 {
		require.Equal(t, text(t, original), repaired)
	}
	again := run(t, s, repaired)
	require.Equal(t, repaired, text(t, again.Arguments), "%s\nof %s\nrepaired twice: %s\nthen %s", s.JSON(), arguments, changes(result.Repairs), changes(again.Repairs))
	require.Empty(t, again.Repairs)
	require.Equal(t, canonical(t, repaired), canonical(t, replay(t, text(t, original), result.Repairs)), "%s", changes(result.Repairs))
	return result
}

// namesSomethingElse checks that no remaining violation of a repaired value is the one that it
// was repaired for.
func namesSomethingElse(t testing.TB, before error, result repair.Result) {
	t.Helper()
	var was, is *schema.ViolationError
	if !errors.As(before, &was) || !errors.As(result.Misfit, &is) {
		return
	}
	for _, r := range result.Repairs {
		for _, v := range is.Violations {
			if r.Path != "" && v.Path == r.Path && strings.HasPrefix(v.Message, "want ") {
				require.NotContains(t, was.Violations, v, "%s", changes(result.Repairs))
			}
		}
	}
}

// canonical writes JSON with sorted keys and without space; numbers keep their digits.
func canonical(t testing.TB, source string) string {
	t.Helper()
	written := noerr.Get(json.Marshal(decoded(t, source)))(t)
	return string(written)
}

func decoded(t testing.TB, source string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(source))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	return value
}

// replay makes the recorded changes one after the other.
func replay(t testing.TB, source string, repairs []tool.Repair) string {
	t.Helper()
	value := decoded(t, source)
	for _, r := range repairs {
		value = change(t, value, keysOf(t, r.Path), r)
	}
	written := noerr.Get(json.Marshal(value))(t)
	return string(written)
}

func change(t testing.TB, value any, path []any, r tool.Repair) any {
	t.Helper()
	if len(path) == 0 {
		require.Equal(t, canonical(t, string(r.From)), canonical(t, string(encoded(t, value))), "%s starts from the present value", r.Rule)
		return decoded(t, string(r.To))
	}
	if index, isIndex := path[0].(int); isIndex {
		list := value.([]any)
		list[index] = change(t, list[index], path[1:], r)
		return list
	}
	object, name := value.(map[string]any), path[0].(string)
	if len(path) == 1 && r.Rule == string(repair.DropNull) {
		require.Contains(t, object, name)
		delete(object, name)
		return object
	}
	if len(path) == 1 && r.Rule == string(repair.Default) {
		require.NotContains(t, object, name)
	}
	object[name] = change(t, object[name], path[1:], r)
	return object
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	written := noerr.Get(json.Marshal(value))(t)
	return written
}

// keysOf splits a path: names are strings, and indexes ints.
func keysOf(t testing.TB, path string) []any {
	t.Helper()
	var found []any
	for path != "" {
		switch path = strings.TrimPrefix(path, "."); {
		case strings.HasPrefix(path, `["`):
			quoted := noerr.Get(strconv.QuotedPrefix(path[1:]))(t)
			name := noerr.Get(strconv.Unquote(quoted))(t)
			found, path = append(found, name), path[len(quoted)+2:]
		case path[0] == '[':
			end := strings.IndexByte(path, ']')
			index := noerr.Get(strconv.Atoi(path[1:end]))(t)
			found, path = append(found, index), path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			found, path = append(found, path[:end]), path[end:]
		}
	}
	return found
}

// generator makes schemas and values that nearly fit them.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) schema(depth int) string {
	kinds := []string{"integer", "number", "string", "boolean", "null", "enum", "const", "any", "never", "types"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array", "anyOf", "oneOf", "allOf", "ref", "not", "if")
	}
	inner := func() string { return g.schema(depth - 1) }
	switch kind := kinds[g.IntN(len(kinds))]; kind {
	case "integer", "number":
		return fmt.Sprintf(`{"type":%q%s}`, kind, g.pick("", "", `,"minimum":3`, `,"maximum":2.5`, `,"exclusiveMinimum":0,"maximum":7`, `,"exclusiveMaximum":1`, `,"multipleOf":2,"minimum":1`, `,"default":4`))
	case "string":
		return `{"type":"string"` + g.pick("", `,"minLength":2`, `,"pattern":"^[a-z]*$"`, `,"default":"d"`) + `}`
	case "boolean", "null":
		return fmt.Sprintf(`{"type":%q}`, kind)
	case "enum":
		return g.pick(`{"enum":[1,2,"a"]}`, `{"enum":["1","true"]}`, `{"enum":[true,5.5],"default":true}`)
	case "const":
		return g.pick(`{"const":5}`, `{"const":"5"}`, `{"const":[1]}`, `{"const":{"a":1}}`)
	case "never":
		return g.pick("false", "true")
	case "types":
		return g.pick(`{"type":["integer","null"]}`, `{"type":["string","array"]}`, `{"type":["boolean","object"]}`, `{"type":["array","null"]}`)
	case "object":
		return g.object(depth)
	case "array":
		return `{"type":"array"` + g.pick("", `,"uniqueItems":true`, `,"maxItems":2`, `,"prefixItems":[`+inner()+`]`, `,"contains":`+inner()) + `,"items":` + inner() + `}`
	case "anyOf", "oneOf", "allOf":
		return fmt.Sprintf(`{%q:[%s,%s]%s}`, kind, inner(), inner(), g.pick("", `,"type":["integer","string","object"]`))
	case "ref":
		return fmt.Sprintf(`{"$ref":"#/$defs/%s"}`, g.pick("a", "b"))
	case "not":
		return `{"not":` + inner() + `}`
	case "if":
		return `{"if":` + inner() + `,"then":` + inner() + `,"else":` + inner() + `}`
	}
	return `{}`
}

func (g generator) object(depth int) string {
	inner := func() string { return g.schema(depth - 1) }
	return `{"type":"object","properties":{"a":` + inner() + `,"b":` + inner() + `}` +
		g.pick("", `,"required":["a"]`, `,"additionalProperties":false`, `,"additionalProperties":`+inner(), `,"patternProperties":{"^b":`+inner()+`}`,
			`,"maxProperties":1`, `,"dependentRequired":{"a":["b"]}`, `,"propertyNames":{"maxLength":1}`, `,"unevaluatedProperties":false`, `,"default":{}`) + `}`
}

// root is a schema of arguments.
func (g generator) root() string {
	return strings.TrimSuffix(g.object(3), "}") + `,"$defs":{"a":` + g.schema(1) + `,"b":` + g.schema(2) + `}}`
}

func (g generator) value(depth int) string {
	scalars := []string{`1`, `5`, `5.0`, `-7.25`, `123456789012345678901234567890`, `1e3`, `"1"`, `"5"`, `"2.50"`, `"true"`, `"a"`, `"b"`, `true`, `false`, `null`, `"{\"a\":1}"`, `"[1,\"2\"]"`, `"{\"a\":\"[]\"}"`, `""`}
	if depth == 0 || g.IntN(3) == 0 {
		return scalars[g.IntN(len(scalars))]
	}
	if g.IntN(2) == 0 {
		list := make([]string, g.IntN(4))
		for i := range list {
			list[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return g.arguments(depth)
}

func (g generator) arguments(depth int) string {
	var members []string
	for _, name := range []string{"a", "b", "bc"} {
		if g.IntN(3) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestRandom holds thousands of random schemas and arguments against the properties, and
// against the schema itself.
func TestRandom(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	counts := map[string]int{}
	for range 1500 {
		source := g.root()
		s, err := schema.Compile([]byte(source))
		if err != nil {
			counts["refused"]++ // such as a reference to itself without end
			continue
		}
		for range 6 {
			arguments := g.arguments(3)
			if g.IntN(10) == 0 {
				arguments = `{"input":` + arguments + `}`
			}
			result := holdsProperties(t, s, arguments)
			count(counts, result)
		}
	}
	t.Log(counts)
	for _, rule := range []repair.Rule{repair.CastNumber, repair.CastBoolean, repair.ParseJSON, repair.WrapArray, repair.Unwrap, repair.Clamp, repair.DropNull, repair.Default} {
		assert.Greater(t, counts[string(rule)], 5, "%s must happen", rule)
	}
	assert.Greater(t, counts["mended"], 100)
	assert.Greater(t, counts["unfit"], 100)
}

func count(counts map[string]int, result repair.Result) {
	for _, r := range result.Repairs {
		counts[r.Rule]++
	}
	switch {
	case result.Misfit != nil:
		counts["unfit"]++
	case len(result.Repairs) > 0:
		counts["mended"]++
	}
}

// TestDigits: whatever becomes of a number, it keeps its digits.
func TestDigits(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"number"},"l":{"type":"array","items":{"type":"number"}},"o":{"type":"object","properties":{"n":{"type":"number"}}}}}`)
	g := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var b strings.Builder
		if g.IntN(2) == 0 {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%d", 1+g.IntN(9))
		for range g.IntN(60) {
			fmt.Fprintf(&b, "%d", g.IntN(10))
		}
		if g.IntN(2) == 0 {
			fmt.Fprintf(&b, ".%d0", g.Uint64())
		}
		if g.IntN(3) == 0 {
			fmt.Fprintf(&b, "%s%d", []string{"e", "E-", "e+"}[g.IntN(3)], g.IntN(200))
		}
		number := b.String()
		result := holdsProperties(t, s, fmt.Sprintf(`{"n":%[1]q,"l":%[1]s,"o":"{\"n\":%[1]s}"}`, number))
		require.Equal(t, fmt.Sprintf(`{"n":%[1]s,"l":[%[1]s],"o":{"n":%[1]s}}`, number), text(t, result.Arguments))
		require.NoError(t, result.Misfit)
	}
}
