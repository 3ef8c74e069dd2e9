// Package chart draws curves over a grid with numbered axes.
//
//	c := chart.New(chart.Options{Width: 800, Height: 500, X: chart.Range{-10, 10}, Y: chart.Range{-1, 1}})
//	c.Draw(math.Sin, 0)
//	err := png.Encode(out, c.Image())
package chart

import (
	"image"
	"math"
)

// Range is a part of an axis, from Min to Max.
type Range struct{ Min, Max float64 }

// Valid reports whether the range is one that can be drawn: its ends are numbers, far enough apart
// for their difference to have some digits, and not so large that it has none.
func (r Range) Valid() bool {
	const most = 1e300
	width := r.Max - r.Min
	return math.Abs(r.Min) <= most && math.Abs(r.Max) <= most && width > 1e-300 && width > 1e-9*max(math.Abs(r.Min), math.Abs(r.Max))
}

// Options say what a chart is to show. The ranges must be valid, and both sides at least 160 pixels.
type Options struct {
	Width, Height int // pixels
	X, Y          Range
}

// Chart is a picture with axes, onto which curves are drawn. It is not safe for concurrent use.
type Chart struct {
	options Options
	picture *image.Paletted
	area    image.Rectangle // of the curves
	scale   int             // of the figures
}

// New draws the axes.
func New(options Options) *Chart {
	c := &Chart{options: options, picture: image.NewPaletted(image.Rect(0, 0, options.Width, options.Height), palette()), scale: 1}
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

// lineColour is the colour of the line at a tick: that at zero is the axis.
func lineColour(t tick) uint8 {
	if t.at == 0 {
		return axis
	}
	return grid
}

// Image returns the picture as it is drawn so far. It changes with what is drawn later.
func (c *Chart) Image() image.Image { return c.picture }

// Samples returns how many values of x a curve is drawn of, at most.
func (c *Chart) Samples() int { return samplesPerPixel*c.area.Dx() + 1 }

// column and row say where a value stands, in pixels.
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
