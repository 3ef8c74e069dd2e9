package chart

import (
	"image"
	"math"
)

const (
	samplesPerPixel = 2
	lineRadius      = 1.1 // pixels
)

// point is a place in the picture, in pixels.
type point struct{ x, y float64 }

// Draw draws the curve of a function in the colour with that index in [Colours]. It has gaps where the
// function has no finite value, and where it jumps across the chart, such as at a pole.
func (c *Chart) Draw(at func(x float64) float64, colour int) {
	mask := image.NewAlpha(c.area)
	samples := c.Samples() - 1
	high, low := float64(c.area.Min.Y), float64(c.area.Max.Y)
	var last point
	drawn := false
	for i := range samples + 1 {
		part := float64(i) / float64(samples)
		y := c.row(at(c.options.X.Min + part*(c.options.X.Max-c.options.X.Min)))
		if math.IsNaN(y) || math.IsInf(y, 0) {
			drawn = false
			continue
		}
		// Values far outside are moved to just outside.
		next := point{float64(c.area.Min.X) + part*float64(c.area.Dx()), min(max(y, high-(low-high)), low+(low-high))}
		if drawn && !jumps(last.y, next.y, high, low) {
			stroke(mask, last, next)
		}
		last, drawn = next, true
	}
	c.lay(mask, curves+uint8(colour*shades))
}

// lay draws a curve over the picture. Its edges are mixed with white, so a mostly white edge does not
// cover another curve or the axis.
func (c *Chart) lay(mask *image.Alpha, first uint8) {
	for y := mask.Rect.Min.Y; y < mask.Rect.Max.Y; y++ {
		for x := mask.Rect.Min.X; x < mask.Rect.Max.X; x++ {
			cover := mask.Pix[mask.PixOffset(x, y)]
			if cover == 0 {
				continue
			}
			at := c.picture.PixOffset(x, y)
			if shade := uint8(int(cover) * (shades - 1) / 255); shade >= shades/2 || c.picture.Pix[at] <= grid {
				c.picture.Pix[at] = first + shade
			}
		}
	}
}

func jumps(a, b, high, low float64) bool { return a < high && b > low || a > low && b < high }

// stroke draws a line with round ends. Overlapping lines use the darker value, so that joints are not
// visible.
func stroke(mask *image.Alpha, a, b point) {
	const reach = lineRadius + 1
	box := image.Rect(int(min(a.x, b.x)-reach), int(min(a.y, b.y)-reach), int(max(a.x, b.x)+reach)+1,
		int(max(a.y, b.y)+reach)+1).Intersect(mask.Rect)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			cover := min(max(lineRadius+0.5-distance(point{float64(x), float64(y)}, a, b), 0), 1)
			if i := mask.PixOffset(x, y); uint8(255*cover) > mask.Pix[i] {
				mask.Pix[i] = uint8(255 * cover)
			}
		}
	}
}

// distance is the distance of p from the line from a to b.
func distance(p, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	along := 0.0
	if length := dx*dx + dy*dy; length > 0 {
		along = min(max(((p.x-a.x)*dx+(p.y-a.y)*dy)/length, 0), 1)
	}
	dx, dy = p.x-a.x-along*dx, p.y-a.y-along*dy
	return math.Sqrt(dx*dx + dy*dy)
}

// The characters of the axes' labels, which are the only text in a chart.
const (
	glyphWidth  = 6 // including space
	glyphHeight = 7
)

// glyphs are rows of five pixels, the leftmost in the highest bit.
var glyphs = map[rune][glyphHeight]byte{
	'0': {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110},
	'1': {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110},
	'2': {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111},
	'3': {0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110},
	'4': {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010},
	'5': {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110},
	'6': {0b01110, 0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110},
	'7': {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000},
	'8': {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110},
	'9': {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110},
	'-': {3: 0b11111},
	'+': {1: 0b00100, 0b00100, 0b11111, 0b00100, 0b00100},
	'.': {5: 0b01100, 0b01100},
	'e': {2: 0b01110, 0b10001, 0b11111, 0b10000, 0b01110},
}

func textWidth(text string, scale int) int { return len(text) * glyphWidth * scale }

// text draws a label with its upper left corner at x and y.
func (c *Chart) text(x, y int, text string) {
	for _, figure := range text {
		for row, bits := range glyphs[figure] {
			for column := range glyphWidth - 1 {
				if bits>>(glyphWidth-2-column)&1 == 1 {
					c.block(x+column*c.scale, y+row*c.scale)
				}
			}
		}
		x += glyphWidth * c.scale
	}
}

// block draws one pixel of a character.
func (c *Chart) block(x, y int) {
	for i := range c.scale * c.scale {
		c.picture.SetColorIndex(x+i%c.scale, y+i/c.scale, ink)
	}
}
