package testsize_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/testsize"
)

func TestSizes(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	if testsize.Slow {
		assert.Equal(t, 100, testsize.Of(1, 100))
		assert.Equal(t, all, testsize.Sample(all, 2))
		return
	}
	assert.Equal(t, 1, testsize.Of(1, 100))
	assert.Equal(t, []int{0, 2, 4}, testsize.Sample(all, 3))
	assert.Equal(t, all, testsize.Sample(all, 7))
	assert.Equal(t, all, testsize.Sample(all, 0))
}
