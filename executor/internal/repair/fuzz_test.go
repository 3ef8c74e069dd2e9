package repair_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// FuzzRepair: no schema and no arguments make a repair panic, take long, or break what is
// true of each.
func FuzzRepair(f *testing.F) {
	for _, source := range []string{
		`{"type":"object","properties":{"n":{"type":"integer","maximum":9},"l":{"type":"array","items":{"type":"string"}},"d":{"default":1}}}`,
		`{"properties":{"v":{"anyOf":[{"type":"integer","minimum":3},{"$ref":"#"}]},"o":{"type":"object","$ref":"#"}},"required":["v"]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"boolean"}],"additionalItems":{"type":"null"}}}}`,
		`{"properties":{"v":{"$dynamicRef":"#x","enum":[1,"a",null]}},"$defs":{"x":{"$dynamicAnchor":"x","const":{}}}}`,
		`{"if":{"required":["n"]},"then":{"properties":{"n":{"type":"number"}}},"unevaluatedProperties":false,"allOf":[{"properties":{"v":{"type":"string"}}}]}`,
	} {
		for _, arguments := range []string{`{"n":"5","l":"a"}`, `{"v":"1","o":"{\"v\":[]}"}`, `{"input":{"n":"50"}}`, `{"l":["true",null]}`, `{"v":null,"n":1e400}`, `{"o":{"o":{"v":"2"}}}`} {
			f.Add(source, arguments)
		}
	}
	f.Fuzz(func(t *testing.T, source, arguments string) {
		s, err := schema.Compile([]byte(source))
		if err != nil {
			return
		}
		if _, err := tool.ParseArguments(arguments); err != nil {
			return
		}
		start := time.Now()
		holdsProperties(t, s, arguments)
		require.Less(t, time.Since(start), 30*time.Second)
	})
}

// FuzzTolerant: valid JSON is never taken for almost JSON, and the result is a JSON object.
func FuzzTolerant(f *testing.F) {
	for _, seed := range tolerantSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		arguments, repairs, ok := repair.Text(source, true)
		if !ok {
			return
		}
		require.Len(t, repairs, 1)
		require.Error(t, noerr.Error(tool.ParseArguments(source)), "valid arguments need no repair")
		if json.Valid([]byte(source)) {
			require.Equal(t, string(repair.ParseJSON), repairs[0].Rule)
		} else {
			raw := noerr.Decode[string](t, repairs[0].From)
			require.Equal(t, source, raw)
		}
		require.Equal(t, text(t, arguments), string(repairs[0].To))
		require.Equal(t, text(t, arguments), text(t, parse(t, string(repairs[0].To))))
	})
}
