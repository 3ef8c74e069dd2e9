package plugins

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// TestRandomUseOfBlocksGivesTheSame: a plug-in makes, fills, frees and reads blocks, variables and its configuration in
// random order, and reads the same contents on both hosts. Blocks that overlapped, or lost bytes, would show.
func TestRandomUseOfBlocksGivesTheSame(t *testing.T) {
	module, err := os.ReadFile("c/script.wasm")
	require.NoError(t, err)
	s := subject{name: "script", module: module, config: map[string]string{"vaa": "one", "vba": strings.Repeat("two ", 1000), "vca": ""}}
	p := newPair(s)
	for seed := range testsize.Of(10, 300) {
		random := rand.New(rand.NewPCG(2026, uint64(seed)))
		// Few numbers make blocks be used again often; many make many blocks.
		numbers, most := 1+random.IntN(1<<(1+random.IntN(8))), 1<<(1+random.IntN(16))
		var b strings.Builder
		for range 1 + random.IntN(1500) {
			const steps = "aaaaaffflsrSRhvvdggciwn"
			fmt.Fprintf(&b, "%c%02x%04x", steps[random.IntN(len(steps))], random.IntN(numbers)%256, random.IntN(most))
		}
		here, there := p.both(t, "run", b.String())
		require.Empty(t, there.Error, "seed %d", seed)
		require.NotContains(t, there.Output, "?", "seed %d", seed)
		require.Empty(t, here.Error, "seed %d", seed)
		if here.Output != there.Output {
			require.Fail(t, "the outputs differ", "seed %d\n%s\nours:   %s\ntheirs: %s", seed, b.String()[:200], brief(here.Output), brief(there.Output))
		}
		require.Len(t, here.Logs, len(there.Logs))
	}
}

// TestFreedBlocksServeAgain: blocks of a few sizes that are made and freed over and over take the room of one
// round, whatever the order in which they are freed.
func TestFreedBlocksServeAgain(t *testing.T) {
	module, err := os.ReadFile("c/script.wasm")
	require.NoError(t, err)
	for name, round := range map[string]string{
		"first to last": "a000070a010040a020010f000000f010000f020000",
		"last to first": "a000070a010040a020010f020000f010000f000000",
		"large ones":    "a001070a013040a020810f000000f010000f020000",
	} {
		t.Run(name, func(t *testing.T) {
			used := func(rounds int) int64 {
				outcome, err := caisson(t, subject{name: "script", module: module}, "run")(strings.Repeat(round, rounds))
				require.NoError(t, err)
				require.Empty(t, outcome.Result.Error)
				return outcome.Usage.MemoryBytes - int64(rounds*len(round)) // the input is a block as well
			}
			assert.InDelta(t, used(10), used(20_000), 1<<18)
		})
	}
}
