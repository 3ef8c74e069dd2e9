package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ofLibrary compiles a schema with the library. Formats and contents are annotations, as here.
func ofLibrary(source []byte) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	for name := range jsonschema.Formats {
		compiler.Formats[name] = func(any) bool { return true }
	}
	for name := range jsonschema.Decoders {
		compiler.Decoders[name] = func(text string) ([]byte, error) { return []byte(text), nil }
	}
	for name := range jsonschema.MediaTypes {
		compiler.MediaTypes[name] = func([]byte) error { return nil }
	}
	if err := compiler.AddResource("mem:///schema", strings.NewReader(string(source))); err != nil {
		return nil, err
	}
	return compiler.Compile("mem:///schema")
}

// agree holds a schema and values against the library, and returns how many of the values fit.
func agree(t *testing.T, source []byte, values ...string) (fit int) {
	// The drafts leave these cases open, and the library reads them differently.
	if strings.Contains(string(source), `"$recursiveAnchor"`) {
		return 0
	}
	compiled, err := Compile(source)
	if err != nil {
		return 0
	}
	library, err := ofLibrary(source)
	var endless jsonschema.InfiniteLoopError
	if errors.As(err, &endless) || err != nil && (strings.HasSuffix(err.Error(), "#b not found") || strings.Contains(err.Error(), "no Loader found")) {
		return 0 // where no value gets to, or an anchor or $id in a keyword that the draft does not know
	}
	require.NoError(t, err, "%s", source)
	for _, value := range values {
		v, err := read(t.Context(), value, MaxValueBytes, maxValueNameBytes)
		if err != nil {
			continue
		}
		err = compiled.Validate(t.Context(), []byte(value))
		var violation *ViolationError
		if errors.As(err, &violation) && strings.Contains(tooMuchWork+tooDeep, violation.Violations[0].Message) {
			continue
		}
		require.Equal(t, library.Validate(decoded(v)) == nil, err == nil, "%s\nof %s\n%v", source, value, err)
		var e evaluation
		require.Equal(t, err == nil, e.fits(compiled.root, v, &report{found: new([]finding)}, nil), "what explains decides the same")
		if err == nil {
			fit++
		}
	}
	return fit
}

var draftURIs = metaSchemas[:]

// TestDifferential holds random schemas and values of all drafts against the library.
func TestDifferential(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	fit, all := 0, 0
	for range 3000 {
		source := []byte(fmt.Sprintf(`{"$schema":%q,"$defs":{"a":%s,"b":%s},%s`, g.pick(draftURIs...), g.schema(1), g.schema(2), g.schema(3)[1:]))
		values := make([]string, 20)
		for i := range values {
			values[i] = g.value(3)
		}
		fit += agree(t, source, values...)
		all += len(values)
	}
	t.Log(fit, all)
	assert.Greater(t, fit, all/20)
	assert.Less(t, fit, all*19/20)
}

// FuzzDifferential: what fits a schema, and what does not, is the same here and there.
func FuzzDifferential(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	for range 50 {
		f.Add([]byte(g.schema(3)), g.value(3))
	}
	f.Fuzz(func(t *testing.T, source []byte, value string) {
		if len(source) <= 2000 && len(value) <= 2000 && json.Valid(source) {
			agree(t, source, value)
		}
	})
}

// generator writes schemas and values.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// templates are keywords: @ means a schema, % a small number, and ! a value.
var templates = strings.Fields(`
	"type":"object" "type":["integer","array"] "type":"number" "type":["string","null","object"] "const":! "enum":[!,!,!]
	"minimum":% "maximum":% "exclusiveMinimum":%.5 "exclusiveMaximum":%e0 "multipleOf":0.5 "multipleOf":2
	"minLength":% "maxLength":% "pattern":"^a*$" "pattern":"b" "minItems":% "maxItems":% "uniqueItems":true
	"minProperties":% "maxProperties":% "required":["a"] "required":["a","b"] "dependentRequired":{"a":["b"],"c":["a","b"]}
	"dependencies":{"a":["b"],"b":@} "dependentSchemas":{"b":@} "properties":{"a":@,"b":@} "properties":{"c":@}
	"patternProperties":{"^a":@,"b$":@} "additionalProperties":@ "additionalProperties":false "propertyNames":@
	"items":@ "items":@ "items":[@,@] "additionalItems":@ "prefixItems":[@] "prefixItems":[@,@] "contains":@
	"minContains":% "maxContains":% "allOf":[@,@] "anyOf":[@,@] "oneOf":[@,@] "not":@ "if":@ "then":@ "else":@
	"$ref":"#/$defs/a" "$ref":"#/$defs/b" "$ref":"#" "$ref":"#b" "$dynamicRef":"#b" "$recursiveRef":"#" "$anchor":"b" "$dynamicAnchor":"b"
	"$id":"i" "$id":"j" "$ref":"i" "$ref":"j" "$ref":"i#b" "$dynamicRef":"i#b" "$dynamicRef":"j#b"
	"unevaluatedProperties":false "unevaluatedProperties":@ "unevaluatedItems":false "unevaluatedItems":@ "format":"date" "contentEncoding":"base64"`)

func (g generator) schema(depth int) string {
	if depth == 0 {
		return g.pick(`{}`, `{"type":"integer"}`, `{"type":"string"}`, `{"minimum":1}`, `{"required":["a"]}`, `{"properties":{"a":true}}`, `{"prefixItems":[true]}`, `{"maxItems":1}`, `{"not":{}}`)
	}
	var keywords []string
	seen := map[string]bool{}
	for range 1 + g.IntN(4) {
		template := templates[g.IntN(len(templates))]
		if name, _, _ := strings.Cut(template, ":"); !seen[name] {
			seen[name] = true
			keywords = append(keywords, g.fill(template, depth-1))
		}
	}
	return "{" + strings.Join(keywords, ",") + "}"
}

func (g generator) fill(template string, depth int) string {
	var b strings.Builder
	for _, c := range template {
		switch c {
		case '@':
			if g.IntN(6) == 0 {
				b.WriteString(g.pick("true", "false"))
			} else {
				b.WriteString(g.schema(depth))
			}
		case '%':
			fmt.Fprint(&b, g.IntN(4))
		case '!':
			b.WriteString(g.value(1))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (g generator) value(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.pick(`null`, `true`, `false`, `0`, `1`, `1.0`, `2`, `-1.5`, `3e0`, `0.1`, `""`, `"a"`, `"ab"`, `"\u0061b"`, `"é"`, `{}`, `[]`)
	}
	if g.IntN(2) == 0 {
		list := make([]string, g.IntN(4))
		for i := range list {
			list[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "c", "ab"} {
		if g.IntN(2) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
