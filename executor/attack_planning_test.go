//go:build !race

package executor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

// promisedOver is the maximum time after its deadline at which a call may end.
const promisedOver = 100 * time.Millisecond

// TestAttackArgumentsThatTakeLongToCheck: a tool that makes nested calls whose arguments take far longer to check
// than its timeout still ends in time, whether the arguments fit or not.
func TestAttackArgumentsThatTakeLongToCheck(t *testing.T) {
	const timeout = 300 * time.Millisecond
	parameters := func(pattern string, more fields) fields {
		properties := fields{"text": fields{"type": "string", "pattern": pattern}}
		for name, property := range more {
			properties[name] = property
		}
		return fields{"parameters": fields{"type": "object", "properties": properties}}
	}
	withDefault := fields{"unit": fields{"type": "string", "default": "m"}}
	cases := map[string]struct {
		parameters fields
		length     int
	}{
		"of a large schema that the host completes": {fields{"context": []string{"project_id"}, "parameters": fields{"type": "object", "properties": fields{
			"project_id": fields{"type": "string"}, "unit": fields{"type": "string"}, "many": fields{"properties": manyProperties(1900)}}, "required": []string{"project_id", "unit"}}}, 0},
		"that fit":          {parameters(`^(.*a){60}$`, nil), 110 << 10},
		"that do not":       {parameters(`^(.*a){60}b$`, nil), 110 << 10},
		"with a default":    {parameters(`^(.*a){60}b$`, withDefault), 110 << 10},
		"that are short":    {parameters(`^(.*a){600}b$`, withDefault), 12 << 10},
		"of a large schema": {fields{"parameters": fields{"type": "object", "properties": manyProperties(1900)}}, 0},
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(cases)), 3) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			written := `{"text":"` + strings.Repeat("a", c.length) + `"}`
			for _, callers := range []int{1, 16} {
				t.Run(fmt.Sprint(callers), func(t *testing.T) {
					for attempt := 0; ; attempt++ {
						e := newExecutor(t, executor.Options{
							Parallel: callers, Limits: executor.Limits{Running: callers, PerTenant: callers, PerTool: callers},
						}, newFake(t, "relay", may(true, "leaf"), relay), newFake(t, "leaf", merged(c.parameters, readOnly), echo))
						calls := make([]tool.Call, callers)
						for i := range calls {
							made := make([]tool.Function, 8) // so that there is enough to check
							for j := range made {
								made[j] = tool.Function{Name: "leaf", Arguments: strings.Replace(written, "{", fmt.Sprintf(`{"n":%d,`, 8*i+j), 1)}
							}
							calls[i] = newCall(fmt.Sprint(i), "relay", calling(made...))
						}
						began := time.Now()
						executeAll(t, e, executor.Batch{Calls: calls, Timeout: timeout, Session: newSession(t, e, executor.SessionOptions{Context: map[string]string{"project_id": "p"}})})
						late := time.Since(began) - timeout
						if late < promisedOver {
							return
						}
						require.Less(t, attempt, 3, "%s late", late)
					}
				})
			}
		})
	}
}

// manyProperties is a schema that takes long to compile.
func manyProperties(count int) fields {
	properties := fields{"again": fields{"$ref": "#", "default": fields{}}}
	for i := range count {
		properties[fmt.Sprintf("p%d", i)] = fields{"type": "string", "pattern": "^[a-z]{1,6}$", "default": "a"}
	}
	return properties
}

func merged(all ...fields) fields {
	one := fields{}
	for _, some := range all {
		for key, value := range some {
			one[key] = value
		}
	}
	return one
}
