// Command plot is the tool plot_image: it draws the curves of formulas as a PNG image. Its arguments come
// as a JSON object on standard input, and the result goes as one to standard output. While it draws, it
// shows how far it is, and the image as it is by then.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/caisson-run/caisson/wasm-tools/plot/chart"
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

// arguments are what the tool takes. What is nil or zero was not given.
type arguments struct {
	Formulas []string `json:"formulas"`
	XMin     *float64 `json:"x_min"`
	XMax     *float64 `json:"x_max"`
	YMin     *float64 `json:"y_min"`
	YMax     *float64 `json:"y_max"`
	Width    int      `json:"width"`
	Height   int      `json:"height"`
}

const (
	defaultWidth, defaultHeight = 800, 500
	least, most                 = 160, 1200 // pixels of a side
	defaultX                    = 10
)

// parse returns the formulas.
func (a arguments) parse() ([]*expr.Expression, error) {
	if len(a.Formulas) == 0 || len(a.Formulas) > len(chart.Colours) {
		return nil, fmt.Errorf("give 1 to %d formulas", len(chart.Colours))
	}
	parsed := make([]*expr.Expression, len(a.Formulas))
	for i, text := range a.Formulas {
		var err error
		if parsed[i], err = expr.Parse(text, "x"); err != nil {
			return nil, fmt.Errorf("formula %d: %w", i+1, err)
		}
	}
	return parsed, nil
}

// size returns the sides of the image.
func (a arguments) size() (width, height int, err error) {
	width, height = a.Width, a.Height
	if width == 0 {
		width = defaultWidth
	}
	if height == 0 {
		height = defaultHeight
	}
	if width < least || width > most || height < least || height > most {
		return 0, 0, fmt.Errorf("width and height must be from %d to %d pixels", least, most)
	}
	return width, height, nil
}

// across returns the range of x.
func (a arguments) across() (chart.Range, error) {
	r := chart.Range{Min: -defaultX, Max: defaultX}
	if a.XMin != nil {
		r.Min = *a.XMin
	}
	if a.XMax != nil {
		r.Max = *a.XMax
	}
	if !r.Valid() {
		return r, errors.New("x_min must be less than x_max, by more than a billionth of it; where one is absent, it is -10 or 10")
	}
	return r, nil
}

// up returns the range of y, of which what is not given is made to fit the values.
func (a arguments) up(fitting chart.Range) (chart.Range, error) {
	if a.YMin != nil {
		fitting.Min = *a.YMin
	}
	if a.YMax != nil {
		fitting.Max = *a.YMax
	}
	if !fitting.Valid() {
		return fitting, fmt.Errorf("y_min must be less than y_max, by more than a billionth of it; they are %g and %g", fitting.Min, fitting.Max)
	}
	return fitting, nil
}

// drawing is the data of a result.
type drawing struct {
	Width  int        `json:"width"`
	Height int        `json:"height"`
	X      [2]float64 `json:"x"` // from and to
	Y      [2]float64 `json:"y"`
	Curves []curve    `json:"curves"`
}

// curve is one formula as it was drawn. A formula without a value in the range has no least and greatest.
type curve struct {
	Formula string   `json:"formula"`
	Colour  string   `json:"colour"`
	Least   *float64 `json:"least,omitempty"`
	Most    *float64 `json:"greatest,omitempty"`
}

const imageType = "image/png"

func plot(a arguments, shown screen) (call.Result, error) {
	formulas, err := a.parse()
	if err != nil {
		return call.Result{}, err
	}
	width, height, err := a.size()
	if err != nil {
		return call.Result{}, err
	}
	x, err := a.across()
	if err != nil {
		return call.Result{}, err
	}
	_ = shown.progress(0, "computing")
	curves, fitting := measure(formulas, x, width)
	y, err := a.up(fitting)
	if err != nil {
		return call.Result{}, err
	}
	d := drawing{Width: width, Height: height, X: [2]float64{x.Min, x.Max}, Y: [2]float64{y.Min, y.Max}, Curves: curves}
	c := chart.New(chart.Options{Width: width, Height: height, X: x, Y: y})
	for i, f := range formulas {
		d.Curves[i].Formula, d.Curves[i].Colour = a.Formulas[i], chart.Colours[i].Name
		if early, err := encode(c.Image(), png.BestSpeed); err == nil {
			_ = shown.image(imageType, early, true)
		}
		_ = shown.progress(float64(i+1)/float64(len(formulas)+1), fmt.Sprintf("drawing curve %d of %d", i+1, len(formulas)))
		c.Draw(f.At, i)
	}
	written, err := encode(c.Image(), png.DefaultCompression)
	if err != nil {
		return call.Result{}, fmt.Errorf("the image cannot be written: %w", err)
	}
	_ = shown.progress(1, "done")
	return call.Result{
		Success: true, Output: d.describe(), Data: d,
		Content: []call.Content{{Type: "image", Data: written, Name: "plot.png", MIMEType: imageType}},
	}, nil
}

// measure finds the least and the greatest value of each formula, and the range that shows them.
func measure(formulas []*expr.Expression, x chart.Range, samples int) ([]curve, chart.Range) {
	curves := make([]curve, len(formulas))
	var all []float64
	for i, f := range formulas {
		var values []float64
		for n := range samples + 1 {
			y := f.At(x.Min + float64(n)/float64(samples)*(x.Max-x.Min))
			if !math.IsNaN(y) && !math.IsInf(y, 0) {
				values = append(values, y)
			}
		}
		if len(values) > 0 {
			least, most := slices.Min(values), slices.Max(values)
			curves[i].Least, curves[i].Most = &least, &most
		}
		all = append(all, values...)
	}
	slices.Sort(all)
	return curves, chart.Fit(all)
}

func encode(picture image.Image, level png.CompressionLevel) ([]byte, error) {
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: level}
	err := encoder.Encode(&out, picture)
	return out.Bytes(), err
}

// describe says in words what the image shows, for a model that does not see it.
func (d drawing) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A plot of %d by %d pixels, for x from %g to %g and y from %.6g to %.6g.\n", d.Width, d.Height, d.X[0], d.X[1], d.Y[0], d.Y[1])
	for _, c := range d.Curves {
		fmt.Fprintf(&b, "%s: %s", c.Colour, c.Formula)
		switch {
		case c.Least == nil:
			b.WriteString(" (no value in this range: nothing is drawn)")
		case *c.Least > d.Y[1] || *c.Most < d.Y[0]:
			fmt.Fprintf(&b, " (from %.6g to %.6g: outside of the picture)", *c.Least, *c.Most)
		default:
			fmt.Fprintf(&b, " (from %.6g to %.6g)", *c.Least, *c.Most)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
