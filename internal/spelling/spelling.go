// Package spelling compares words, to find the one that a misspelt word was meant to be.
package spelling

import "strings"

// Distance returns how many insertions, deletions, replacements and swaps of neighbours turn a into
// b (optimal string alignment). Words of more than 64 bytes are far from everything.
func Distance(a, b string) int {
	const far = 1 << 10
	if len(a) > 64 || len(b) > 64 {
		return far
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
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
