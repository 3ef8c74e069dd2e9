//go:build !race

package schema

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestValidationsLookAtTheirContextOften: none goes on for long without a look.
func TestValidationsLookAtTheirContextOften(t *testing.T) {
	for name, c := range longValidations {
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			for attempt := 0; ; attempt++ { // the machine may be busy
				ctx := newEnding(t, math.MaxInt)
				_ = compiled.Validate(ctx, []byte(c.value))
				longest := max(ctx.longest, time.Since(ctx.last))
				t.Log(longest, ctx.looks)
				if longest < 40*time.Millisecond {
					return
				}
				require.Less(t, attempt, 5, "it went on for %s", longest)
			}
		})
	}
}
