package executor_test

import (
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestPlanningIsLinear: what it takes to plan a call that waits does not depend on how many wait before
// it, though what an approval of it is for does.
func TestPlanningIsLinear(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newGuarded(t, "erase", "it asks", nil, echo))
	planned := func(count int) (bytes uint64) {
		calls := make([]tool.Call, count)
		for i := range calls {
			calls[i] = newCall(fmt.Sprint(i), "erase", `{}`)
		}
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		report, err := e.Execute(t.Context(), executor.Batch{Calls: calls})
		goruntime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, report.Pending, count)
		return after.TotalAlloc - before.TotalAlloc
	}
	planned(100)
	few, many := planned(500), planned(4000)
	assert.Less(t, many, 12*few, "eight times as many take much more than eight times as much")
}
