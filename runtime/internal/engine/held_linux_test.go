//go:build linux && !race

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
)

// Idle instances are measured in separate processes, so that nothing else adds to their memory. A process runs the test
// of the same name, with this variable.
const measuringHeld = "CAISSON_TEST_HELD"

// A pool's count must be near the process's memory: within a factor, and a few mebibytes that the Go runtime and the
// system add. Allocated bytes of the Go heap need not be resident, such as an empty table, and resident bytes may be
// outside of it, such as linear memory. So the count is at least either, and at most both.
const (
	heldFactor = 1.2
	heldSlack  = 4 * mebibyte
)

// elements is a module whose segment of so many references to its function fills a table, or is passive.
func elements(count int, passive bool) []byte {
	head := []byte{1, 0, 0x41, 0, 0x0b}
	if passive {
		head = []byte{1, 1, 0}
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(4, join([]byte{1, 0x70, 0}, leb(count))...),
		section(7, join([]byte{1}, name("run"), []byte{0, 0})...),
		section(9, join(head, leb(count), make([]byte, count))...), section(10, join([]byte{1}, function(nil))...))
}

// globalsOf is a module with so many globals that do not change.
func globalsOf(count int) []byte {
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 1, 0x60, 0, 0), section(3, 1, 0),
		section(6, join(leb(count), bytes.Repeat([]byte{0x7e, 0, 0x42, 0, 0x0b}, count))...),
		section(7, join([]byte{1}, name("run"), []byte{0, 0})...), section(10, join([]byte{1}, function(nil))...))
}

// writing is a module that writes to so many pages of 4 KiB.
func writing(pages int) program {
	return program{memory: 1 + pages/16, locals: 1, body: join( // loop: memory[local 0] = 1; local 0 += 4096; if local 0 < pages * 4096: again
		[]byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x36, 2, 0, 0x20, 0, 0x41}, sleb(4096), []byte{0x6a, 0x22, 0, 0x41}, sleb(int64(pages)*4096), []byte{0x49, 0x0d, 0, 0x0b})}
}

// exportingTable exports its table under many names.
func exportingTable(names int) []byte {
	exports := [][]byte{name("run"), {0, 0}}
	for n := range names {
		exports = append(exports, name(strconv.Itoa(n)), []byte{1, 0})
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(4, 1, 0x70, 0, 1),
		section(7, join(leb(names+1), join(exports...))...), section(10, join([]byte{1}, function(nil))...))
}

// idleCase fills the pool of an engine with instances of one kind.
type idleCase struct {
	name  string
	count int
	make  func(t *testing.T, e *Engine) func() // prepares, and returns a function that adds an instance
}

// idleRuns adds instances that have run once.
func idleRuns(source Source) func(*testing.T, *Engine) func() {
	return func(t *testing.T, e *Engine) func() {
		module, run := compileLinked(t, e, source), Run{Function: "run", MemoryLimit: 16 * mebibyte}
		mustRun(t, module, run)
		key := poolKey{module, uint64(run.MemoryLimit)}
		return func() {
			i, err := module.instantiate(t.Context(), key.memory)
			require.NoError(t, err)
			_, err = i.run(t.Context(), key, run)
			require.NoError(t, err)
		}
	}
}

// idleStarts adds instances of a started program, or instances of it that have been resumed once.
func idleStarts(depth int, resumed bool) func(*testing.T, *Engine) func() {
	return func(t *testing.T, e *Engine) func() {
		module := compileSource(t, e, readAtDepth(depth))
		program, err := module.Start(t.Context(), Start{
			Context: func(ctx context.Context) context.Context { return ctx }, MemoryLimit: mebibyte, Timeout: time.Minute, Fuel: 1 << 40,
		})
		require.NoError(t, err)
		return func() {
			i, _, err := program.begin(t.Context(), program.start.Fuel, nil)
			require.NoError(t, err)
			if resumed {
				_, err = i.run(t.Context(), program.key(), Run{Function: "_start"})
				require.NoError(t, err)
			} else {
				e.idle.put(program.key(), i)
			}
		}
	}
}

