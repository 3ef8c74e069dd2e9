package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/caisson-run/caisson/wasm-tools/plot/chart"
)

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
