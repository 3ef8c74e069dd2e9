package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

const early = "internal/guests/early/early.wasm"

// TestStartsOfTenantsNeverMeet: what a program does before it reads its input is either the
// same for all calls or done anew in each. One tenant's call never gets what another's
// start read, although the author says that the program may be started once.
func TestStartsOfTenantsNeverMeet(t *testing.T) {
	tests := []struct {
		does   string
		args   string
		reason string // why it is started anew
		anew   bool
	}{
		{"file", "file", "before it reads its input", true},
		{"log", "log", "it calls fd_write before it reads its input", true},
		{"argument", `"{who}"`, "its command line depends on the call", true},
		{"constant", "constant", "", false},
		// The control: what a start did is there in each call.
		{"random", "random", "", false},
	}
	for _, test := range tests {
		t.Run(test.does, func(t *testing.T) {
			base := t.TempDir()
			m := manifest(t, early, fmt.Sprintf("module: {path: guest.wasm, args: [%s], stdout: text}\n"+
				"parameters: {type: object, properties: {who: {type: string}}}\nbehavior: {snapshot: start}\n"+
				"context: [project_id]\npermissions: {files: [{path: /project, access: read}]}\n", test.args))
			guest := load(t, newRuntime(t, Options{}), m, Grants{Context: []string{"project_id"}, Files: []FileGrant{{
				Path: "/project", Host: filepath.Join(base, "{project_id}"), Access: manifests.Read,
			}}})
			outputs := map[string]bool{}
			for n := range 8 {
				who := fmt.Sprintf("tenant-%d", n%4)
				require.NoError(t, os.MkdirAll(filepath.Join(base, who), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(base, who, "tenant.txt"), []byte(who), 0o600))
				outcome, err := guest.Invoke(t.Context(), invocation(t, fmt.Sprintf(`{"who":%q}`, who), map[string]string{"project_id": who}))
				require.NoError(t, err, outcome.Log)
				switch test.does {
				case "file", "argument":
					assert.Equal(t, fmt.Sprintf(`%s {"who":%q}`, who, who), outcome.Result.Output)
				case "random":
					if n > 0 { // the first call is not resumed
						outputs[outcome.Result.Output[:10]] = true
					}
				default:
					assert.Contains(t, outcome.Result.Output, who)
				}
			}
			assert.Contains(t, guest.program.reason, test.reason)
			assert.Equal(t, test.anew, guest.program.started == nil, guest.program.reason)
			if test.does == "random" {
				assert.Len(t, outputs, 1, "what was drawn as it started is the same in each call")
			}
		})
	}
}
