package caisson_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
)

// TestAttackRedactedValuesInTheLedger: a value that a rule redacts is in no file of the ledger, nor among its words,
// although the tool repeats it. The caller gets it. The control is a host without the rule.
func TestAttackRedactedValuesInTheLedger(t *testing.T) {
	const secret = "ann.lovelace"
	redacting := noerr.Get(manifests.ParsePolicy("caisson.yaml", []byte(`schema: caisson-config/v1
redact: [{tools: [greet], arguments: [/who]}]
`)))(t)
	for name, policies := range map[string][]*manifests.Policy{"redacted": {redacting}, "control": nil} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			host := greeting(t, caisson.Options{StateDir: state, Policies: policies}, nil)
			record := noerr.Get(host.Call(t.Context(), "greet", `{"who": "`+secret+`", "how": "kindly"}`))(t)
			assert.Contains(t, record.Result.Output, secret)
			assert.False(t, record.Redacted)
			words := func(words string) int {
				calls, _, err := host.KeptCalls(t.Context(), "", caisson.CallFilter{Words: words})
				require.NoError(t, err)
				return len(calls)
			}
			control := name == "control"
			assert.Equal(t, control, words("lovelace") == 1)
			assert.Equal(t, 1, words("kindly"))
			require.NoError(t, host.CloseRecords(t.Context()))
			kept := tooltest.Kept(t, state, record.CallID)
			assert.Equal(t, !control, kept.Record.Redacted)
			found := false
			require.NoError(t, fs.WalkDir(os.DirFS(state), ".", func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					found = found || strings.Contains(string(noerr.Get(os.ReadFile(filepath.Join(state, path)))(t)), "lovelace")
				}
				return err
			}))
			assert.Equal(t, control, found)
		})
	}
}
