// Package chart draws curves over a grid with numbered axes.
//
//	c := chart.New(chart.Options{Width: 800, Height: 500, X: chart.Range{-10, 10}, Y: chart.Range{-1, 1}})
//	c.Draw(math.Sin, 0)
//	err := png.Encode(out, c.Image())
package chart

import (
	"image"
	"image/color"
	"math"
	"strconv"
)

// Range is a range of values on an axis.
type Range struct{ Min, Max float64 }

// Valid reports whether the range can be drawn: its ends must be finite, not too large, and far enough
// apart for floating point.
func (r Range) Valid() bool {
	const most = 1e300
	width := r.Max - r.Min
	return math.Abs(r.Min) <= most && math.Abs(r.Max) <= most && width > 1e-300 &&
		width > 1e-9*max(math.Abs(r.Min), math.Abs(r.Max))
}

// Options describe a chart. The ranges must be valid, and both sides at least 160 pixels.
type Options struct {
	Width, Height int // pixels
	X, Y          Range
}

// Chart is a picture of curves with axes. It is not safe for concurrent use.
type Chart struct {
	options Options
	picture *image.Paletted
	area    image.Rectangle // of the curves
	scale   int             // of the figures
}

// New returns a chart with axes and without curves.
func New(options Options) *Chart {
	c := &Chart{options: options, picture: image.NewPaletted(image.Rect(0, 0, options.Width, options.Height), palette()),
		scale: 1}
	if options.Width >= 480 && options.Height >= 300 {
		c.scale = 2
	}
	high := glyphHeight * c.scale
	rows := ticks(options.Y, max(2, options.Height/(4*high)))
	widest := 0
	for _, tick := range rows {
		widest = max(widest, textWidth(tick.label, c.scale))
	}
	c.area = image.Rect(widest+2*high, high, options.Width-2*high, options.Height-3*high)
	columns := ticks(options.X, max(2, c.area.Dx()/(widestLabel(options.X)*c.scale)))
	c.drawAxes(columns, rows, high)
	return c
}

func (c *Chart) drawAxes(columns, rows []tick, high int) {
	for _, tick := range columns {
		x := c.column(tick.at)
		c.vertical(x, lineColour(tick))
		c.text(x-textWidth(tick.label, c.scale)/2, c.area.Max.Y+high, tick.label)
	}
	for _, tick := range rows {
		y := int(math.Round(c.row(tick.at)))
		c.horizontal(y, lineColour(tick))
		c.text(c.area.Min.X-high-textWidth(tick.label, c.scale), y-high/2, tick.label)
	}
	for _, x := range []int{c.area.Min.X, c.area.Max.X} {
		c.vertical(x, axis)
	}
	for _, y := range []int{c.area.Min.Y, c.area.Max.Y} {
		c.horizontal(y, axis)
	}
}

// lineColour is the colour of the line at a tick. The line at zero is the axis.
func lineColour(t tick) uint8 {
	if t.at == 0 {
		return axis
	}
	return grid
}

// Image returns the picture. Drawing more changes it.
func (c *Chart) Image() image.Image { return c.picture }

// Samples returns for how many values of x a curve is evaluated.
func (c *Chart) Samples() int { return samplesPerPixel*c.area.Dx() + 1 }

// column and row return the position of a value in pixels.
func (c *Chart) column(x float64) int {
	return c.area.Min.X + int(math.Round((x-c.options.X.Min)/(c.options.X.Max-c.options.X.Min)*float64(c.area.Dx())))
}

func (c *Chart) row(y float64) float64 {
	return float64(c.area.Max.Y) - (y-c.options.Y.Min)/(c.options.Y.Max-c.options.Y.Min)*float64(c.area.Dy())
}

func (c *Chart) vertical(x int, colour uint8) {
	for y := c.area.Min.Y; y <= c.area.Max.Y; y++ {
		c.picture.SetColorIndex(x, y, colour)
	}
}

func (c *Chart) horizontal(y int, colour uint8) {
	for x := c.area.Min.X; x <= c.area.Max.X; x++ {
		c.picture.SetColorIndex(x, y, colour)
	}
}

