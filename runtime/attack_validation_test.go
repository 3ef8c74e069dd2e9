//go:build !race

package runtime

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackResultsThatTakeLongToCheck: calls that end just before their deadlines, with data that takes
// far longer to check against the tool's own schema, are not late for it, nor succeed after it.
func TestAttackResultsThatTakeLongToCheck(t *testing.T) {
	cases := []struct {
		name, schema, text string
		times              int
	}{
		{"one match", `{pattern: '^(.*a){60}$'}`, "a", 120 << 10},
		{"one match of classes", `{pattern: '^(?:\P{Han}*\PN){29}$'}`, "a", 130 << 10},
		{"a match of a misfit", `{anyOf: [{pattern: '^(.*a){60}b$'}, {type: "null"}]}`, "a", 120 << 10},
		{"several of a short one", `{allOf: [` + strings.Repeat(`{pattern: '^(.*a){100}$'},`, 12) + `{}]}`, "a", 6 << 10},
	}
	for _, c := range testsize.Sample(cases, 2) {
		t.Run(c.name, func(t *testing.T) {
			r := newRuntime(t, Options{})
			m := manifest(t, probe, "module: {path: guest.wasm, stdout: json}\nlimits: {timeout: 1s, output: 4MiB}\nresult: "+c.schema+"\n")
			guest := load(t, r, m, manifests.Grants{})
			text := `"` + strings.Repeat(c.text, c.times) + `"`
			arguments, err := json.Marshal(map[string]any{"do": "print", "text": text, "times": 1, "millis": 970})
			require.NoError(t, err)
			for _, callers := range testsize.Sample([]int{lateCalls, 1}, 1) {
				t.Run(fmt.Sprint(callers), func(t *testing.T) {
					for attempt := 0; ; attempt++ { // a busy machine may keep guests from ending in time
						outcomes, late := togetherBy(t, guest, string(arguments), callers)
						ended := 0
						for _, outcome := range outcomes {
							assert.NotEqual(t, tool.ToolFailed, outcome.Result.Kind, outcome.Result.Error)
							if outcome.Result.Kind == tool.Deadline {
								ended++
							}
						}
						if late < promisedOver && ended > 0 {
							return
						}
						require.Less(t, attempt, 3, "%s late, %d of the calls were", late, ended)
					}
				})
			}
		})
	}
}
