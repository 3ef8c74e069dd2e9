//go:build !race

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An attack runs in a process of its own, this test binary once more, so that what it
// takes can be measured, and a crash or a hang is observed and not suffered. In that
// process the test of the same name performs the attack; in this one it judges.
//
// The race detector changes the times and the memory that are measured here, so these
// tests are not for it. TestAttackHammer, of package runtime, is.

// reportFile is the variable that names the file for the report of a process which
// performs an attack.
const reportFile = "CAISSON_TEST_ATTACK_REPORT"

// performing tells whether this process is there to perform an attack.
func performing() bool { return os.Getenv(reportFile) != "" }

// begin says that the attack begins: its time counts from here.
func begin() { fmt.Println(beginning) }

const beginning = "the attack begins"

// report is what a process measured that performed an attack.
type report struct {
	Over     []time.Duration // for each attempt, how long after the deadline the last answer came
	Ends     []string        // the kinds of the calls' ends; empty for success
	Problem  string          // the text of the last error
	Baseline int64           // bytes resident before the attack; 0 where the system does not tell
	Peak     int64           // the most bytes resident during it
	Survivor string          // what became of an innocent call afterwards; empty for success
	Value    int64           // what a control got hold of, in a unit of its own
}

func (r report) grown() int64 { return r.Peak - r.Baseline }

func (r report) send(t *testing.T) {
	t.Helper()
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(os.Getenv(reportFile), encoded, 0o600))
}

// ending is how a process came to its end that performed an attack.
type ending struct {
	report
	reported bool
	killed   bool // its time was up
	output   string
	failure  error // of this process, so that the attack says nothing
}

// perform runs the named test in a process of its own, which is killed when so much time
// has passed since the attack began, or since the process last said something. It may be
// called from any goroutine.
func perform(ctx context.Context, directory, name string, patience time.Duration) ending {
	executable, err := os.Executable()
	if err != nil {
		return ending{failure: err}
	}
	file := filepath.Join(directory, "report.json")
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, executable, "-test.run="+exactly(name))
	child.Env = append(os.Environ(), reportFile+"="+file)
	child.WaitDelay = time.Second
	var late atomic.Bool
	var watchdog *time.Timer
	said := &listener{heard: func() {
		if watchdog == nil {
			watchdog = time.AfterFunc(patience, func() { late.Store(true); cancel() })
		}
		watchdog.Reset(patience)
	}}
	child.Stdout, child.Stderr = said, said
	failed := child.Run()
	e := ending{killed: late.Load() && failed != nil, output: said.String()}
	if !said.done {
		e.failure = fmt.Errorf("the attack never began: %w: %s", failed, e.output)
	}
	if encoded, err := os.ReadFile(file); err == nil {
		e.reported = true
		e.failure = errors.Join(e.failure, json.Unmarshal(encoded, &e.report))
	}
	return e
}

// trial is one of several attacks that processes perform at once.
type trial struct {
	name     string // of the subtest
	patience time.Duration
	large    bool // it takes gigabytes, so that it runs beside no other such
}

// eachTrial performs attacks, some at a time, and judges in a subtest each how its process ended. In a
// process that performs, the subtest does.
func eachTrial[T any](t *testing.T, all []T, trialOf func(T) trial, perform func(T, *testing.T) report, judge func(T, *testing.T, ending)) {
	t.Helper()
	trials := make([]trial, len(all))
	for i, one := range all {
		trials[i] = trialOf(one)
	}
	endings := atOnce(t, 4, trials)
	for i, one := range all {
		t.Run(trials[i].name, func(t *testing.T) {
			if performing() {
				perform(one, t).send(t)
				return
			}
			require.NoError(t, endings[i].failure)
			judge(one, t, endings[i])
		})
	}
}

// atOnce performs the trials, subtests of this test, so many at a time. What it returns is in the order
// of the trials. In a process that performs, it does nothing.
func atOnce(t *testing.T, most int, trials []trial) []ending {
	t.Helper()
	endings := make([]ending, len(trials))
	if performing() {
		return endings
	}
	var group sync.WaitGroup
	var large sync.Mutex
	turns := make(chan struct{}, most)
	for i, one := range trials {
		directory := t.TempDir()
		group.Go(func() {
			if one.large {
				large.Lock()
				defer large.Unlock()
			}
			turns <- struct{}{}
			defer func() { <-turns }()
			endings[i] = perform(t.Context(), directory, t.Name()+"/"+subtest(one.name), one.patience)
		})
	}
	group.Wait()
	return endings
}

// exactly is the pattern that matches one test and no other.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// listener keeps the first kilobytes of what a process says, and calls heard when the
// attack begins, and then whenever the process says something. It serves one goroutine at a
// time.
type listener struct {
	said  bytes.Buffer
	heard func()
	done  bool
}

func (l *listener) String() string { return l.said.String() }

func (l *listener) Write(p []byte) (int, error) {
	if room := 8<<10 - l.said.Len(); room > 0 {
		l.said.Write(p[:min(len(p), room)])
	}
	if l.done = l.done || bytes.Contains(l.said.Bytes(), []byte(beginning)); l.done {
		l.heard()
	}
	return len(p), nil
}

// subtest is how the testing package spells a subtest's name.
func subtest(name string) string { return strings.ReplaceAll(name, " ", "_") }
