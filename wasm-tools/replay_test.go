package tools_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// TestReplays: the calls in the manifests of the shipped tools, made several times, have the same result and the same
// fuel when they are replayed, without the files that they have read and written.
func TestReplays(t *testing.T) {
	rt := newRuntime(t, runtime.Options{Settings: []string{"SEARXNG_URL"}})
	type example struct {
		of   *manifests.Manifest
		test manifests.Test
	}
	var all []example
	for _, m := range compiled(t) {
		if m.Execution == manifests.ExecutionClient || m.Module.Language != modules.LanguageNone {
			continue
		}
		for _, test := range m.Tests {
			all = append(all, example{m, test})
		}
	}
	var total cases.Replayed
	for _, e := range testsize.Sample(all, 30) {
		of, err := cases.Replay(t.Context(), rt, e.of, e.test, t.TempDir(), 4)
		assert.NoError(t, err, "%s: %s", e.of.Name, e.test.Name)
		total.Equal, total.NotRun = total.Equal+of.Equal, total.NotRun+of.NotRun
	}
	require.Greater(t, total.Equal, 3*total.NotRun, "control: most guests run")
	t.Logf("%d replays are equal; %d calls ended before their guests began", total.Equal, total.NotRun)
}
