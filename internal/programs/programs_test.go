package programs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStat(t *testing.T) {
	var fuel int64
	size := 0
	for seed := range uint64(2000) {
		p, o := Bounded(seed)
		fuel += o.Fuel
		m, err := p.Module()
		require.NoError(t, err)
		size += len(m)
	}
	t.Log("bounded: fuel, bytes on average", fuel/2000, size/2000)
	size = 0
	for seed := range uint64(2000) {
		p := Endless(seed)
		m, err := p.Module()
		require.NoError(t, err)
		size += len(m)
	}
	t.Log("endless: bytes on average", size/2000)
	for seed := range uint64(4) {
		t.Log(Endless(seed))
	}
	assert.True(t, true)
}
