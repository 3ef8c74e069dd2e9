package chart

// The figures of the axes, which are all that a chart writes: the tool says in words what is drawn.
const (
	glyphWidth  = 6 // with the space behind it
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

// text writes figures whose upper left corner is at x and y.
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

// block draws one pixel of a figure.
func (c *Chart) block(x, y int) {
	for i := range c.scale * c.scale {
		c.picture.SetColorIndex(x+i%c.scale, y+i/c.scale, ink)
	}
}
