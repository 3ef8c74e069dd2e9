//go:build !race

package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An attack runs in a separate process, this test binary once more, so that its memory and time can be measured, and
// the test survives a crash or a hang. In that process the test of the same name performs the attack; in this one it
// judges.
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

// report holds the measurements of a process that performed an attack.
type report struct {
	Over     []time.Duration // for each attempt, the delay of the last answer after the deadline
	Ends     []string        // the kinds of the calls' ends; empty for success
	Problem  string          // the text of the last error
	Baseline int64           // bytes resident before the attack; 0 where the system does not tell
	Peak     int64           // the most bytes resident during it
	Survivor string          // the failure of an innocent call afterwards; empty for success
	Value    int64           // the size of a control's effect, in a unit that the control chooses
}

func (r report) grown() int64 { return r.Peak - r.Baseline }

func (r report) send(t *testing.T) {
	t.Helper()
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(os.Getenv(reportFile), encoded, 0o600))
}

// ending describes how a process that performed an attack ended.
type ending struct {
	report
	reported bool
	killed   bool // its time was up
	output   string
	failure  error // of this process, so that the attack says nothing
}

// perform runs the named test in a separate process, which is killed when so much time has passed since the attack
// began, or since the process last said something. It may be called from any goroutine.
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
	large    bool // it takes gigabytes, so only one such trial runs at a time
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

// atOnce performs the trials, subtests of this test, with a limit on how many run at a time. The endings are in the
// order of the trials. In a process that performs an attack, it does nothing.
func atOnce(t *testing.T, limit int, trials []trial) []ending {
	t.Helper()
	endings := make([]ending, len(trials))
	if performing() {
		return endings
	}
	var group sync.WaitGroup
	var large sync.Mutex
	turns := make(chan struct{}, limit)
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

// exactly returns a pattern that matches only this test.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// listener keeps the first kilobytes of a process's output, and calls heard when the attack begins, and then whenever
// the process says something. It serves one goroutine at a time.
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

// subtest returns a subtest's name as the testing package spells it.
func subtest(name string) string { return strings.ReplaceAll(name, " ", "_") }

// guest is a hostile WASI command, assembled by hand. Function 0 and up are its imports, then comes _start, then the
// functions in others; all but the imports take and return nothing.
type guest struct {
	imports    []string // of WASI
	memory     []byte   // its limits (§5.3.4); nil for no memory
	table      []byte   // a table type (§5.3.7); nil for no table
	locals     []byte   // of each function: a vector of groups; nil for none
	body       []byte   // of _start, without the final end
	others     [][]byte // the bodies of further functions
	initialize bool     // the last function is exported as _initialize
	start      bool     // the last function is the start function
	elements   []byte   // the element section's contents
	tail       []byte   // sections that follow
}

// wasi holds the parameters of the functions that hostile guests call: i for i32. All
// return an i32, save proc_exit.
var wasi = map[string]int{
	"fd_write": 4, "fd_read": 4, "poll_oneoff": 4, "random_get": 2, "proc_exit": 1, "environ_sizes_get": 2, "path_open": 9,
}

func (g guest) bytes() []byte {
	types, imports := [][]byte{{0x60, 0, 0}}, [][]byte{}
	for i, function := range g.imports {
		types = append(types, signature(function))
		imports = append(imports, slices.Concat(text("wasi_snapshot_preview1"), text(function), []byte{0, byte(i + 1)}))
	}
	bodies := append([][]byte{g.body}, g.others...)
	last := unsigned(uint64(len(g.imports) + len(bodies) - 1))
	exports := [][]byte{slices.Concat(text("_start"), []byte{0, byte(len(g.imports))})}
	if g.memory != nil {
		exports = append(exports, slices.Concat(text("memory"), []byte{2, 0}))
	}
	if g.initialize {
		exports = append(exports, slices.Concat(text("_initialize"), []byte{0}, last))
	}
	code := make([][]byte, len(bodies))
	for i, body := range bodies {
		code[i] = function(g.locals, body)
	}
	module := slices.Concat(header, section(1, vector(types...)))
	if len(imports) > 0 {
		module = append(module, section(2, vector(imports...))...)
	}
	module = append(module, section(3, unsigned(uint64(len(bodies))), make([]byte, len(bodies)))...)
	if g.table != nil {
		module = append(module, section(4, vector(g.table))...)
	}
	if g.memory != nil {
		module = append(module, section(5, vector(g.memory))...)
	}
	module = append(module, section(7, vector(exports...))...)
	if g.start {
		module = append(module, section(8, last)...)
	}
	if g.elements != nil {
		module = append(module, section(9, g.elements)...)
	}
	return slices.Concat(module, section(10, vector(code...)), g.tail)
}

func signature(name string) []byte {
	params := bytes.Repeat([]byte{0x7f}, wasi[name])
	if name == "path_open" { // two of its parameters are sets of rights
		params[5], params[6] = 0x7e, 0x7e
	}
	results := []byte{1, 0x7f}
	if name == "proc_exit" {
		results = []byte{0}
	}
	return slices.Concat([]byte{0x60}, unsigned(uint64(len(params))), params, results)
}

// The binary format (§5).

var header = []byte("\x00asm\x01\x00\x00\x00")

func unsigned(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// signed is a signed integer in LEB128.
func signed(n int64) []byte {
	var encoded []byte
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(encoded, low)
		}
		encoded = append(encoded, low|0x80)
	}
}

