package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGraphAgainstASecondImplementation: breadth-first search over all triples in memory finds the same relations, on
// pages of any size.
func TestGraphAgainstASecondImplementation(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		names := strings.Fields("Ada Bob Cleo Dan Eve Fay Gus Hal 猫 Zoë")
		type edge struct{ from, to, source string }
		var edges []edge
		files := map[string]string{}
		for file := range 1 + random.IntN(3) {
			name := fmt.Sprintf("%d.triples.tsv", file)
			for line := range random.IntN(12) {
				e := edge{names[random.IntN(len(names))], names[random.IntN(len(names))], fmt.Sprintf("%s:%d", name, line+1)}
				edges = append(edges, e)
				files[name] += e.from + "\tknows\t" + strings.ToUpper(e.to) + "\n"
			}
		}
		tools := project(t, files)
		query, depth := names[random.IntN(len(names))], 1+random.IntN(3)
		var want []string
		near, seen := map[string]bool{query: true}, map[string]bool{}
		for level := 1; level <= depth; level++ {
			reached := map[string]bool{}
			for _, e := range edges {
				if (near[e.from] || near[e.to]) && !seen[e.source] {
					seen[e.source] = true
					want = append(want, fmt.Sprintf("%s at %d", e.source, level))
					reached[e.from], reached[e.to] = true, true
				}
			}
			near = reached
		}
		var got []string
		a := arguments{Query: strings.ToLower(query), Depth: depth, Limit: 1 + random.IntN(10)}
		for {
			page, _ := ask[graphData](t, tools, "graph", a)
			for _, r := range page.Relations {
				got = append(got, fmt.Sprintf("%s at %d", r.Source, r.Depth))
			}
			require.Equal(t, len(want), page.Total)
			if page.NextOffset == 0 {
				break
			}
			require.Len(t, page.Relations, a.Limit)
			a.Offset = page.NextOffset
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got, "%d: %s", seed, query)
		found += len(got)
	}
	assert.Greater(t, found, 150)
}

func TestGraphOfRDF(t *testing.T) {
	tools := project(t, map[string]string{
		"a.nt": "_:x <http://a.example/name> \"Ada\" .\n_:x <http://a.example/age> \"36\" .\n<http://a.example/Ada> <http://a.example/is> <http://b.example/Ada> .\n",
		"b.nt": "_:x <http://a.example/age> \"40\" .\n<http://b.example/Ada> <http://a.example/age> \"50\" .\n",
	})
	sources := func(query string) (all []string) {
		data, _ := ask[graphData](t, tools, "graph", arguments{Query: query})
		for _, r := range data.Relations {
			all = append(all, r.Source)
		}
		return all
	}
	assert.Equal(t, []string{"a.nt:1", "a.nt:2", "a.nt:3", "b.nt:2"}, sources("ada"), "a blank node is of its file")
	assert.Equal(t, []string{"a.nt:3", "b.nt:2"}, sources("http://b.example/Ada"))
	assert.Equal(t, sources("http://b.example/Ada"), sources("<http://b.example/Ada>"), "as N-Triples write it")
}

func TestLateGraph(t *testing.T) {
	tools := project(t, map[string]string{"a.triples.tsv": strings.Repeat("A\tknows\tB\n", 2*lateAfter)})
	tools.deadline = time.Now()
	data, text := ask[graphData](t, tools, "graph", arguments{Query: "A"})
	assert.False(t, data.Complete)
	assert.Contains(t, text, "there was no time for all files")
}
