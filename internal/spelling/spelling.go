// Package spelling compares words: to find the one that a misspelt word was meant to be, and names that people may
// confuse.
package spelling

import "strings"

// Distance returns how many insertions, deletions, replacements and swaps of neighbours turn a into
// b (optimal string alignment). Words of more than 64 bytes are far from everything.
func Distance(a, b string) int {
	const far = 1 << 10
	if len(a) > 64 || len(b) > 64 {
		return far
	}
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

// Nearest returns the word that a misspelt one was probably meant to be, or "".
func Nearest(word string, words []string) string {
	best, least := "", 3
	for _, candidate := range words {
		if strings.EqualFold(word, candidate) {
			return candidate
		}
		if d := Distance(word, candidate); d < least && d*2 < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}
