package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// Nearest returns the names of at most n tools that name may have been meant for,
// nearest first and then by name. It is empty where nothing is near. Hidden and
// unavailable tools are never among them; an alias stands for its tool's name.
func (r *Registry) Nearest(name string, n int) []string {
	if n <= 0 || name == "" || len(name) > maxName {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	wanted := tool.Outline(name)
	limit := max(2, len(name)/3)
	var near []candidate
	for _, e := range r.offered() {
		r.mu.RLock()
		names := append(r.names.aliases(e), e.origin.Name)
		r.mu.RUnlock()
		distance := limit + 1
		for _, known := range names {
			distance = min(distance, editDistance(wanted, tool.Outline(known)))
		}
		// A distance of all letters is no likeness, however short the names are.
		if distance <= limit && distance < len(name) {
			near = append(near, candidate{e.origin.Name, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, min(n, len(near)))
	for _, c := range near[:min(n, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// unknown says that nobody holds a name, and which names are near it.
func (r *Registry) unknown(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("no tool has this name; names have at most %d characters", maxName)
	}
	message := fmt.Sprintf("there is no tool %q", name)
	if near := r.Nearest(name, 3); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

// editDistance returns how many insertions, deletions, replacements and swaps of
// neighbours turn a into b (optimal string alignment). It compares bytes, which is
// exact for tool names.
func editDistance(a, b string) int {
	before := make([]int, len(b)+1)
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
