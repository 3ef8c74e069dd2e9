package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInputReadByStartSectionIsReadInEachCall: a program whose start section (§5.5.11) reads
// the input has read it before the function that is resumed has begun. There is no place to
// resume, and what it read is one tenant's.
func TestInputReadByStartSectionIsReadInEachCall(t *testing.T) {
	const begins = len(`{"who":"a`) // what the start section reads
	section := func(read, rest string) string { return "section " + read + " " + rest }
	guest := loadEarly(t, newRuntime(t, Options{}), languages["C"], start{does: "input-section"})
	for n := range 8 {
		who := tenants[n%len(tenants)]
		require.NotPanics(t, func() {
			outcome, err := guest.Invoke(t.Context(), invocationOf(t, who))
			require.NoError(t, err, outcome.Log)
			assert.Equal(t, section(inputOf(who)[:begins], inputOf(who)[begins:]), outcome.Result.Output)
		})
		if n == 1 {
			started, reason := guest.program.settled(t)
			assert.Nil(t, started)
			assert.Equal(t, tooEarly("fd_read"), reason)
		}
	}

	// The control: without the guard the call has what another tenant's input begins with.
	u := newUnguardedTool(t, guest)
	started, err := u.start(t, "ann")
	require.NoError(t, err)
	defer func() { require.NoError(t, started.Drop()) }()
	assert.Equal(t, section(inputOf("ann")[:begins], inputOf("dieter")), u.resume(t, started, "dieter").output)
}
