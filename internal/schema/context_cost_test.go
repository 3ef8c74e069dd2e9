//go:build !race

package schema

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// TestValidationsLookAtTheirContextOften: none continues for long without a look.
func TestValidationsLookAtTheirContextOften(t *testing.T) {
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(longValidations)), 4) {
		c := longValidations[name]
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			// A busy machine stops each attempt at other places, so the shortest time for each place counts.
			var shortest []time.Duration
			for attempt := 0; ; attempt++ {
				ctx := newEnding(t, math.MaxInt)
				_ = compiled.Validate(ctx, []byte(c.value))
				gaps := append(ctx.gaps, time.Since(ctx.last))
				if len(shortest) != len(gaps) {
					shortest = gaps
				}
				for i, gap := range gaps {
					shortest[i] = min(shortest[i], gap)
				}
				longest := slices.Max(shortest)
				t.Log(longest, ctx.looks)
				if longest < 40*time.Millisecond {
					return
				}
				require.Less(t, attempt, 5, "it continued for %s", longest)
			}
		})
	}
}
