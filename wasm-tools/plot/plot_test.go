package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// answer is a result object.
type answer struct {
	Success bool
	Output  string
	Data    json.RawMessage
	Content []struct {
		Type, Name string
		MIMEType   string `json:"mime_type"`
		Data       []byte
	}
	Error string
}

// watched collects a call's progress and partial images.
type watched struct {
	fractions []float64
	words     []string
	images    []image.Image
}

// ask makes a call. If w is nil, emitting progress and images fails.
func ask(t *testing.T, arguments string, w *watched) answer {
	t.Helper()
	shown := screen{
		func(float64, string) error { return errors.New("outside") },
		func(string, []byte, bool) error { return errors.New("outside") },
	}
	if w != nil {
		shown.progress = func(fraction float64, text string) error {
			w.fractions, w.words = append(w.fractions, fraction), append(w.words, text)
			return nil
		}
		shown.image = func(mimeType string, content []byte, partial bool) error {
			assert.Equal(t, "image/png", mimeType)
			assert.True(t, partial)
			picture, err := png.Decode(bytes.NewReader(content))
			require.NoError(t, err)
			w.images = append(w.images, picture)
			return nil
		}
	}
	var out bytes.Buffer
	require.NoError(t, call.Answer(strings.NewReader(arguments), &out, shown.plot))
	var a answer
	require.NoError(t, json.Unmarshal(out.Bytes(), &a))
	return a
}

// inked counts the pixels of an image that are far from grey.
func inked(picture image.Image) int {
	count := 0
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			if max(r, g, b)-min(r, g, b) > 0x4000 {
				count++
			}
		}
	}
	return count
}

func TestImageGrowsCurveByCurve(t *testing.T) {
	w := &watched{}
	a := ask(t, `{"formulas":["x","-x","x^2"],"width":320,"height":240}`, w)
	require.True(t, a.Success, a.Error)
	require.Len(t, a.Content, 1)
	assert.Equal(t, "image/png", a.Content[0].MIMEType)
	final, err := png.Decode(bytes.NewReader(a.Content[0].Data))
	require.NoError(t, err)
	assert.Equal(t, image.Rect(0, 0, 320, 240), final.Bounds())

	require.Len(t, w.images, 3)
	assert.Zero(t, inked(w.images[0]), "the axes alone")
	last := 0
	for _, picture := range append(w.images[1:], final) {
		assert.Equal(t, final.Bounds(), picture.Bounds())
		assert.Greater(t, inked(picture), last)
		last = inked(picture)
	}
	assert.Equal(t, []float64{0, 0.25, 0.5, 0.75, 1}, w.fractions)
	assert.Equal(t, []string{"computing", "drawing curve 1 of 3", "drawing curve 2 of 3", "drawing curve 3 of 3", "done"}, w.words)
	assert.Equal(t, a, ask(t, `{"formulas":["x","-x","x^2"],"width":320,"height":240}`, nil), "with and without a subscriber")
}

func TestMistakesAreTold(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"formulas":[]}`: "give 1 to 6 formulas", `{"formulas":["x","x","x","x","x","x","x"]}`: "give 1 to 6 formulas",
		`{"formulas":["x +"]}`: "formula 1: unexpected end of the expression at column 4", `{"formulas":["x"],"width":10}`: "from 160 to 1200 pixels",
		`{"formulas":["x"],"x_min":20}`:                         "x_min must be less than x_max",
		`{"formulas":["x"],"y_min":3,"y_max":2}`:                "y_min must be less than y_max, by more than a billionth of it; they are 3 and 2",
		`{"formulas":["x"],"x_min":1e12,"x_max":1000000000001}`: "x_min must be less than x_max",
		`{"formulas":"x"}`:                                      "not the JSON object that this tool takes", `{"formulas":["x"],"z":1}`: "unknown field",
	} {
		a := ask(t, arguments, nil)
		assert.False(t, a.Success, arguments)
		assert.Contains(t, a.Error, want, arguments)
		assert.Empty(t, a.Content)
	}
}

func TestWhatCannotBeSeenIsSaid(t *testing.T) {
	a := ask(t, `{"formulas":["ln(-1-x^2)","x+100","1/0"],"y_min":0,"y_max":1}`, nil)
	require.True(t, a.Success, a.Error)
	assert.Equal(t, `A plot of 800 by 500 pixels, for x from -10 to 10 and y from 0 to 1.
blue: ln(-1-x^2) (no value in this range: nothing is drawn)
orange: x+100 (from 90 to 110: outside of the picture)
green: 1/0 (no value in this range: nothing is drawn)`, a.Output)
}

func TestManifestFits(t *testing.T) {
	m, err := manifests.Load("tool.yaml")
	require.NoError(t, err)
	for _, arguments := range []string{
		`{"formulas":["1e308*x","1e-300*x","0"],"x_min":-1,"x_max":1}`, `{"formulas":["x"],"x_min":-1e300,"x_max":1e300}`, `{"formulas":["exp(x)"],"x_max":800}`,
	} {
		require.NoError(t, m.Parameters.Validate(t.Context(), json.RawMessage(arguments)))
		a := ask(t, arguments, nil)
		require.True(t, a.Success, a.Error)
		assert.NoError(t, m.Result.Validate(t.Context(), a.Data))
	}
}
