package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/tooltest"
)

// A tenant leaves more questions open than there is room for. Another's, from before and from after, can be answered.
func TestAttackQuestionsOfOneTenant(t *testing.T) {
	for _, test := range []struct {
		name, victim string
		before       bool
	}{{"guarded", "victim", true}, {"control: of the same tenant", "attacker", false}} {
		t.Run(test.name, func(t *testing.T) {
			var w waiting
			const victims = "the victim's session"
			before := w.put(paused{by: victims, tenant: test.victim})
			for session := range 2 * maxWaiting / maxWaitingOwn {
				for range maxWaitingOwn {
					w.put(paused{by: fmt.Sprint("session ", session), tenant: "attacker"})
				}
			}
			assert.Len(t, w.calls, maxWaiting)
			after := w.put(paused{by: victims, tenant: test.victim})
			_, ok := w.take(victims, before)
			assert.Equal(t, test.before, ok)
			_, ok = w.take(victims, after)
			assert.True(t, ok)
		})
	}
}

// TestAttackTakenQuestions: a question that was taken and not answered counts like another. The control is one that is
// not put back.
func TestAttackTakenQuestions(t *testing.T) {
	for _, back := range []bool{true, false} {
		var w waiting
		state := w.put(paused{by: "a session"})
		taken, ok := w.take("a session", state)
		require.True(t, ok)
		for range maxWaitingOwn {
			w.put(paused{by: "a session"})
		}
		if back {
			w.add(taken, state)
		}
		assert.Len(t, w.calls, maxWaitingOwn)
		assert.Equal(t, back, w.calls[state].by != "")
	}
}

// TestAttackLogOfDisconnects: requests that are handled when their clients have disconnected are no failures of the
// server. The control is another error.
func TestAttackLogOfDisconnects(t *testing.T) {
	for err, logged := range map[error]bool{errGone: false, errors.New("the disk is full"): true} {
		log := &tooltest.Log{}
		s := &Server{failures: slog.New(slog.NewTextHandler(log, nil))}
		require.Error(t, s.failed(t.Context(), callMethod, fmt.Errorf("a call: %w", err)))
		assert.Equal(t, logged, log.String() != "", log.String())
	}
}
