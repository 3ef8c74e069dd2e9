package programs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShrink: of a program that fails because it grows the memory, little more is left.
func TestShrink(t *testing.T) {
	for seed := range uint64(100) {
		p, _ := Bounded(seed)
		grows := func() bool {
			_, err := p.Run(mostFuel)
			return err == nil && strings.Contains(p.String(), "memory.grow")
		}
		if !grows() {
			continue
		}
		Shrink(p, grows, time.Now().Add(10*time.Second))
		require.True(t, grows())
		nodes := 0
		for _, f := range p.Functions {
			nodes += count(f.Body)
		}
		assert.LessOrEqual(t, nodes, 2*len(p.Functions)+4, "%s", p)
		return
	}
	t.Fatal("no program grows the memory")
}

func count(nodes []*Node) int {
	n := len(nodes)
	for _, inner := range nodes {
		n += count(inner.Args) + count(inner.Body) + count(inner.Else)
	}
	return n
}
