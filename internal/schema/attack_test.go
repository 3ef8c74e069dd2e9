package schema_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
)

// Each attack here comes with a control, which shows that it works on the validator without the guard.

func TestAttackReadAFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	require.NoError(t, os.WriteFile(secret, []byte(`{"const":"hunter2"}`), 0o600))
	address := (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(secret), "/")}).String()

	t.Run("control", func(t *testing.T) {
		compiled, err := jsonschema.CompileString("mem:///x", `{"$ref":"`+address+`"}`)
		require.NoError(t, err, "the validator follows a reference to a file")
		assert.ErrorContains(t, compiled.Validate("x"), "hunter2")
	})
	for name, source := range map[string]string{
		"reference":         `{"$ref":"` + address + `"}`,
		"by id":             `{"$id":"` + address + `","$ref":"#/const"}`,
		"relative to an id": `{"$id":"` + address + `","$ref":"secret.json"}`,
		"nested id":         `{"properties":{"a":{"$id":"` + address + `","$ref":"#"}}}`,
		"dynamic":           `{"$dynamicRef":"` + address + `"}`,
		"recursive":         `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":"` + address + `"}`,
		"dialect":           `{"$schema":"` + address + `"}`,
		"bare path":         `{"$ref":"` + filepath.ToSlash(secret) + `"}`,
		"in data":           `{"$ref":"#/const","const":{"$ref":"` + address + `"}}`,
		"in an unknown key": `{"$ref":"#/x-a","x-a":{"$ref":"` + address + `"}}`,
		"the web":           `{"$ref":"https://example.com/schema.json"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schema.Compile([]byte(source))
			require.ErrorIs(t, err, schema.ErrSchema)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestAttackPanicByNumber(t *testing.T) {
	t.Run("control", func(t *testing.T) {
		assert.Panics(t, func() {
			_ = must(jsonschema.CompileString("mem:///x", `{"type":"integer"}`)).Validate(json.Number("1e1000001"))
		})
		assert.Panics(t, func() { _, _ = jsonschema.CompileString("mem:///x", `{"minLength":1e10000000}`) })
	})
	for _, number := range []string{"1e1000001", "-1e1000001", "1e-1000001", "1e99999999999999999999", "0e1000001", strings.Repeat("9", 129)} {
		for _, keyword := range []string{"minLength", "minimum", "multipleOf", "const", "maxItems"} {
			require.ErrorIs(t, errOf(schema.Compile(fmt.Appendf(nil, `{"%s":%s}`, keyword, number))), schema.ErrSchema, keyword)
		}
		for _, source := range []string{`{"type":"integer"}`, `{"minimum":1}`, `{"multipleOf":2}`, `{"const":1}`, `{"enum":[1]}`, `{"uniqueItems":true}`} {
			require.ErrorIs(t, compile(t, source).Validate(t.Context(), fmt.Appendf(nil, `[%s,%s]`, number, number)), schema.ErrValue)
			require.ErrorIs(t, compile(t, source).Validate(t.Context(), []byte(number)), schema.ErrValue)
		}
	}
}

func TestAttackEmptyEnum(t *testing.T) {
	t.Run("control", func(t *testing.T) {
		assert.NoError(t, must(jsonschema.CompileString("mem:///x", `{"enum":[]}`)).Validate("anything"), "the validator takes what allows nothing for what allows all")
	})
	require.ErrorIs(t, errOf(schema.Compile([]byte(`{"enum":[]}`))), schema.ErrSchema)
}

func TestAttackDuplicateKeys(t *testing.T) {
	t.Run("control", func(t *testing.T) {
		compiled := must(jsonschema.CompileString("mem:///x", `{"properties":{"a":{"const":"checked"}}}`))
		var value any
		require.NoError(t, json.Unmarshal([]byte(`{"a":"evil","a":"checked"}`), &value))
		assert.NoError(t, compiled.Validate(value), "only the last of two is looked at")
	})
	err := compile(t, `{"properties":{"a":{"const":"checked"}}}`).Validate(t.Context(), []byte(`{"a":"evil","a":"checked"}`))
	require.ErrorIs(t, err, schema.ErrValue)
}

// doubling is a schema in which each definition refers to the next one twice.
func doubling(levels int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range levels {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"minimum":0}}}`, levels)
	return b.String()
}

func TestAttackDoubling(t *testing.T) {
	t.Run("control", func(t *testing.T) {
		elapsed := func(levels int) time.Duration {
			compiled := must(jsonschema.CompileString("mem:///x", doubling(levels)))
			start := time.Now()
			require.NoError(t, compiled.Validate(json.Number("1")))
			return time.Since(start)
		}
		small, large := min(elapsed(8), elapsed(8), elapsed(8)), elapsed(15) // the first may be interrupted
		assert.Greater(t, large, 16*small, "seven more levels are 128 times the work")
	})
	start := time.Now()
	err := compile(t, doubling(40)).Validate(t.Context(), []byte("1"))
	require.ErrorIs(t, err, schema.ErrValue)
	assert.ErrorContains(t, err, "too much work")
	assert.Less(t, time.Since(start), 20*time.Second)
	require.NoError(t, compile(t, doubling(8)).Validate(t.Context(), []byte("1")))
}

