package testsize

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSizes(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	switch part {
	case 0:
		assert.Equal(t, 1, Of(1, 100))
		assert.Equal(t, []int{0, 6}, Sample(all, 2))
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
}
