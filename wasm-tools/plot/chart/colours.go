package chart

import "image/color"

// Colour is that of a curve, by a name that people know.
type Colour struct {
	Name string
	RGBA color.RGBA
}

// Colours are those of the curves of a chart, in their order. They differ in lightness, too, for
// those who do not tell them apart otherwise.
var Colours = []Colour{
	{"blue", color.RGBA{31, 88, 200, 255}}, {"orange", color.RGBA{236, 128, 22, 255}}, {"green", color.RGBA{20, 130, 60, 255}},
	{"red", color.RGBA{205, 40, 50, 255}}, {"purple", color.RGBA{120, 60, 170, 255}}, {"teal", color.RGBA{30, 170, 180, 255}},
}

// The colours of what is not a curve, as places in the palette. A picture with a palette is written
// several times as fast as one without.
const (
	paper uint8 = iota
	grid
	axis
	ink
	curves // the first of the shades of the first curve
)

// shades is how many of each colour there are, from nearly white to itself, for the edges of lines.
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

// mix returns a colour between two, of which the second counts for so many shades.
func mix(a, b color.RGBA, shade int) color.RGBA {
	part := func(a, b uint8) uint8 { return uint8((int(a)*(shades-shade) + int(b)*shade) / shades) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 255}
}
