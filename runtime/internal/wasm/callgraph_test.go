package wasm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// graphOf makes a call graph of lists of callees.
func graphOf(callees ...[]uint32) *callGraph {
	g := &callGraph{functions: len(callees), first: []uint32{0}}
	for _, list := range callees {
		g.callees = append(g.callees, list...)
		g.first = append(g.first, uint32(len(g.callees)))
	}
	return g
}

func TestRecursion(t *testing.T) {
	tests := []struct {
		title     string
		callees   [][]uint32
		recursive []uint32
		chain     int64 // with 10 for each node, and its number
	}{
		{"nothing", nil, nil, 0},
		{"alone", [][]uint32{{}}, nil, 10},
		{"itself", [][]uint32{{0}}, []uint32{0}, 0},
		{"a chain", [][]uint32{{1}, {2}, {}}, nil, 33},
		{"the heavier of two ways", [][]uint32{{1, 2}, {3}, {3}, {}}, nil, 10 + 12 + 13},
		{"each other", [][]uint32{{1}, {0}}, []uint32{0, 1}, 0},
		{"a cycle on the way", [][]uint32{{1}, {2}, {1, 3}, {}}, []uint32{1, 2}, 10 + 13},
		{"two cycles", [][]uint32{{1}, {0, 2}, {3}, {2}}, []uint32{0, 1, 2, 3}, 0},
		{"a cycle that is entered twice", [][]uint32{{1, 2}, {2}, {3}, {1}}, []uint32{1, 2, 3}, 10},
		{"calls twice", [][]uint32{{1, 1, 1}, {}}, nil, 21},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			found := graphOf(test.callees...).recursion(func(node uint32) int64 { return 10 + int64(node) })
			var recursive []uint32
			for node := range uint32(len(test.callees)) {
				if found.recursive.has(node) {
					recursive = append(recursive, node)
				}
			}
			assert.Equal(t, test.recursive, recursive)
			assert.Equal(t, test.chain, found.chain)
		})
	}
}

// A long chain does not take stack here, nor much time.
func TestRecursionOfALongChain(t *testing.T) {
	const n = 1_000_000
	callees := make([][]uint32, n)
	for i := range callees[:n-1] {
		callees[i] = []uint32{uint32(i) + 1}
	}
	found := graphOf(callees...).recursion(func(uint32) int64 { return 1 })
	assert.Equal(t, int64(n), found.chain)
}

// In random graphs, a node is recursive if and only if a walk from it comes back.
func TestRecursionAgreesWithWalks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + random.IntN(12)
		callees := make([][]uint32, n)
		for range random.IntN(2 * n) {
			from := random.IntN(n)
			callees[from] = append(callees[from], uint32(random.IntN(n)))
		}
		found := graphOf(callees...).recursion(func(uint32) int64 { return 1 })
		for node := range n {
			assert.Equal(t, returns(callees, uint32(node)), found.recursive.has(uint32(node)), "%d in %v", node, callees)
		}
	}
}

func returns(callees [][]uint32, start uint32) bool {
	seen, next := map[uint32]bool{}, callees[start]
	for len(next) > 0 {
		node := next[0]
		next = next[1:]
		if node == start {
			return true
		}
		if !seen[node] {
			seen[node] = true
			next = append(append([]uint32(nil), next...), callees[node]...)
		}
	}
	return false
}
