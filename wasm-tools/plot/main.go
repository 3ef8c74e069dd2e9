// Command plot is the tool plot_image: it draws the curves of formulas as a PNG image. Its arguments come
// as a JSON object on standard input, and the result goes as one to standard output. While it draws, it
// shows how far it is, and the image as it is by then.
package main

import (
	"io"
	"os"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

func main() {
	if err := run(os.Stdin, os.Stdout, screen{caisson.EmitProgress, caisson.EmitImage}); err != nil {
		os.Stderr.WriteString("plot: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// screen is where the tool shows what it does. Whether anybody sees it is none of its business, so that
// it does not care for errors.
type screen struct {
	progress func(fraction float64, text string) error
	image    func(mimeType string, image []byte, partial bool) error
}

// run answers one call. Its error is that of writing.
func run(in io.Reader, out io.Writer, shown screen) error {
	return call.Answer(in, out, func(a arguments) (call.Result, error) { return plot(a, shown) })
}
