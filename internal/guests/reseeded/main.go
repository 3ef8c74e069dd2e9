// Reseeded is a guest that may be resumed from a snapshot without harm: before it reads its input, it does the work
// that takes time and is the same in all calls. It makes its generator of random numbers after that.
package main

import (
	"bytes"
	crand "crypto/rand"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/template"
)

var reply = template.Must(template.New("reply").Parse("{{.Number}} {{.Letters}} {{.Bytes}}"))

type answer struct {
	Number  uint64
	Letters string
	Bytes   int // of input
}

func main() {
	letters := map[string]bool{"x": true, "y": true, "z": true}
	// A template is compiled when it first runs.
	if err := write(io.Discard, answer{Letters: "abc"}); err != nil {
		fail(err)
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	numbers := seeded()
	sorted := slices.Sorted(maps.Keys(letters))
	if err := write(os.Stdout, answer{numbers.Uint64(), strings.Join(sorted, ""), len(input)}); err != nil {
		fail(err)
	}
}

// seeded returns a generator whose seed the host gives at this moment.
func seeded() *rand.Rand {
	var seed [32]byte
	crand.Read(seed[:]) // which never fails
	return rand.New(rand.NewChaCha8(seed))
}

func write(w io.Writer, a answer) error {
	var text bytes.Buffer
	if err := reply.Execute(&text, a); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