func text(s string) []byte { return append(unsigned(uint64(len(s))), s...) }

func section(id byte, content ...[]byte) []byte {
	joined := slices.Concat(content...)
	return slices.Concat([]byte{id}, unsigned(uint64(len(joined))), joined)
}

func vector(elements ...[]byte) []byte {
	return append(unsigned(uint64(len(elements))), slices.Concat(elements...)...)
}

// function is an entry of the code section.
func function(locals, body []byte) []byte {
	if locals == nil {
		locals = []byte{0}
	}
	code := slices.Concat(locals, body, []byte{0x0b})
	return append(unsigned(uint64(len(code))), code...)
}

// Instructions.

// number is i32.const; addresses above 2 GiB are negative there.
func number(n uint32) []byte { return append([]byte{0x41}, signed(int64(int32(n)))...) }

func call(function uint32) []byte { return append([]byte{0x10}, unsigned(uint64(function))...) }

func store(address, value uint32) []byte {
	return slices.Concat(number(address), number(value), []byte{0x36, 2, 0})
}

// fill is memory.fill.
func fill(address, length uint32) []byte {
	return slices.Concat(number(address), number(1), number(length), []byte{0xfc, 0x0b, 0})
}

// invoke calls an imported function, whose result it drops.
func invoke(function uint32, arguments ...uint32) []byte {
	var code []byte
	for _, argument := range arguments {
		code = append(code, number(argument)...)
	}
	return slices.Concat(code, call(function), []byte{0x1a})
}

// endless repeats the code forever.
func endless(code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(code...), []byte{0x0c, 0, 0x0b})
}

// times repeats the code, counting in local 0.
func times(n uint32, code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(code...),
		[]byte{0x20, 0}, number(1), []byte{0x6a, 0x22, 0}, number(n), []byte{0x49, 0x0d, 0, 0x0b}) // local 0 + 1 < n: br_if 0
}

// trapUnless traps unless the i32 that the code leaves is not zero.
func trapUnless(code ...[]byte) []byte {
	return slices.Concat(slices.Concat(code...), []byte{0x45, 0x04, 0x40, 0x00, 0x0b})
}

var (
	oneLocal = []byte{1, 1, 0x7f} // an i32
	// pages is the limits of a memory with no maximum.
	pages = func(n uint64) []byte { return append([]byte{0}, unsigned(n)...) }
)
