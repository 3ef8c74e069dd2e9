package chart

import (
	"math"
	"strconv"
)

// tick is a number on an axis.
type tick struct {
	at    float64
	label string
}

// ticks returns round numbers in a range, about so many and never more than twice that.
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
			at = 0 // and not nearly, or negative
		}
		list = append(list, tick{at, label(at, step)})
	}
	return list
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least so much.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// label writes a multiple of step with as many digits as tell it from the next.
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

// widestLabel is how wide a label of the range may be, with some room to the next, in pixels of scale 1.
func widestLabel(r Range) int {
	widest := 0
	for _, tick := range ticks(r, 10) {
		widest = max(widest, textWidth(tick.label, 1))
	}
	return widest + 4*glyphWidth
}

// Fit returns a range that shows what matters of these values, which are sorted and finite: all of them,
// unless few are far away from the rest, as near a pole. It is valid in any case.
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
