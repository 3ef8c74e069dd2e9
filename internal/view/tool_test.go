package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/manifests"
)

// TestReuseOf: the manifest says how long answers are reused, and otherwise the host.
func TestReuseOf(t *testing.T) {
	for _, test := range []struct {
		behavior manifests.Behavior
		want     time.Duration
	}{
		{manifests.Behavior{}, 0},
		{manifests.Behavior{ReadOnly: true}, time.Hour},
		{manifests.Behavior{ReadOnly: true, Cache: time.Minute}, time.Minute},
		{manifests.Behavior{ReadOnly: true, Cache: manifests.CacheOff}, 0},
	} {
		found := reuseOf(test.behavior, time.Hour)
		assert.InDelta(t, test.want.Seconds(), found.Seconds, 0)
		assert.NotEmpty(t, found.Reason)
	}
}
