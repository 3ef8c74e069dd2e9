package chart

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func square(x, y Range) *Chart { return New(Options{Width: 400, Height: 400, X: x, Y: y}) }

// colourAt returns the colour at a point of the chart.
func colourAt(c *Chart, x, y float64) color.RGBA {
	return rgba(c.picture.At(c.column(x), int(math.Round(c.row(y)))))
}

func rgba(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }

// plain is a colour of the palette.
func plain(place uint8) color.RGBA { return rgba(palette()[place]) }

func TestCurveStandsWhereItsValuesAre(t *testing.T) {
	c := square(Range{-2, 3}, Range{-1, 5})
	parabola := func(x float64) float64 { return x * x }
	before := *c.picture
	before.Pix = slices.Clone(c.picture.Pix)
	c.Draw(parabola, 3)
	for x := -0.95; x < 2.2; x += 0.1 {
		assert.Equal(t, Colours[3].RGBA, colourAt(c, x, parabola(x)), x)
		assert.NotEqual(t, Colours[3].RGBA, colourAt(c, x, parabola(x)+0.3), x)
	}
	c.picture.Pix, before.Pix = before.Pix, c.picture.Pix
	for y := range 400 { // nothing is drawn outside the area
		for x := range 400 {
			if !(image.Point{X: x, Y: y}).In(c.area) {
				require.Equal(t, c.picture.At(x, y), before.At(x, y))
			}
		}
	}
}

func TestCurvesHaveGaps(t *testing.T) {
	c := square(Range{-1, 1}, Range{-10, 10})
	c.Draw(func(x float64) float64 { return 1 / x }, 0)
	assert.Equal(t, Colours[0].RGBA, colourAt(c, 0.5, 2), "control: it is drawn")
	assert.NotEqual(t, Colours[0].RGBA, colourAt(c, 0, 3), "no line through a pole")
	c = square(Range{-1, 1}, Range{-1, 1})
	c.Draw(math.Sqrt, 0)
	assert.Equal(t, Colours[0].RGBA, colourAt(c, 0.25, 0.5))
	assert.NotEqual(t, Colours[0].RGBA, colourAt(c, -0.5, 0))
	c.Draw(func(float64) float64 { return math.Inf(1) }, 1)
	c.Draw(func(float64) float64 { return math.NaN() }, 1)
	c.Draw(func(float64) float64 { return -math.MaxFloat64 }, 1)
	assert.NotContains(t, colours(c), Colours[1].RGBA)
}

func colours(c *Chart) map[color.RGBA]bool {
	found := map[color.RGBA]bool{}
	for y := range c.options.Height {
		for x := range c.options.Width {
			found[rgba(c.picture.At(x, y))] = true
		}
	}
	return found
}

func TestAxes(t *testing.T) {
	c := square(Range{-1, 1}, Range{-1, 1})
	assert.Equal(t, plain(axis), colourAt(c, 0, 0.3), "zero is the axis")
	assert.Equal(t, plain(axis), colourAt(c, 0.3, 0))
	assert.Equal(t, plain(grid), colourAt(c, 0.5, 0.3))
	assert.Equal(t, plain(paper), colourAt(c, 0.3, 0.3))
	assert.Contains(t, colours(c), plain(ink), "and numbered")
}

func TestLabels(t *testing.T) {
	for _, test := range []struct {
		r    Range
		want []string
	}{
		{Range{-10, 10}, []string{"-10", "-5", "0", "5", "10"}},
		{Range{0, 1}, []string{"0", "0.5", "1.0"}},
		{Range{-0.04, 0.03}, []string{"-0.04", "-0.02", "0", "0.02"}},
		{Range{1e9, 3e9}, []string{"1e+09", "1.5e+09", "2e+09", "2.5e+09", "3e+09"}},
		{Range{0, 2e-7}, []string{"0", "5e-08", "1e-07", "1.5e-07", "2e-07"}},
	} {
		var labels []string
		for _, tick := range ticks(test.r, 4) {
			labels = append(labels, tick.label)
		}
		assert.Equal(t, test.want, labels, test.r)
	}
}

// TestTicksOfAnyRange are in it, in order, and told apart by their labels, which a chart has figures for.
func TestTicksOfAnyRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		low := random.NormFloat64() * math.Pow(10, random.Float64()*200-100)
		r := Range{low, low + math.Abs(low)*math.Pow(10, random.Float64()*14-8)}
		if !r.Valid() {
			continue
		}
		about := 2 + random.IntN(10)
		list := ticks(r, about)
		require.LessOrEqual(t, len(list), 2*about+1, r)
		slack := (r.Max - r.Min) * 1e-6
		for i, tick := range list {
			require.True(t, tick.at >= r.Min-slack && tick.at <= r.Max+slack, "%v %v", r, tick)
			if i > 0 {
				require.Greater(t, tick.at, list[i-1].at, r)
				require.NotEqual(t, tick.label, list[i-1].label, r)
			}
			for _, figure := range tick.label {
				require.Contains(t, glyphs, figure)
			}
			value, err := strconv.ParseFloat(tick.label, 64)
			require.NoError(t, err)
			require.InDelta(t, tick.at, value, (r.Max-r.Min)/float64(about)/2+math.Abs(tick.at)*1e-11, r)
		}
	}
}

func TestFit(t *testing.T) {
	values := func(at func(x float64) float64) []float64 {
		var list []float64
		for x := -5.0; x < 5; x += 0.01 {
			list = append(list, at(x))
		}
		slices.Sort(list)
		return list
	}
	r := Fit(values(math.Sin))
	assert.InDelta(t, -1.12, r.Min, 0.01)
	assert.InDelta(t, 1.12, r.Max, 0.01)
	r = Fit(values(func(x float64) float64 { return 1 / (x + 0.0001) }))
	assert.Less(t, r.Max, 50.0, "few values near the pole do not flatten the rest")
	assert.Equal(t, Range{-1, 1}, Fit(nil))
	for _, list := range [][]float64{{3}, {0, 0}, {1e20, 1e20}, {-math.MaxFloat64, math.MaxFloat64}, {5e-324, 5e-324}, {1e308, 1e308}, {1, 1 + 1e-15}} {
		assert.True(t, Fit(list).Valid(), "%v %v", list, Fit(list))
	}
}

func TestRanges(t *testing.T) {
	for r, valid := range map[Range]bool{
		{0, 1}: true, {-1e300, 1e300}: true, {1e9, 1e9 + 2}: true, {0, 0}: false, {1, 0}: false, {1e12, 1e12 + 1}: false, {0, 1e301}: false, {0, 1e-305}: false,
		{math.Inf(-1), 0}: false, {0, math.NaN()}: false,
	} {
		assert.Equal(t, valid, r.Valid(), r)
	}
}

// TestAnySize: every size that the tool takes has room for its axes.
func TestAnySize(t *testing.T) {
	for _, size := range [][2]int{{160, 160}, {160, 1200}, {1200, 160}, {480, 300}} {
		for _, r := range []Range{{-1e300, 1e300}, {1e9, 1e9 + 2}, {-1e-8, 1e-8}} {
			c := New(Options{Width: size[0], Height: size[1], X: r, Y: r})
			assert.True(t, c.area.Dx() >= 10 && c.area.Dy() >= 10, "%v %v %v", size, r, c.area)
			c.Draw(func(x float64) float64 { return x }, 0)
		}
	}
}
