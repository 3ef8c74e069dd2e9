package mcp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
