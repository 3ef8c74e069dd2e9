package turns

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLimits(t *testing.T) {
	standard := max(16, 4*runtime.GOMAXPROCS(0))
	tests := []struct {
		name        string
		given, want Limits
	}{
		{"zero", Limits{}, Limits{standard, standard * 3 / 4, standard / 2, 1024, 30 * time.Second}},
		{"one", Limits{Running: 1}, Limits{1, 1, 1, 1024, 30 * time.Second}},
		{"two", Limits{Running: 2}, Limits{2, 1, 1, 1024, 30 * time.Second}},
		{"seven", Limits{Running: 7}, Limits{7, 5, 3, 1024, 30 * time.Second}},
		{"all there are", Limits{Running: math.MaxInt}, Limits{math.MaxInt, math.MaxInt/4*3 + 2, math.MaxInt / 2, 1024, 30 * time.Second}},
		{"all set", Limits{3, 5, 4, 2, 1}, Limits{3, 5, 4, 2, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q, err := New(test.given)
			require.NoError(t, err)
			assert.Equal(t, test.want, q.limits)
		})
	}
}

func TestNegativeLimitsAreErrors(t *testing.T) {
	for name, limits := range map[string]Limits{
		"Running": {Running: -1}, "PerTenant": {PerTenant: -1}, "PerTool": {PerTool: -1}, "Waiting": {Waiting: -1}, "Wait": {Wait: -1},
	} {
		q, err := New(limits)
		require.Nil(t, q)
		var failure *Error
		require.ErrorAs(t, err, &failure)
		require.ErrorIs(t, err, ErrInvalidLimits)
		assert.EqualError(t, err, "turns: new: invalid limits: "+name+" is negative")
		assert.Equal(t, "new", failure.Op)
	}
}
