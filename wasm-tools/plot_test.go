package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// audience is a host that records all emissions of a call.
type audience struct{ shown []tool.Emission }

func (*audience) Call(context.Context, tool.Call) (tool.Record, error) {
	return tool.Record{}, errors.New("no")
}

func (*audience) Page(string, int64, int64) (tool.Page, error) {
	return tool.Page{}, errors.New("no")
}

func (a *audience) Emit(e tool.Emission) error {
	a.shown = append(a.shown, e)
	return e.Check()
}

// TestImageWithProgressAndPartialImages: plot_image, as a program in the sandbox, shows how far it
// is and images that are not done, each a whole picture, before its result has the one that is.
func TestImageWithProgressAndPartialImages(t *testing.T) {
	root, err := guests.Compile(t.Context(), "wasm-tools/plot")
	require.NoError(t, err)
	m, err := manifests.Load(filepath.Join(root, "wasm-tools", "plot", "tool.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "image_generation", m.Category)
	m.Limits.Timeout = 5 * time.Minute // the test does not measure time
	loaded, err := newRuntime(t, runtime.Options{Limits: runtime.Limits{Timeout: m.Limits.Timeout}}).Load(t.Context(), m, manifests.Grants{})
	require.NoError(t, err)
	largest := `{"formulas":["sin(x)","cos(x)","tan(x)","x^3/100","1/x","sqrt(x)"],"width":1200,"height":1200}`
	for _, text := range []string{`{"formulas":["sin(x)/x"]}`, largest} {
		arguments, err := tool.ParseArguments(text)
		require.NoError(t, err)
		seen := &audience{}
		outcome, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "plot_image", Arguments: arguments, Host: seen})
		require.NoError(t, err, outcome.Result.Error)
		require.Len(t, outcome.Result.Content, 1)
		image := outcome.Result.Content[0]
		assert.Equal(t, []string{"image", "image/png", "plot.png"}, []string{image.Type, image.MIMEType, image.Name})
		final, err := png.Decode(bytes.NewReader(image.Data))
		require.NoError(t, err)

		fraction, partial := -1.0, 0
		for _, e := range seen.shown {
			switch e.Type {
			case tool.EmitProgress:
				require.NotNil(t, e.Fraction)
				assert.Greater(t, *e.Fraction, fraction)
				fraction = *e.Fraction
			case tool.EmitImage:
				assert.True(t, e.Partial)
				var content []byte // base64 in JSON
				require.NoError(t, json.Unmarshal(e.Data, &content))
				early, err := png.Decode(bytes.NewReader(content))
				require.NoError(t, err)
				assert.Equal(t, final.Bounds(), early.Bounds())
				assert.NotEqual(t, final, early)
				partial++
			default:
				assert.Fail(t, "it says nothing else", e.Type)
			}
		}
		assert.Equal(t, 1.0, fraction)
		assert.Equal(t, map[bool]int{true: 6, false: 1}[text == largest], partial, "none is lost to the limit")
	}
}
