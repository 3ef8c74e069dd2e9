package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// memory is a guest's, as its calls of the host see it.
type memory []byte

func (m memory) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if end > uint64(len(m)) {
		return nil, false
	}
	return m[offset:end], true
}

// TestStartsCallOnlyWhatIsTheSameForAllCalls: a program that is started once for all calls
// is ended by each function but those whose answers no call takes part in.
func TestStartsCallOnlyWhatIsTheSameForAllCalls(t *testing.T) {
	guest := loadEarly(t, newRuntime(t, Options{}), languages["C"], start{does: "constant"})
	var answered []string
	for _, function := range wasi.Functions() {
		system := guest.starting(nil, changed("ann"), nil, &asked{})
		system.Random = nil // it need not be drawn to see that it could be
		err := function.Call(wasi.With(t.Context(), system), make(memory, 1024), make([]uint64, max(len(function.Params), 1)))
		if err == nil {
			answered = append(answered, function.Name)
			continue
		}
		var refused *wasi.StartError
		require.ErrorAs(t, err, &refused, function.Name)
		assert.Equal(t, function.Name, refused.Function)
	}
	assert.ElementsMatch(t, []string{
		"args_get", "args_sizes_get", "environ_get", "environ_sizes_get", // the tool's
		"clock_res_get", "clock_time_get", "random_get", // counted, and of one seed
		"fd_fdstat_get", "fd_fdstat_set_flags", "fd_prestat_get", "fd_prestat_dir_name", // of the tool's mounts
		"sched_yield",
	}, answered)
}
