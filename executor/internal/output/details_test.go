package output

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestCutDetails: details that fit are unchanged, and otherwise each list or log keeps its most useful part.
func TestCutDetails(t *testing.T) {
	denials := slices.Repeat([]tool.Denial{{Value: strings.Repeat("v", 72)}}, 10)
	calls := slices.Repeat([]tool.HostCall{{Target: strings.Repeat("t", 72)}}, 10)
	small := tool.Record{Log: "done", Denials: denials[:1], HostCalls: calls[:1]}
	kept := small
	CutDetails(&kept, 1000)
	assert.Equal(t, small, kept)

	long := tool.Record{Log: "é" + strings.Repeat("a", 5000) + "é the end", Denials: denials, HostCalls: calls}
	kept = long
	CutDetails(&kept, 2400)
	assert.Len(t, kept.Denials, 6)
	assert.Len(t, kept.HostCalls, 3)
	assert.Equal(t, "é"+strings.Repeat("a", 148)+"\n[cut after 150 bytes: 4412 bytes left out]\n"+strings.Repeat("a", 440)+"é the end", kept.Log)
	assert.Len(t, long.Denials, 10)

	kept = tool.Record{Log: strings.Repeat("é", 100)}
	CutDetails(&kept, 3)
	assert.Equal(t, "\n[cut after 0 bytes: 200 bytes left out]\n", kept.Log, "characters stay whole")
}
