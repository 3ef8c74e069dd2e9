package rest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackRepeatedWithoutAnyAnswer: a request with a key that has had its effect has it once, also if no answer can
// be made. The control is a request that fails before its effect.
func TestAttackRepeatedWithoutAnyAnswer(t *testing.T) {
	broken := errors.New("it cannot be written")
	for _, test := range []struct {
		name  string
		begun func() (reply, error)
		calls int
	}{
		{"an answer that cannot be written", func() (reply, error) { return reply{}, broken }, 1},
		{"a panic", func() (reply, error) { panic("it cannot be written") }, 1},
		{"the control", nil, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			api, calls := &API{keys: &keys{byTenant: map[string]*keysOf{}, options: KeyOptions{Keep: time.Hour, PerTenant: 10}}}, 0
			for range 2 {
				x := &exchange{api: api, request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/calls", nil)}
				x.route = &route{handle: func(x *exchange) (reply, error) {
					calls++
					x.begun = test.begun
					if test.begun == nil {
						return reply{}, broken
					}
					return test.begun()
				}}
				var err error
				func() {
					defer func() {
						if recover() != nil {
							err = errNoAnswer
						}
					}()
					_, err = x.serveIdempotent([]string{"k"})
				}()
				require.Error(t, err)
			}
			assert.Equal(t, test.calls, calls)
		})
	}
}
