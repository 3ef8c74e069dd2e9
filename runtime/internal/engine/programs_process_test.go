//go:build !race

package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/programs"
)

// Random programs run in a separate process, this test binary once more, which announces each program before it runs
// it. A guest that metering does not stop cannot be stopped at all, not even for the garbage collector, so its whole
// process hangs. Then this process ends it, and knows the program from its last announcement.
//
// The race detector slows down the times that are measured, and sees nothing in here.

var (
	programsToRun = flag.Int("programs", 0, "how many random programs each test of programs runs; 0: as many as it says")
	shrinkFor     = flag.Duration("shrink", 0, "for how long each program that does not come back is made smaller")
	byTheClock    = flag.Bool("by-the-clock", false, "judge by the clock how late programs end, on a machine that is otherwise idle")
	firstProgram  = flag.Uint64("first-program", 0, "the seed of the first of them; the others follow")
)

const (
	// programsRange is the variable that holds the seeds which a process is to run.
	programsRange = "CAISSON_TEST_PROGRAMS"
	// programPatience is the time after which a program counts as not stopped. It must be longer than making a failing
	// program smaller takes.
	programPatience = 5 * time.Second
	// mostEscapes is the number of programs that are not stopped after which a test gives up, and the maximum number of
	// failures that it reports.
	mostEscapes = 10
)

// news is a process's message about one program.
type news struct {
	Seed    uint64
	Problem string // empty: the program begins
}

// runPrograms runs random programs in other processes, each with the function, and shows those that do not come back.
// In such a process, it runs the programs of that process. The flag overrides count.
func runPrograms(t *testing.T, count int, show func(seed uint64) *programs.Program, run func(t *testing.T, seed uint64, report func(problem string))) {
	if seeds, running := os.LookupEnv(programsRange); running {
		tellOfPrograms(t, seeds, run)
		return
	}
	if file, running := os.LookupEnv(programModule); running {
		runModule(t, file)
		return
	}
	next := *firstProgram
	end := next + uint64(cmp.Or(*programsToRun, count))
	failures, escapes := 0, 0
	for next < end {
		last, finished, output := listen(t, rangeOf(next, end), programPatience, func(w news) {
			if failures++; failures <= mostEscapes {
				t.Errorf("program %d (go test -run '^%s$' -programs 1 -first-program %d): %s", w.Seed, t.Name(), w.Seed, w.Problem)
			}
		})
		if finished {
			break
		}
		t.Errorf("program %d did not come back (go test -run '^%s$' -programs 1 -first-program %d)\n%s", last, t.Name(), last, output)
		if show != nil {
			t.Log(show(last))
			shrinkEscape(t, show(last))
		}
		if escapes++; escapes == mostEscapes {
			t.Fatalf("%d programs did not come back; the others were not tried", escapes)
		}
		next = last + 1
	}
	require.Zero(t, failures, "programs that failed")
}

// tellOfPrograms runs programs, and announces each.
func tellOfPrograms(t *testing.T, seeds string, run func(t *testing.T, seed uint64, report func(problem string))) {
	var next, end uint64
	_, err := fmt.Sscanf(seeds, "%d-%d", &next, &end)
	require.NoError(t, err)
	encoder := json.NewEncoder(os.Stdout)
	for seed := next; seed < end; seed++ {
		assert.NoError(t, encoder.Encode(news{Seed: seed}))
		run(t, seed, func(problem string) { assert.NoError(t, encoder.Encode(news{seed, problem})) })
	}
}

func rangeOf(next, end uint64) string { return fmt.Sprintf("%s=%d-%d", programsRange, next, end) }

// listen runs programs in one process, as the variable says, and passes on the problems that it reports. It returns the
// last program that began, and whether the process came to its end. It ends a process that says nothing for as long as
// its patience lasts.
func listen(t *testing.T, variable string, patience time.Duration, problem func(news)) (last uint64, finished bool, output string) {
	executable, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	child := exec.CommandContext(ctx, executable, "-test.run=^"+t.Name()+"$", "-test.timeout=24h", fmt.Sprintf("-by-the-clock=%v", *byTheClock))
	child.Env = append(os.Environ(), variable)
	child.WaitDelay = time.Second
	var wrong bytes.Buffer
	child.Stderr = &wrong
	said, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var silent atomic.Bool
	timer := time.AfterFunc(time.Minute, func() { silent.Store(true); cancel() }) // to begin
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		timer.Reset(patience)
		var w news
		if json.Unmarshal(lines.Bytes(), &w) != nil {
			wrong.Write(append(lines.Bytes(), '\n'))
			continue
		}
		last = w.Seed
		if w.Problem != "" {
			problem(w)
		}
	}
	timer.Stop()
	failed := child.Wait()
	if silent.Load() {
		return last, false, wrong.String()
	}
	if failed != nil {
		return last, false, fmt.Sprintf("%v\n%s", failed, wrong.String())
	}
	return last, true, ""
}

// TestSilenceIsNoticed is the control of the tests of programs: a process that hangs is ended, and the program that it
// ran is known.
func TestSilenceIsNoticed(t *testing.T) {
	if seeds, running := os.LookupEnv(programsRange); running {
		tellOfPrograms(t, seeds, func(t *testing.T, seed uint64, report func(string)) {
			switch seed {
			case 3:
				report("a problem")
			case 5:
				select {}
			case 7:
				os.Exit(1)
			}
		})
		return
	}
	for _, c := range []struct {
		next, end, last uint64
		finished        bool
		problems        []news
	}{
		{0, 5, 4, true, []news{{3, "a problem"}}},
		{4, 9, 5, false, nil},
		{6, 9, 7, false, nil},
	} {
		var problems []news
		last, finished, _ := listen(t, rangeOf(c.next, c.end), 2*time.Second, func(w news) { problems = append(problems, w) })
		assert.Equal(t, c.last, last)
		assert.Equal(t, c.finished, finished)
		assert.Equal(t, c.problems, problems)
	}
}
