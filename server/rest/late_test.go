package rest

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackLateAnswersOfRevokedTokens: the answer of a call that has run is made for a while after its client has
// gone, and not at all if the token has ended, so that it holds no place of its tenant.
func TestAttackLateAnswersOfRevokedTokens(t *testing.T) {
	for name, test := range map[string]struct {
		why   error
		lasts time.Duration
	}{
		"the token was revoked":            {auth.ErrRevoked, 0},
		"control: the client disconnected": {errors.New("it has gone"), lateAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				request, end := context.WithCancelCause(t.Context())
				x := &exchange{request: httptest.NewRequestWithContext(request, "POST", "/v1/calls", nil)}
				ctx, done := x.untilLate()
				defer done()
				began := time.Now()
				end(test.why)
				<-ctx.Done()
				assert.Equal(t, test.lasts, time.Since(began))
			})
		})
	}
}
