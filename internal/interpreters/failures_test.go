package interpreters

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestFailuresOfPrograms: a program that fails says why in its own words, although its interpreter looked for its own
// files, which are not granted.
func TestFailuresOfPrograms(t *testing.T) {
	python := load(t, newRuntime(t), interpreterOf(t, "python"), `["-c", "{code}"]`, time.Minute)
	for code, want := range map[string]tool.Result{
		"import sys; sys.exit(3)": {Kind: tool.ToolFailed, Error: "the tool exited with code 3"},
		"raise ValueError(1)": {Kind: tool.ToolFailed, Error: "the tool exited with code 1:\nTraceback (most recent call last):\n" +
			"  File \"<string>\", line 1, in <module>\nValueError: 1"},
		"import sys; sys.stdin.read(); sys.exit('no such city; try Oslo')": {Kind: tool.ToolFailed, Error: "the tool exited with code 1: no such city; try Oslo"},
		"open('/etc/x.conf')": {Kind: tool.Denied, Error: "denied: files /etc/x.conf: no granted directory holds this path; " +
			"the tool exited with code 1:\nTraceback (most recent call last):\n" +
			"  File \"<string>\", line 1, in <module>\nPermissionError: [Errno 63] Operation not permitted: '/etc/x.conf'"},
	} {
		outcome, err := python.Invoke(t.Context(), program{code: code}.invocation(t))
		assert.Equal(t, want, outcome.Result, code)
		assert.Equal(t, want.Kind == tool.Denied, err != nil, code)
		assert.NotEmpty(t, outcome.Denials, "%s: what the interpreter looked for is in the record", code)
	}
}