var idleCases = []idleCase{
	{"small", 500, idleRuns(Source{Module: program{body: nothing, memory: 1}.bytes()})},
	{"no memory", 500, idleRuns(Source{Module: program{body: nothing, memory: -1}.bytes()})},
	{"written pages", 50, idleRuns(Source{Module: writing(500).bytes()})},
	{"a table of a million elements", 10, idleRuns(Source{Module: program{body: nothing, memory: -1, tables: join([]byte{1, 0x70, 0}, leb(1_000_000))}.bytes()})},
	{"a table of functions", 20, idleRuns(Source{Module: elements(100_000, false)})},
	{"a passive segment", 20, idleRuns(Source{Module: elements(100_000, true)})},
	{"globals", 90, idleRuns(Source{Module: globalsOf(10_000)})},
	{"exports of a table", 20, idleRuns(Source{Module: exportingTable(50_000)})},
	{"a stack that grew", 100, idleRuns(Source{Module: recursing(5000).bytes()})},
	{"libraries", 10, idleRuns(Source{
		Module: program{memory: -1, libraries: []string{"a", "b"}, body: []byte{0x10, 0, 0x10, 1}}.bytes(),
		Libraries: map[string][]byte{"a": writing(500).bytes(),
			"b": program{body: nothing, memory: -1, tables: join([]byte{1, 0x70, 0}, leb(1_000_000))}.bytes()},
	})},
	{"a started program", 300, idleStarts(10, false)},
	{"a started program with a deep stack", 10, idleStarts(50_000, false)},
	{"a resumed program", 100, idleStarts(5_000, true)},
}

// anonymous returns the bytes of this process that are not shared, once nothing is left to free.
func anonymous(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what finalizers held
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(status), "RssAnon:")
	require.True(t, found)
	var kilobytes int64
	_, err = fmt.Sscan(after, &kilobytes)
	require.NoError(t, err)
	return kilobytes << 10
}

// inChild runs a subtest in a child process, and returns its output.
func inChild(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+"^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.count=1", "-test.v")
	command.Env = append(os.Environ(), measuringHeld+"=1", "GOGC=50")
	printed, err := command.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	return string(printed)
}

// TestHeldIsWhatTheProcessHolds: for each kind of idle instances, the pool counts as much memory as they add to the
// process.
func TestHeldIsWhatTheProcessHolds(t *testing.T) {
	for _, c := range testsize.QuickSample(idleCases, 6) {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if os.Getenv(measuringHeld) == "" {
				t.Parallel()
				t.Log(inChild(t))
				return
			}
			e := newEngine(t, Options{IdleBytes: 1 << 40, IdleTime: time.Hour, Functions: []hostfuncs.Function{readNothing()}}, nil)
			add := c.make(t, e)
			residentBefore, heapBefore, before := anonymous(t), heap(), e.idle.taken
			for range c.count {
				add()
			}
			resident, allocated, counted := anonymous(t)-residentBefore, heap()-heapBefore, e.idle.taken-before
			t.Logf("%d instances: %d KiB are resident, %d KiB allocated, %d KiB counted", c.count, resident>>10, allocated>>10, counted>>10)
			assert.LessOrEqual(t, float64(max(resident, allocated)), heldFactor*float64(counted)+heldSlack, "all is counted")
			assert.LessOrEqual(t, float64(counted), heldFactor*float64(resident+allocated)+heldSlack, "no more is counted")
		})
	}
}

// TestAttackIdleMemory: whatever instances hold, those that are idle hold no more together than IdleBytes.
func TestAttackIdleMemory(t *testing.T) {
	const limit = 32 * mebibyte
	attacks := map[string]bool{"a started program with a deep stack": true, "a table of functions": true}
	for _, c := range idleCases {
		if !attacks[c.name] {
			continue
		}
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if os.Getenv(measuringHeld) == "" {
				t.Parallel()
				t.Log(inChild(t))
				return
			}
			e := newEngine(t, Options{IdleBytes: limit, IdleTime: time.Hour, Functions: []hostfuncs.Function{readNothing()}}, nil)
			add := c.make(t, e)
			before := anonymous(t)
			for range 3 * c.count {
				add()
			}
			assert.LessOrEqual(t, float64(anonymous(t)-before), heldFactor*limit+heldSlack)
		})
	}
}