// tick is a number on an axis.
type tick struct {
	at    float64
	label string
}

// ticks returns approximately so many round numbers in a range, and never more than twice that.
func ticks(r Range, about int) []tick {
	step := niceStep((r.Max - r.Min) / float64(about))
	first := math.Ceil(r.Min/step - 1e-9)
	var list []tick
	for i := range 2*about + 1 {
		at := (first + float64(i)) * step
		if at > r.Max+1e-9*step {
			break
		}
		if math.Abs(at) < step/2 {
			at = 0 // exactly, and not negative zero
		}
		list = append(list, tick{at, label(at, step)})
	}
	return list
}

// niceStep returns the smallest 1, 2 or 5 times a power of ten that is not below least.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// label formats a multiple of step with enough digits to distinguish it from the next.
func label(at, step float64) string {
	if at == 0 {
		return "0"
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if math.Abs(at) < 1e6 && decimals <= 4 {
		return strconv.FormatFloat(at, 'f', decimals, 64)
	}
	digits := int(math.Ceil(math.Log10(math.Abs(at)/step)+1e-9)) + 1
	return strconv.FormatFloat(at, 'g', min(max(digits, 1), 12), 64)
}

// widestLabel is the maximum width of the range's labels, with some space, in pixels at scale 1.
func widestLabel(r Range) int {
	widest := 0
	for _, tick := range ticks(r, 10) {
		widest = max(widest, textWidth(tick.label, 1))
	}
	return widest + 4*glyphWidth
}

// Fit returns a valid range that shows these values, which must be sorted and finite, without a few
// that are far away from the rest, such as near a pole.
func Fit(sorted []float64) Range {
	if len(sorted) == 0 {
		return Range{-1, 1}
	}
	at := func(part float64) float64 { return sorted[int(part*float64(len(sorted)-1))] }
	r := Range{sorted[0], sorted[len(sorted)-1]}
	const farAway = 8
	middle := Range{at(0.05), at(0.95)}
	if width := middle.Max - middle.Min; width > 0 && r.Max-r.Min > farAway*width {
		r = Range{max(r.Min, middle.Min-width/2), min(r.Max, middle.Max+width/2)}
	}
	r.Min, r.Max = min(max(r.Min, -1e299), 1e299), min(max(r.Max, -1e299), 1e299)
	room := (r.Max - r.Min) * 0.06
	if !r.Valid() {
		room = max(1, math.Abs(r.Min)*0.1) // a flat line
	}
	return Range{r.Min - room, r.Max + room}
}

// Colour is a colour with its common name.
type Colour struct {
	Name string
	RGBA color.RGBA
}

// Colours are the colours of a chart's curves, in order. They also differ in lightness, for people with
// colour blindness.
var Colours = []Colour{
	{"blue", color.RGBA{31, 88, 200, 255}}, {"orange", color.RGBA{236, 128, 22, 255}},
	{"green", color.RGBA{20, 130, 60, 255}},
	{"red", color.RGBA{205, 40, 50, 255}}, {"purple", color.RGBA{120, 60, 170, 255}},
	{"teal", color.RGBA{30, 170, 180, 255}},
}

// The colours other than curves, as indices of the palette. A picture with a palette is encoded several
// times faster.
const (
	paper uint8 = iota
	grid
	axis
	ink
	curves // the first of the shades of the first curve
)

// shades is the number of shades of each colour, from nearly white to itself, for antialiasing.
const shades = 40

func palette() color.Palette {
	white := color.RGBA{255, 255, 255, 255}
	p := color.Palette{white, color.RGBA{228, 228, 232, 255}, color.RGBA{130, 130, 140, 255}, color.RGBA{60, 60, 70, 255}}
	for _, c := range Colours {
		for shade := range shades {
			p = append(p, mix(white, c.RGBA, shade+1))
		}
	}
	return p
}

// mix returns a colour between two, with so many shades of the second.
func mix(a, b color.RGBA, shade int) color.RGBA {
	part := func(a, b uint8) uint8 { return uint8((int(a)*(shades-shade) + int(b)*shade) / shades) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 255}
}
