package swept

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStaleEntriesGo: a map of a few hundred fresh entries never has many more. Control: those that are
// fresh stay.
func TestStaleEntriesGo(t *testing.T) {
	for _, fresh := range []int{600, 20_000} {
		var m Map[int, int]
		for i := range 20_000 {
			m.Put(i, i, func(then int) bool { return i-then > fresh })
			assert.LessOrEqual(t, m.Len(), max(least, 2*fresh+2))
		}
		for i := 20_000 - fresh; i < 20_000; i++ {
			value, ok := m.Get(i)
			require.True(t, ok)
			require.Equal(t, i, value)
		}
		m.Delete(19_999)
		_, ok := m.Get(19_999)
		assert.False(t, ok)
	}
}

// TestFullMapsForget: a map with a bound never has more entries, and keeps the one that was added last.
func TestFullMapsForget(t *testing.T) {
	for _, most := range []int{2, 100, 5000} {
		m := Map[int, int]{Most: most}
		for i := range 20_000 {
			m.Put(i, i, func(int) bool { return false })
			require.LessOrEqual(t, m.Len(), most)
			_, ok := m.Get(i)
			require.True(t, ok)
		}
		assert.GreaterOrEqual(t, m.Len(), most/2)
	}
}
