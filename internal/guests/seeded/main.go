// Seeded is a guest that draws random numbers in the ways that look alike in Go, after it
// has read its input, so that tests can see which of them a snapshot repeats. The folder c
// holds its like in C.
package main

import (
	crand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

func main() {
	letters := map[string]bool{}
	for letter := 'a'; letter <= 'z'; letter++ {
		letters[string(letter)] = true
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d %s %s", rand.Uint64(), order(letters), crand.Text())
}

// order returns the keys in the order in which the map happens to give them.
func order(letters map[string]bool) string {
	var text strings.Builder
	for letter := range letters {
		text.WriteString(letter)
	}
	return text.String()
}
