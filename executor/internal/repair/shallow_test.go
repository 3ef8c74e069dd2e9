package repair

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// TestShallowFillsAsAWalkDoes: wherever the quick way gives an answer, it is the walk's.
func TestShallowFillsAsAWalkDoes(t *testing.T) {
	for source, answers := range map[string]bool{
		`{"properties":{"a":{"default":1},"b c":{"default":"x"},"owned":{"default":2}}}`:                                        true,
		`{"properties":{"a":{"default":1},"d":{"default":{},"properties":{"q":{"default":1}}}}}`:                                false,
		`{"properties":{"a":{"default":1}},"additionalProperties":{"properties":{"x":{"default":1}}}}`:                          false,
		`{"allOf":[{"properties":{"a":{"default":1}}},{"$ref":"#/$defs/d"}],"$defs":{"d":{"properties":{"n":{"default":[]}}}}}`: true,
		`{"properties":{"a":{"default":"` + strings.Repeat("x", 4000) + `"}}}`:                                                  true,
	} {
		s := noerr.Get(schema.Compile([]byte(source)))(t)
		r := New(t.Context(), s, nil, func(name string) bool { return name == "owned" })
		for _, text := range []string{
			`{}`, `{"a":5}`, `{"owned":1,"n":2}`, `{"a":5,"b c":null}`, `{"d":{}}`, `{"d":{"q":2},"a":1}`, `{"n":"` + strings.Repeat("x", tool.MaxArgumentsBytes-2000) + `"}`,
		} {
			own := noerr.Get(tool.ParseArguments(text))(t)
			quick, done := r.shallow.fill(own)
			if require.Equal(t, answers, done, source); !done {
				continue
			}
			walked := r.pass(t.Context(), own, nil, false, true)
			assert.Equal(t, walked.Repairs, quick.Repairs)
			assert.Equal(t, string(walked.Arguments.AppendCanonical(nil)), string(quick.Arguments.AppendCanonical(nil)))
		}
	}
}
