//go:build !race

package runtime

import (
	"context"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// A call for which no started instance is idle starts one, and looks at its own context meanwhile: cancellation and
// the deadline of a calling tool end it.
func TestAttackCancelledWhileStarting(t *testing.T) {
	const rounds = 400 // of filling a mebibyte with random bytes: some seconds
	r := newRuntime(t, Options{Running: 8, OnRunaway: func(r Runaway) { t.Error("counts as a runaway:", r.Place()) }})
	subscription := "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\xe4\x0b\x54\x02\x00\x00\x00" + strings.Repeat("\x00", 16) // 10 s of the monotonic clock
	vector := "\x00\x10\x00\x00\x10\x00\x00\x00" // lateTexts + 0
	body := phased([]string{lateSegment(lateTexts, subscription+vector)},
		phase{rounds, []hostCall{does("random_get", lateBuffer, lateBufferSize)}},
		phase{1, []hostCall{does("fd_read", 0, lateTexts+48, 1, lateOut), does("poll_oneoff", lateTexts, lateBuffer, 1, lateOut)}})
	guest := load(t, r, named(t, "guest", body, "behavior: {snapshot: start}\nlimits: {timeout: 60s, fuel: 100000000000}\n"), manifests.Grants{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call := func(ctx context.Context) { _, _ = guest.Invoke(ctx, invocation(t, `{}`, nil)) }
	require.NoError(t, guest.Prepare(ctx))
	for range 2 { // the second makes the host start the program for later calls
		short, end := context.WithTimeout(ctx, 50*time.Millisecond)
		defer end()
		call(short)
	}
	require.Eventually(t, func() bool {
		guest.program.mu.Lock()
		defer guest.program.mu.Unlock()
		require.Empty(t, guest.program.reason)
		return guest.program.started != nil
	}, time.Minute, 10*time.Millisecond)
	t.Log("a start takes", guest.program.started.Cost().Time)
	for range 2 { // the instances that are idle
		go call(ctx)
	}
	time.Sleep(300 * time.Millisecond)
	const after = 100 * time.Millisecond
	third, end := context.WithTimeout(ctx, after)
	defer end()
	began := time.Now()
	outcome, _ := guest.Invoke(third, invocation(t, `{}`, nil))
	assert.Less(t, time.Since(began), guest.program.started.Cost().Time)
	assert.Equal(t, tool.Deadline, outcome.Result.Kind)
}

// TestAttackFuelOfStarts: a guest with a deep native stack is reset like any other. Otherwise its program would be
// started for each call. So is one whose memory has grown to its declared maximum. A program whose start takes more
// fuel than a call may use is not resumed: a call that finds no idle instance could not pay for one.
func TestAttackFuelOfStarts(t *testing.T) {
	const work = 100_000_000
	// Function 2: 2,500 levels of recursion keep 60 values each, so that the native stack grows beyond a mebibyte.
	kept, after := "", ""
	for i := range 60 {
		kept += "\x20\x00\x41" + signed(i+3) + "\x6c" // local.get 0, i32.const, i32.mul
		after += "\x6a"
	}
	for _, test := range []struct {
		name, then string // then is its code after its first read
		fuel       int
	}{
		{"a deep stack", "\x41" + signed(2500) + "\x10\x02\x1a", 2 * work},
		{"all memory", "\x41\x01\x40\x00\x1a", 2 * work}, // memory.grow
		{"too little fuel", "", work / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRuntime(t, Options{Running: 8})
			read := "\x41\x00\x41" + signed(lateTexts) + "\x41\x01\x41\x10\x10\x00\x1a"
			body := "\x01\x01\x7f" + loop(work/5) + read + test.then + "\x0b"
			module := magic + section(1, "\x03\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00\x60\x01\x7f\x01\x7f") +
				section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("fd_read")+"\x00\x00") + section(3, "\x02\x01\x02") + section(5, "\x01\x01\x01\x02") +
				section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") +
				section(10, "\x02"+vector(body)+vector("\x00\x20\x00\x45\x04\x7f\x41\x01\x05"+kept+"\x20\x00\x41\x01\x6b\x10\x02"+after+"\x0b\x0b"))
			guest := load(t, r, named(t, "guest", module, fmt.Sprintf("behavior: {snapshot: start}\nlimits: {timeout: 60s, fuel: %d}\n", test.fuel)), manifests.Grants{})
			require.NoError(t, guest.Prepare(t.Context()))
			wanted := tool.Kind("")
			if test.fuel < work {
				wanted = tool.Fuel
			}
			check := func() (fuel int64) {
				t.Helper()
				outcome, _ := invoke(t, guest, `{}`)
				assert.Equal(t, wanted, outcome.Result.Kind)
				return *outcome.Usage.Fuel
			}
			check()
			check()
			require.Eventually(t, func() bool {
				guest.program.mu.Lock()
				defer guest.program.mu.Unlock()
				return guest.program.started != nil || guest.program.reason != ""
			}, 20*time.Second, 10*time.Millisecond)
			if test.fuel < work {
				assert.Contains(t, guest.program.reason, "fuel")
				check()
				return
			}
			require.NotNil(t, guest.program.started, guest.program.reason)
			for range 30 {
				assert.Less(t, check(), int64(work), "no call has it started again")
			}
		})
	}
}

// TestAttackFuelPaidInTheStart: a resumed program is charged for the work after it returns from the calls before its
// first read, when it does that work. It was charged in the start: calls with a limit of 1,000 units did 40 million.
// Their limit allows the work before the read.
func TestAttackFuelPaidInTheStart(t *testing.T) {
	const depth, work, fuel = 10_000, 3_000, 1_000_000
	// Modules in a shared cache may have been metered in another way.
	r := newRuntime(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	// Function 2 calls itself, reads at the deepest level, and works after the calls. Function 1 begins it.
	read := "\x41\x00\x41\x10\x41\x01\x41\x0c\x10\x00\x1a"
	recursion := "\x00\x20\x00\x45\x04\x40" + read + "\x05\x20\x00\x41\x01\x6b\x10\x02\x20\x00" + strings.Repeat("\x45", work) + "\x1a\x0b\x0b"
	module := magic + section(1, "\x03\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00\x60\x01\x7f\x00") +
		section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("fd_read")+"\x00\x00") + section(3, "\x02\x01\x02") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") +
		section(10, "\x02"+vector("\x00\x41"+signed(depth)+"\x10\x02\x0b")+vector(recursion))
	for _, limit := range []int{fuel, 2 * depth * work} {
		guest := load(t, r, named(t, "guest", module, fmt.Sprintf("limits: {timeout: 60s, fuel: %d}\n", limit)), manifests.Grants{})
		require.NoError(t, guest.Prepare(t.Context()))
		for range 2 {
			_, _ = invoke(t, guest, `{}`)
		}
		require.Eventually(t, func() bool {
			guest.program.mu.Lock()
			defer guest.program.mu.Unlock()
			return guest.program.started != nil
		}, time.Minute, 10*time.Millisecond, guest.program.reason)
		outcome, err := invoke(t, guest, `{}`)
		if limit == fuel {
			assert.Equal(t, tool.Fuel, outcome.Result.Kind, "it used %d units", *outcome.Usage.Fuel)
			continue
		}
		require.NoError(t, err, "control: fuel for all")
		assert.Greater(t, *outcome.Usage.Fuel, int64(depth*work), "control: the resumed call does it")
	}
}

// A program with a large native stack at its first read is started in each call. Saving 65 MB, which a stack could have
// once, made calls 0.1 s late, and many at once held gigabytes.
func TestAttackLargeStacksOfStarts(t *testing.T) {
	r := newRuntime(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	// Function 2 calls itself, and reads at the deepest level. Before that come blocks in one another, which paths
	// leave together, on which 127 vectors differ. wazero keeps a place on the stack for each vector and block.
	const vectors, depth = 127, 6
	assigned, used := "", ""
	for v := 1; v <= vectors; v++ {
		assigned += "\xfd\x0c" + strings.Repeat(string(rune(v)), 16) + "\x21" + number(v) // v128.const, local.set
		used += "\x20" + number(v) + "\xfd\x53\x1a"                                       // local.get, v128.any_true, drop
	}
	read := "\x41\x00\x41\x10\x41\x01\x41\x0c\x10\x00\x1a"
	for blocks, large := range map[int]bool{20: false, 500: true} {
		labels := ""
		for label := 1; label <= blocks; label++ {
			labels += number(label)
		}
		joined := strings.Repeat("\x02\x40", blocks) + "\x20\x00\x41" + signed(1_000_000) + "\x4b\x04\x40" + assigned +
			"\x20\x00\x0e" + number(blocks-1) + labels + "\x0b" + strings.Repeat("\x0b", blocks) // if it is above a million: br_table
		recursion := "\x01" + number(vectors) + "\x7b" + joined + "\x20\x00\x04\x40\x20\x00\x41\x01\x6b\x10\x02\x05" + read + "\x0b" + used + "\x0b"
		module := magic + section(1, "\x03\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00\x60\x01\x7f\x00") +
			section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("fd_read")+"\x00\x00") + section(3, "\x02\x01\x02") + section(5, "\x01\x00\x01") +
			section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") +
			section(10, "\x02"+vector("\x00\x41"+signed(depth)+"\x10\x02\x0b")+vector(recursion))
		guest := load(t, r, named(t, "guest", module, "limits: {timeout: 60s}\n"), manifests.Grants{})
		require.NoError(t, guest.Prepare(t.Context()))
		for range 2 {
			outcome, err := invoke(t, guest, `{}`)
			require.NoError(t, err, outcome.Result.Error)
		}
		require.Eventually(t, func() bool {
			guest.program.mu.Lock()
			defer guest.program.mu.Unlock()
			if large {
				return strings.Contains(guest.program.reason, "its stack has")
			}
			return guest.program.started != nil
		}, time.Minute, 10*time.Millisecond, guest.program.reason)
		outcome, err := invoke(t, guest, `{}`)
		assert.NoError(t, err, outcome.Result.Error)
	}
}

// TestAttackStartsOfClosedTools: programs of closed tools are no longer started, and leave room for those of other
// tools.
func TestAttackStartsOfClosedTools(t *testing.T) {
	r := newRuntime(t, Options{OnRunaway: func(r Runaway) { t.Error("counts as a runaway:", r.Place()) }})
	guest := func(name string, rounds int) *Tool {
		body := phased([]string{lateSegment(lateTexts, "\x00\x10\x00\x00\x10\x00\x00\x00")},
			phase{rounds, []hostCall{does("random_get", lateBuffer, lateBufferSize)}},
			phase{1, []hostCall{does("fd_read", 0, lateTexts, 1, lateOut)}})
		return load(t, r, named(t, name, body, "behavior: {snapshot: start}\nlimits: {timeout: 60s, fuel: 100000000000}\n"), manifests.Grants{})
	}
	twice := func(guest *Tool) {
		require.NoError(t, guest.Prepare(t.Context()))
		for range 2 { // the second makes the host start the program for later calls
			short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer end()
			_, _ = guest.Invoke(short, invocation(t, `{}`, nil))
		}
	}
	for n := range 4 * goruntime.GOMAXPROCS(0) { // eight times as many as are started at a time
		closed := guest(fmt.Sprint("closed-", n), 1_000_000) // for ten seconds, after which its fuel is used up
		twice(closed)
		require.NoError(t, closed.Close(t.Context()))
		twice(closed)
	}
	other := guest("other", 1)
	twice(other)
	require.Eventually(t, func() bool {
		other.program.mu.Lock()
		defer other.program.mu.Unlock()
		return other.program.started != nil
	}, 20*time.Second, time.Millisecond)
}
