package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]sizeFlag{"64KiB": {bytes: 64 << 10}, "1KiB": {bytes: 1024}, "unlimited": {unlimited: true}} {
		flag := sizeFlag{unlimited: true}
		require.NoError(t, flag.Set(text), text)
		assert.Equal(t, want, flag, text)
	}
	for _, text := range []string{"", "0", "-1", "1023", "lots", "Unlimited"} {
		flag := sizeFlag{unlimited: true}
		assert.ErrorContains(t, flag.Set(text), "or unlimited", text)
	}
}

func TestCallFlag(t *testing.T) {
	var flag callFlag
	require.NoError(t, flag.Set("fetch_page"))
	require.NoError(t, flag.Set("fetch_page"))
	require.Error(t, flag.Set("fetch_*"))
	assert.Equal(t, callFlag{{Binding: manifests.Binding{Origin: "--allow-call fetch_page"}, Tool: "fetch_page"}}, flag)
	o := options{calls: flag}
	assert.Equal(t, []manifests.CallGrant(flag), o.policy().For("any", "").Calls)
}

// TestExecutorOptions: whatever the flags say makes an executor.
func TestExecutorOptions(t *testing.T) {
	hint := func(tool.Cut) string { return "" }
	for name, o := range map[string]options{
		"none":      {},
		"all":       {parallel: 100, noRepair: true, noReuse: true, maxOutput: sizeFlag{bytes: leastOutput}},
		"tolerant":  {parallel: 1, tolerantJSON: true},
		"unlimited": {maxOutput: sizeFlag{unlimited: true}},
	} {
		made, err := o.executorOptions(hint)
		require.NoError(t, err, name)
		opened, err := caisson.Open(t.Context(), caisson.Options{NoCache: true, Executor: made})
		require.NoError(t, err, name)
		require.NoError(t, opened.Close(t.Context()), name)
		assert.Equal(t, o.noReuse, made.Reuse.Scope == executor.ReuseNone, name)
		assert.Equal(t, o.parallel, made.Limits.PerTool, "%s: as many at a time as the flag says, also of one tool", name)
	}
	_, err := (&options{noRepair: true, tolerantJSON: true}).executorOptions(hint)
	assert.EqualError(t, err, "--no-repair and --tolerant-json exclude each other")
}

// TestReuseOf: what inspect says is what the executor is told.
func TestReuseOf(t *testing.T) {
	for _, test := range []struct {
		behavior manifests.Behavior
		want     time.Duration
	}{
		{manifests.Behavior{}, 0},
		{manifests.Behavior{ReadOnly: true}, reuseFor},
		{manifests.Behavior{ReadOnly: true, Cache: time.Minute}, time.Minute},
		{manifests.Behavior{ReadOnly: true, Cache: manifests.CacheOff}, 0},
	} {
		found := reuseOf(test.behavior)
		assert.InDelta(t, test.want.Seconds(), found.Seconds, 0)
		assert.NotEmpty(t, found.Reason)
	}
}
