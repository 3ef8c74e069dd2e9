// Command plot is the tool plot_image: it draws the curves of formulas as a PNG image. While it draws,
// it streams its progress and the unfinished image.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"slices"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/caisson-run/caisson/wasm-tools/plot/internal/chart"
)

func main() { call.Main(screen{caisson.EmitProgress, caisson.EmitImage}.plot) }

// screen streams progress and partial images. Errors are ignored, because the call may have no subscriber.
type screen struct {
	progress func(fraction float64, text string) error
	image    func(mimeType string, image []byte, partial bool) error
}

// arguments are the tool's arguments. An absent one is nil or zero.
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
	minSide, maxSide            = 160, 1200 // pixels of a side
	defaultX                    = 10
)

// parse parses the formulas.
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
	width, height = cmp.Or(a.Width, defaultWidth), cmp.Or(a.Height, defaultHeight)
	if width < minSide || width > maxSide || height < minSide || height > maxSide {
		return 0, 0, fmt.Errorf("width and height must be from %d to %d pixels", minSide, maxSide)
	}
	return width, height, nil
}

// across returns the range of x.
func (a arguments) across() (chart.Range, error) {
	r := within(chart.Range{Min: -defaultX, Max: defaultX}, a.XMin, a.XMax)
	if !r.Valid() {
		return r,
			errors.New("x_min must be less than x_max, by more than a billionth of it; where one is absent, it is -10 or 10")
	}
	return r, nil
}

// up returns the range of y. Ends that are not given fit the values.
func (a arguments) up(fitting chart.Range) (chart.Range, error) {
	r := within(fitting, a.YMin, a.YMax)
	if !r.Valid() {
		return r,
			fmt.Errorf("y_min must be less than y_max, by more than a billionth of it; they are %g and %g", r.Min, r.Max)
	}
	return r, nil
}

// within returns a range with other ends, if they are given.
func within(r chart.Range, from, to *float64) chart.Range {
	if from != nil {
		r.Min = *from
	}
	if to != nil {
		r.Max = *to
	}
	return r
}

// drawing is the data of a result.
type drawing struct {
	Width  int        `json:"width"`
	Height int        `json:"height"`
	X      [2]float64 `json:"x"` // from and to
	Y      [2]float64 `json:"y"`
	Curves []curve    `json:"curves"`
}

// curve describes one drawn formula. Least and Most are nil if it has no value in the range.
type curve struct {
	Formula string   `json:"formula"`
	Colour  string   `json:"colour"`
	Least   *float64 `json:"least,omitempty"`
	Most    *float64 `json:"greatest,omitempty"`
}

const imageType = "image/png"

func (shown screen) plot(a arguments) (call.Result, error) {
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

// measure returns the least and the greatest value of each formula, and a range that shows them.
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

// describe describes the image in words, for a model that cannot see it.
func (d drawing) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A plot of %d by %d pixels, for x from %g to %g and y from %.6g to %.6g.\n", d.Width, d.Height, d.X[0],
		d.X[1], d.Y[0], d.Y[1])
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
