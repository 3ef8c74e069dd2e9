package plugins

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// counters are the exports that count their calls, where they can.
func counters(language Language) []string {
	if language == C || language == AssemblyScript { // the other compilers put no variable into a global
		return []string{"count_memory", "count_global", "count_var"}
	}
	return []string{"count_memory", "count_var"}
}

// TestCallsFindNothingOfEarlierOnes: a counter in memory, in a global or in a variable of the host reads 1 in every
// call, whether calls start the plug-in or resume it. In the control, the instance of go-sdk that is used again counts.
func TestCallsFindNothingOfEarlierOnes(t *testing.T) {
	for _, language := range languages() {
		s := pdk(t, language)
		for _, export := range counters(language) {
			t.Run(fmt.Sprintf("%s/%s", language, export), func(t *testing.T) {
				for _, snapshot := range []string{"auto", "start", "off"} {
					s.snapshot = snapshot
					call := ours{}.load(t, s, export)
					for range testsize.Of(10, 500) {
						assert.Equal(t, answer{Output: "1"}, call(""))
					}
				}
				t.Run("control", func(t *testing.T) {
					call := theirs{reused: true}.load(t, s, export)
					for count := range 3 {
						assert.Equal(t, answer{Output: fmt.Sprint(count + 1)}, call(""))
					}
				})
			})
		}
	}
}

// TestCallsAtOnceFindNothingOfEachOther: calls that run at the same time, too.
func TestCallsAtOnceFindNothingOfEachOther(t *testing.T) {
	for _, language := range []Language{C, Go} {
		s := pdk(t, language)
		for _, export := range counters(language) {
			t.Run(fmt.Sprintf("%s/%s", language, export), func(t *testing.T) {
				call := caisson(t, s, export)
				var mu sync.Mutex
				var outputs []string
				var callers sync.WaitGroup
				for range 8 {
					callers.Go(func() {
						for range testsize.Of(5, 100) {
							outcome, err := call("")
							mu.Lock()
							outputs = append(outputs, outcome.Result.Output)
							mu.Unlock()
							assert.NoError(t, err)
						}
					})
				}
				callers.Wait()
				slices.Sort(outputs)
				require.Equal(t, []string{"1"}, slices.Compact(outputs))
			})
		}
	}
}

// TestFailedCallsLeaveNothing: neither does a call that trapped or failed after it counted.
func TestFailedCallsLeaveNothing(t *testing.T) {
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) {
			s := pdk(t, language)
			count, trap, fail := ours{}.load(t, s, "count_memory"), ours{}.load(t, s, "trap"), ours{}.load(t, s, "fail")
			for range 3 {
				assert.NotEmpty(t, trap("x").Error)
				assert.Contains(t, fail("a reason").Error, "a reason")
				assert.Equal(t, answer{Output: "1"}, count(""))
			}
		})
	}
}
