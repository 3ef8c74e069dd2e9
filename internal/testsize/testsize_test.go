package testsize

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	selecting(t)("")
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	switch part {
	case 0:
		assert.Equal(t, 1, Of(1, 100))
		assert.Equal(t, []int{0, 6}, Sample(all, 2))
		assert.Equal(t, []int{0, 6}, QuickSample(all, 2))
	case 1:
		assert.Equal(t, 100, Of(1, 100))
		assert.Equal(t, all, Sample(all, 2))
	default:
		assert.Equal(t, 25, Of(1, 100))
		assert.Equal(t, []int{0, 4, 8}, Sample(all, 2))
	}
	assert.Equal(t, 100, Of(100, 100))
	assert.Equal(t, all, Sample(all, 12))
	assert.Equal(t, all, Sample(all, 0))
	assert.Equal(t, all, QuickSample(all, 12))
	if Slow {
		assert.Equal(t, all, QuickSample(all, 2))
	}
}

// selecting returns a function that sets the pattern of -run until the test ends.
func selecting(t *testing.T) func(pattern string) {
	run := flag.Lookup("test.run").Value
	before := run.String()
	t.Cleanup(func() { assert.NoError(t, run.Set(before)) })
	return func(pattern string) { require.NoError(t, run.Set(pattern)) }
}

// TestSelectedSubtestsAreThere: a sample is whole where a subtest is asked for.
func TestSelectedSubtestsAreThere(t *testing.T) {
	all := make([]int, 100)
	choose := selecting(t)
	for pattern, whole := range map[string]bool{"": Whole, "^TestA$": Whole, "^TestA$/b": true, "TestA/b|TestC": true} {
		choose(pattern)
		assert.Equal(t, whole, len(Sample(all, 2)) == len(all), pattern)
		assert.Equal(t, whole || Slow, len(QuickSample(all, 2)) == len(all), pattern)
	}
}