func TestAttackCostlyPattern(t *testing.T) {
	hostile := `(.{0,900}x){0,1}$`
	text := strings.Repeat("y", 1<<20)
	start := time.Now()
	err := compile(t, `{"pattern":"`+hostile+`"}`).Validate(t.Context(), []byte(`"`+text+`"`))
	require.ErrorIs(t, err, schema.ErrValue)
	assert.ErrorContains(t, err, "too much work")
	assert.Less(t, time.Since(start), 10*time.Second)

	err = compile(t, `{"patternProperties":{"`+hostile+`":true}}`).Validate(t.Context(), manyNames(1000, 1000))
	require.ErrorIs(t, err, schema.ErrValue)
	assert.ErrorContains(t, err, "too much work")
}

func manyNames(count, length int) []byte {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `,"%s%d":1`, strings.Repeat("n", length), i)
	}
	return []byte("{" + b.String()[1:] + "}")
}

// TestAttackLongAddresses lets each of many schemas resolve a short $id against the long one around them.
func TestAttackLongAddresses(t *testing.T) {
	within := func(base string) []byte {
		var b strings.Builder
		fmt.Fprintf(&b, `{"$id":"https://example.com/%s/","$defs":{"":true`, base)
		for i := range schema.MaxSubschemas - 2 {
			fmt.Fprintf(&b, `,"d%d":{"$id":"%d"}`, i, i)
		}
		return []byte(b.String() + "}}")
	}
	require.NoError(t, errOf(schema.Compile(within(strings.Repeat("x", 1000)))))
	var err error
	used := allocated(func() { _, err = schema.Compile(within(strings.Repeat("x", 100_000))) })
	require.ErrorContains(t, err, "the address is too long")
	assert.Less(t, used, uint64(64<<20))
}

func TestAttackDeepNesting(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	tree := compile(t, `{"items":{"$ref":"#"}}`)
	require.NoError(t, tree.Validate(t.Context(), deep(schema.MaxDepth)))
	for _, depth := range []int{schema.MaxDepth + 1, 9_000, 1_000_000} {
		require.ErrorIs(t, tree.Validate(t.Context(), deep(depth)), schema.ErrValue)
	}
}

// chain is a schema with a long chain of references, which starts anew in each element of a list.
func chain(head string) string {
	const links = 900
	var b strings.Builder
	b.WriteString(head + `"allOf":[{"$ref":"#/definitions/d0"}],"definitions":{`)
	for i := range links {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/definitions/d%d"}]},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"items":{"$ref":"#"}}}}`, links)
	return b.String()
}

const draft7Head = `{"$schema":"http://json-schema.org/draft-07/schema#",`

// TestAttackStack multiplies a long chain of references by the depth of a value: the
// stack that this takes would end the process, and no recover helps.
func TestAttackStack(t *testing.T) {
	const smallStack = 32 << 20
	value := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	if os.Getenv("CAISSON_TEST_STACK") != "" {
		debug.SetMaxStack(smallStack)
		compiled := must(jsonschema.CompileString("mem:///x", chain(`{`)))
		var decoded any
		require.NoError(t, json.Unmarshal([]byte(value), &decoded))
		t.Log(compiled.Validate(decoded))
		return
	}
	t.Run("control", func(t *testing.T) {
		child := exec.Command(os.Args[0], "-test.run=^TestAttackStack$")
		child.Env = append(os.Environ(), "CAISSON_TEST_STACK=1")
		output, err := child.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(output), "stack exceeds")
	})
	defer debug.SetMaxStack(debug.SetMaxStack(smallStack))
	for name, head := range map[string]string{"2020-12": `{`, "draft 7": draft7Head} {
		t.Run(name, func(t *testing.T) {
			err := compile(t, chain(head)).Validate(t.Context(), []byte(value))
			require.ErrorIs(t, err, schema.ErrValue)
		})
	}
}

