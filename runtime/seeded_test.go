package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
)

const (
	seededGo   = "internal/guests/seeded/seeded.wasm"
	seededC    = "internal/guests/seeded/c/seeded.wasm"
	reseededGo = "internal/guests/reseeded/reseeded.wasm"
)

func TestSeededGeneratorsAreFound(t *testing.T) {
	_, err := guests.Compile(t.Context(), "internal/guests/seeded", "internal/guests/reseeded")
	require.NoError(t, err)
	for module, want := range map[string][]string{
		seededGo:                      {"Go's math/rand/v2"},
		seededC:                       {"C's srand"},
		reseededGo:                    {},
		"wasm-tools/files/files.wasm": {},
	} {
		info, err := InspectModule(manifest(t, module, ""))
		require.NoError(t, err)
		assert.Equal(t, want, info.SeededGenerators, module)
	}
}

// TestWhatASnapshotRepeats: which parts of the output, as words, are the same in all calls
// that resume one snapshot.
func TestWhatASnapshotRepeats(t *testing.T) {
	_, err := guests.Compile(t.Context(), "internal/guests/seeded", "internal/guests/reseeded")
	require.NoError(t, err)
	const repeated, fresh = true, false
	tests := []struct {
		module, arguments, snapshot string
		words                       []bool
	}{
		{seededGo, "", "start", []bool{repeated, repeated, fresh}},
		{reseededGo, "", "start", []bool{fresh, repeated, repeated}},
		{seededC, "entropy, early", "start", []bool{repeated}},
		{seededC, "entropy, early", "auto", []bool{fresh}},
		{seededC, "entropy, early", "off", []bool{fresh}},
		{seededC, "entropy, late", "start", []bool{fresh}},
		{seededC, "clock, late", "start", []bool{fresh}},
		{seededC, "clock, early", "start", []bool{repeated}},
	}
	for _, test := range tests {
		t.Run(strings.Join([]string{test.module, test.arguments, test.snapshot}, " "), func(t *testing.T) {
			loaded := load(t, newRuntime(t, Options{}), manifest(t, test.module, fmt.Sprintf(
				"module: {path: guest.wasm, args: [%s], stdout: text}\nbehavior: {snapshot: %s}\n", test.arguments, test.snapshot)), manifests.Grants{})
			invokedForWords(t, loaded) // by itself: there may be no other
			invokedForWords(t, loaded) // has the program started, beside it
			started, reason := loaded.program.settled(t)
			calls := [][]string{invokedForWords(t, loaded), invokedForWords(t, loaded), invokedForWords(t, loaded)}
			if test.snapshot == "start" {
				require.NotNil(t, started, reason)
			}
			for at, want := range test.words {
				given := []string{calls[0][at], calls[1][at], calls[2][at]}
				slices.Sort(given)
				if want == repeated {
					assert.Len(t, slices.Compact(given), 1, "word %d", at)
				} else {
					assert.Len(t, slices.Compact(given), 3, "word %d", at)
				}
			}
		})
	}
}

// invokedForWords makes a call, and returns the words that it printed.
func invokedForWords(t *testing.T, loaded *Tool) []string {
	t.Helper()
	outcome, err := invoke(t, loaded, "{}")
	require.NoError(t, err)
	words := strings.Fields(outcome.Result.Output)
	require.NotEmpty(t, words, "%+v", outcome.Result)
	return words
}
