package metered_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// TestChargesAreExact: a unit more or less anywhere is noticed.
func TestChargesAreExact(t *testing.T) {
	changed := 0
	for name, source := range known {
		if name == unreached {
			continue // its charges are never executed
		}
		done, ok := rewritten(source)
		require.True(t, ok, name)
		if len(done) > 4096 {
			continue // too many to try
		}
		for at := range len(done) - 3 {
			global := done[at] == 0x42 && done[at+2] == 0x7d
			own := done[at] == 0x41 && done[at+2] == 0x6a && (done[at+3] == 0x21 && done[at+4] != 0 || done[at+3] == 0xad)
			if units := done[at+1]; !global && !own || units == 0 || units > 60 {
				continue
			}
			changed++
			for _, change := range []byte{1, 0xff} {
				mutant := slices.Clone(done)
				mutant[at+1] += change
				assert.Error(t, metered.Verify(mutant), fmt.Sprintf("%s: %d of %d", name, mutant[at+1], at))
			}
		}
	}
	assert.Greater(t, changed, 30)
}

// FuzzVerify: whatever the bytes, it returns.
func FuzzVerify(f *testing.F) {
	for _, source := range known {
		if done, ok := rewritten(source); ok {
			f.Add(done)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if err := metered.Verify(source); err != nil {
			require.ErrorIs(t, err, metered.ErrUnproved)
		}
	})
}
