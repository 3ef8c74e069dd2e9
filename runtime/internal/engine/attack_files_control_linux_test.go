//go:build !race

package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAttackFilesProcControl: through a link to /proc, a guest reads with what its host
// was started.
func TestAttackFilesProcControl(t *testing.T) {
	answers := newUnguarded(t).call(t, readOnly(newExposed(t).project),
		opening("proc/cmdline", 0, readRight), wasiCall{"call": "fd_read", "fd": -1, "size": 4096})
	assert.Zero(t, answers[0].Errno)
	assert.Contains(t, answers[1].Text, "engine.test")
}