func TestAttackSize(t *testing.T) {
	err := compile(t, `{}`).Validate(t.Context(), []byte(`"`+strings.Repeat("x", schema.MaxValueBytes)+`"`))
	require.ErrorIs(t, err, schema.ErrValue)
	assert.ErrorContains(t, err, "over the limit")
	require.NoError(t, compile(t, `{}`).Validate(t.Context(), []byte(`"`+strings.Repeat("x", schema.MaxValueBytes-2)+`"`)))

	long := strings.Repeat("n", 1000)
	nested := strings.Repeat(`{"`+long+`":`, 60) + "[" + strings.Repeat("1,", 20_000) + "1]" + strings.Repeat("}", 60)
	start := time.Now()
	err = compile(t, `{"additionalProperties":{"$ref":"#"},"items":{"type":"string"}}`).Validate(t.Context(), []byte(nested))
	require.ErrorIs(t, err, schema.ErrValue)
	assert.Less(t, time.Since(start), 10*time.Second)
}

// allocated returns how many bytes a function allocates.
func allocated(function func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	function()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func list(element string, count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + "]"
}

// TestAttackLargeConstants lets the validator copy a constant into each of many errors,
// which takes the product of two sizes in memory.
func TestAttackLargeConstants(t *testing.T) {
	const elements, length = 1000, 4000
	constant := strings.Repeat("x", length)
	value := []byte(list(`"y"`, elements))
	for name, form := range map[string]string{
		"contains": `{"contains":{"const":"%s"}}`,
		"anyOf":    `{"items":{"anyOf":[{"const":"%s"},{"type":"string"}]}}`,
		"enum":     `{"contains":{"enum":["%s","a"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			control := must(jsonschema.CompileString("mem:///x", fmt.Sprintf(form, constant)))
			var decoded any
			require.NoError(t, json.Unmarshal(value, &decoded))
			if name != "enum" { // it writes the list once
				assert.Greater(t, allocated(func() { _ = control.Validate(decoded) }), uint64(elements*length))
			}
			small, large := compile(t, fmt.Sprintf(form, "x")), compile(t, fmt.Sprintf(form, constant))
			used := func(s *schema.Schema) uint64 { return allocated(func() { _ = s.Validate(t.Context(), value) }) }
			used(small)
			assert.Less(t, used(large), used(small)+elements*length/4)
		})
	}
	for _, form := range []string{`{"const":%s}`, `{"items":{"enum":[1,%s]}}`} {
		for _, large := range []string{`"` + strings.Repeat("x", 5000) + `"`, list("1", 5000), `{"a":` + list(`"abc"`, 1000) + `}`} {
			_, err := schema.Compile(fmt.Appendf(nil, form, large))
			require.ErrorIs(t, err, schema.ErrSchema)
			assert.ErrorContains(t, err, "over the limit of 4096 bytes")
		}
	}
}

// TestAttackLargeEnumeration compares each element with each value of a list.
func TestAttackLargeEnumeration(t *testing.T) {
	const values = 2000
	var b strings.Builder
	for i := range values {
		fmt.Fprintf(&b, ",%d.5", i)
	}
	source := `{"items":{"enum":[` + b.String()[1:] + `]}}`
	value := []byte(list("1.25", 200))
	t.Run("control", func(t *testing.T) {
		control := must(jsonschema.CompileString("mem:///x", source))
		var decoded any
		decoder := json.NewDecoder(strings.NewReader(string(value)))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&decoded))
		assert.Greater(t, allocated(func() { _ = control.Validate(decoded) }), uint64(100<<20))
	})
	compiled := compile(t, source)
	assert.Less(t, allocated(func() { _ = compiled.Validate(t.Context(), value) }), uint64(8<<20))
}

// TestAttackShownValue lets each of many alternatives show the whole value.
func TestAttackShownValue(t *testing.T) {
	value := []byte(list(`"some text"`, 10_000))
	once := allocated(func() { var decoded any; _ = json.Unmarshal(value, &decoded); _, _ = json.Marshal(decoded) })
	compiled := compile(t, `{"anyOf":[`+strings.Repeat(`{"const":1},`, 49)+`{"const":2}]}`)
	var err error
	used := allocated(func() { err = compiled.Validate(t.Context(), value) })
	require.ErrorIs(t, err, schema.ErrValue)
	assert.Less(t, len(err.Error()), 1000)
	assert.Less(t, used, 50*once/2)
}

// TestAttackSmallObjects decodes to many times the size of the text.
func TestAttackSmallObjects(t *testing.T) {
	value := []byte(list(`{"":0}`, 200_000))
	t.Run("control", func(t *testing.T) {
		var decoded any
		assert.Greater(t, allocated(func() { require.NoError(t, json.Unmarshal(value, &decoded)) }), uint64(40*len(value)))
	})
	compiled := compile(t, `{}`)
	var err error
	used := allocated(func() { err = compiled.Validate(t.Context(), value) })
	require.ErrorIs(t, err, schema.ErrValue)
	assert.ErrorContains(t, err, "too many values")
	assert.Less(t, used, uint64(120<<20))
}

// TestAttackDefectsInDepth makes many errors that each spell out a long path.
func TestAttackDefectsInDepth(t *testing.T) {
	const levels, defects = 50, 1000
	source := strings.Repeat(`{"items":`, levels) + `{"required":` + list("1", defects) + `}` + strings.Repeat("}", levels)
	control := allocated(func() {
		require.Error(t, errOf(jsonschema.CompileString("mem:///x", source)))
	})
	guarded := allocated(func() {
		require.ErrorIs(t, errOf(schema.Compile([]byte(source))), schema.ErrSchema)
	})
	assert.Less(t, guarded, control/4)
}

// TestAttackLargePatterns: Unicode classes, ranges of characters whose case does not matter, and repetitions make large
// things of short patterns. A schema of 224 KB held 165 MB, and a pattern of 3 KB took 660 MB and two seconds. Patterns
// after those that are too large are not compiled, and take nothing.
func TestAttackLargePatterns(t *testing.T) {
	for name, c := range map[string]struct {
		count   int
		pattern string
	}{
		"classes":    {8, strings.Repeat(`[^\\pL]`, 4000)},
		"class":      {1, `[` + strings.Repeat(`\\pL`, 3000) + `]`},
		"folded":     {1, `(?i)[` + strings.Repeat(`B-ɏ`, 4000) + `]`},
		"numbers":    {1, `x(?s-i)(?Ui:[` + strings.Repeat(`B-\\x{024F}`, 4000) + `])`},
		"far":        {17, `(?i)[B-𞥂]`},
		"negated":    {1, `(?i)[` + strings.Repeat(`\\W`, 40_000) + `]`},
		"repetition": {1, `(?:` + strings.Repeat("a", 300) + `){1000}`},
		"many":       {2000, `(?:` + strings.Repeat("a", 10) + `){900}`},
		"names":      {1000, `(?:\\pL\\pN){999}`},
	} {
		t.Run(name, func(t *testing.T) {
			source := []byte(`{"allOf":` + list(`{"pattern":"`+c.pattern+`"}`, c.count) + `}`)
			if name == "names" {
				source = []byte(strings.ReplaceAll(string(source), `"pattern":"`+c.pattern+`"`, `"patternProperties":{"`+c.pattern+`":{}}`))
			}
			var err error
			used := allocated(func() { _, err = schema.Compile(source) })
			require.ErrorIs(t, err, schema.ErrSchema)
			assert.ErrorContains(t, err, "the pattern is too large")
			assert.Less(t, used, uint64(32<<20))
		})
	}
	for pattern, count := range map[string]int{
		`^[\\p{L}\\p{M} .'-]{1,50}$`: 90, `(?i)^[a-z0-9][a-z0-9-]*\\.[a-zà-ÿ]{2,}$`: 500, `^(?:[^-]+-[^-]+){1,100}$`: 20,
	} {
		require.NoError(t, errOf(schema.Compile([]byte(`{"allOf":`+list(`{"pattern":"`+pattern+`"}`, count)+`}`))), "control: what people write")
	}
}

// TestAttackCopiedRanges: the regexp package copies the ranges of a class to each instruction that leads to it, if a
// pattern begins at the start of a text, so that a schema of 1 KB took 245 MB.
func TestAttackCopiedRanges(t *testing.T) {
	for _, pattern := range []string{`^\\pL{500}$`, `^` + strings.Repeat("(", 300) + `\\pL` + strings.Repeat(")", 300) + `$`} {
		var s *schema.Schema
		source := []byte(`{"allOf":` + list(`{"pattern":"`+pattern+`"}`, 31) + `}`)
		assert.Less(t, allocated(func() { s = compile(t, string(source)) }), uint64(32<<20))
		require.NoError(t, s.Validate(t.Context(), []byte(`1`)))
	}
	for text, pattern := range map[string]string{"ab": `^b`, "a\nb": `^b|a$`, "c": `a|^b`, "abc": `(?i)^B|^A$`} {
		assert.Error(t, compile(t, fmt.Sprintf(`{"pattern":%q}`, pattern)).Validate(t.Context(), fmt.Appendf(nil, "%q", text)), pattern)
	}
}

// TestAttackSharedBudget: validations that share a budget take little more than it all together.
func TestAttackSharedBudget(t *testing.T) {
	costly, cheap := compile(t, doubling(40)), compile(t, `{"minimum":0}`)
	ctx := new(schema.Budget).With(t.Context())
	require.NoError(t, cheap.Validate(ctx, []byte("1")))
	for range 2 {
		require.ErrorContains(t, costly.Validate(ctx, []byte("1")), "too much work")
	}
	err := cheap.Validate(ctx, []byte("1"))
	require.ErrorIs(t, err, schema.ErrValue)
	require.ErrorContains(t, err, "make fewer at a time")
	assert.False(t, schema.Spend(ctx, 0))
	require.NoError(t, cheap.Validate(t.Context(), []byte("1")), "control: another budget")
}
