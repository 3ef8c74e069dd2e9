package repair

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// TestShallowFillsAsAWalkDoes: wherever the quick way gives an answer, it is the walk's.
func TestShallowFillsAsAWalkDoes(t *testing.T) {
	const names = `"a":{"default":1},"b c":{"default":"x"},"owned":{"default":2},"n":{},"o":{"properties":{"p":{"default":1}}},"d":{"default":{},"properties":{"q":{"default":1}}}`
	sources := map[string]int{ // and how many of the arguments are answered
		`{"properties":{"a":{"default":1},"b c":{"default":"x"},"owned":{"default":2}}}`:                                        9,
		`{"properties":{` + names + `}}`:                                                                                        0,
		`{"properties":{"a":{"default":1}},"additionalProperties":{"properties":{"x":{"default":1}}}}`:                          0,
		`{"allOf":[{"properties":{"a":{"default":1}}},{"$ref":"#/$defs/d"}],"$defs":{"d":{"properties":{"n":{"default":[]}}}}}`: 9,
		`{"properties":{"a":{"default":"` + strings.Repeat("x", 4000) + `"}}}`:                                                  9,
	}
	arguments := []string{
		`{}`, `{"a":5}`, `{"owned":1,"n":2}`, `{"a":5,"b c":null}`, `{"o":{}}`, `{"d":{}}`, `{"d":{"q":2},"a":1,"b c":2}`, `{"x":{}}`,
		`{"n":"` + strings.Repeat("x", tool.MaxArgumentsBytes-2000) + `"}`,
	}
	for source, want := range sources {
		s, err := schema.Compile([]byte(source))
		require.NoError(t, err)
		r, err := New(t.Context(), s, func(name string) bool { return name == "owned" })
		require.NoError(t, err)
		answered := 0
		for _, text := range arguments {
			own, err := tool.ParseArguments(text)
			require.NoError(t, err)
			quick, done := r.shallow.fill(own)
			if !done {
				continue
			}
			answered++
			walked, err := r.pass(t.Context(), own, nil, false, true)
			require.NoError(t, err)
			assert.Equal(t, walked.Repairs, quick.Repairs)
			assert.Equal(t, written(t, walked.Arguments), written(t, quick.Arguments))
		}
		assert.Equal(t, want, answered, source)
	}
}

func written(t *testing.T, arguments tool.Arguments) string {
	t.Helper()
	text, err := arguments.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}
