package repair

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/schema"
)

// clamp returns the nearest number that minimum and maximum allow, if that fits all else.
func (w *walk) clamp(at *spot, text string, p place) string {
	kind := schema.TypeOf(text)
	if kind&schema.Number == 0 || !p.types.Has(kind) {
		return text
	}
	value, ok := exact(text)
	if !ok {
		return text
	}
	whole := p.types&schema.Number == schema.Integer
	to := text
	for _, n := range p.nodes {
		for _, b := range []bound{{n.Minimum, -1, false}, {n.ExclusiveMinimum, -1, true}, {n.Maximum, 1, false},
			{n.ExclusiveMaximum, 1, true}} {
			limit, literal, ok := b.limit(whole)
			if ok && value.Cmp(limit)*b.side > 0 {
				value, to = limit, literal
			}
		}
	}
	if to == text || !w.fits(to, p.nodes...) {
		return text
	}
	w.note(at, Clamp, text, to)
	return to
}

// bound is one bound of a number. The side is -1 for the lower and 1 for the upper.
type bound struct {
	literal   string
	side      int
	exclusive bool
}

// limit returns the outermost number that a bound allows, where there is one: between any
// number and an exclusive bound there is another, unless they are whole.
func (b bound) limit(whole bool) (*big.Rat, string, bool) {
	value, ok := exact(b.literal)
	if !ok || b.exclusive && !whole {
		return nil, "", false
	}
	if !whole {
		return value, b.literal, true
	}
	floor := new(big.Int).Div(value.Num(), value.Denom())
	switch {
	case b.side < 0 && (b.exclusive || !value.IsInt()):
		floor.Add(floor, big.NewInt(1))
	case b.side > 0 && b.exclusive && value.IsInt():
		floor.Sub(floor, big.NewInt(1))
	}
	return new(big.Rat).SetInt(floor), floor.String(), true
}

// exact returns a number as a fraction, unless its digits or exponent would make the fraction large.
func exact(literal string) (*big.Rat, bool) {
	const most = 128
	if literal == "" || len(literal) > most {
		return nil, false
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		if exponent, err := strconv.Atoi(literal[i+1:]); err != nil || math.Abs(float64(exponent)) > most {
			return nil, false
		}
	}
	return new(big.Rat).SetString(literal)
}
