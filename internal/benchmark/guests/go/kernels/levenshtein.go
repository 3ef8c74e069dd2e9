package kernels

// Levenshtein is the edit distance of two random words of size letters out of four.
func Levenshtein(size int32) uint64 {
	source := random(8)
	a, b := randomWord(&source, size), randomWord(&source, size)
	return mix(checksumSeed, uint64(distance(a, b)))
}

func randomWord(source *random, size int32) []byte {
	word := make([]byte, max(size, 0))
	for i := range word {
		word[i] = 'a' + byte(source.next()>>30)
	}
	return word
}

func distance(a, b []byte) uint32 {
	row := make([]uint32, len(b)+1) // row[j]: the distance of a's read part and b[:j]
	for j := range row {
		row[j] = uint32(j)
	}
	for i := range a {
		diagonal := row[0]
		row[0] = uint32(i + 1)
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
