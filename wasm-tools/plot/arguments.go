package main

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/caisson-run/caisson/wasm-tools/plot/chart"
)

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
