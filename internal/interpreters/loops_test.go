package interpreters

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const (
	deadline     = time.Second
	promisedOver = 100 * time.Millisecond
	attempts     = 3
	// patience is the time after its deadline when a call counts as one that never ends.
	patience = 10 * time.Second
)

// program is one that does not end by itself.
type program struct {
	name, code string
	end        tool.Kind // before the deadline; empty means that the deadline ends it
}

var pythonPrograms = []program{
	{name: "while True", code: "while True: pass"},
	{name: "counting", code: "i = 0\nwhile True: i += 1"},
	{name: "behind a read", code: "import sys\nsys.stdin.read()\nwhile True: pass"},
	{name: "in a function behind a call", code: "def f():\n  len('x')\n  while True: pass\nf()"},
	{name: "for over iter", code: "for _ in iter(int, 1): pass"},
	{name: "generator", code: "def endless():\n  while True: yield 1\nfor _ in endless(): pass"},
	{name: "any of a generator", code: "any(False for _ in iter(int, 1))"},
	{name: "sum over itertools.count", code: "import itertools\nsum(itertools.count())"},
	{name: "deque of itertools.repeat", code: "import itertools, collections\ncollections.deque(itertools.repeat(1), maxlen=0)"},
	{name: "membership in itertools.cycle", code: "import itertools\n2 in itertools.cycle([1])"},
	{name: "regular expression", code: "import re\nre.match('(a+)+$', 'a' * 50 + 'b')"},
	{name: "callback of sort", code: "def key(x):\n  while True: pass\n[2, 1].sort(key=key)"},
	{name: "callback of map", code: "list(map(lambda x: sum(iter(int, 1)), [1]))"},
	{name: "power of big integers", code: "9 ** 9 ** 9"},
	{name: "digits of a big integer", code: "import sys\nsys.set_int_max_str_digits(0)\nstr(7 ** 3000000)"},
	{name: "try again", code: "while True:\n  try: raise ValueError\n  except ValueError: pass"},
	{name: "exit that is caught", code: "import sys\nwhile True:\n  try: sys.exit()\n  except SystemExit: pass"},
	{name: "finalizer", code: "class C:\n  def __del__(self):\n    while True: pass\nC()"},
	// The limit on memory makes exceptions in Python.
	{name: "list of everything", code: "while True:\n  try: [0] * 10 ** 9\n  except MemoryError: pass"},
	{name: "list that grows", code: "l = [0]\nwhile True:\n  try: l += l\n  except MemoryError: pass"},
	{name: "string that is executed", code: "exec('while 1: pass')"},
}

var javascriptPrograms = []program{
	{name: "for", code: "for (;;);"},
	{name: "while true", code: "while (true) {}"},
	{name: "do", code: "var i = 0; do { i++ } while (i >= 0)"},
	{name: "labelled", code: "first: for (;;) { for (;;) { continue first } }"},
	{name: "in a function behind a call", code: "function f() { Math.random(); for (;;); } f()"},
	{name: "callback of sort", code: "[2, 1, 3].sort(function () { for (;;); })"},
	{name: "callback of forEach", code: "[1].forEach(() => { while (true); })"},
	{name: "callback of replace", code: "'a'.replace(/a/, () => { for (;;); })"},
	{name: "getter", code: "({get x() { for (;;); }}).x"},
	{name: "proxy", code: "new Proxy({}, {get() { for (;;); }}).x"},
	{name: "generator", code: "function* endless() { for (;;) yield 1; } for (const n of endless());"},
	{name: "iterator that a spread runs", code: "Math.max(...{[Symbol.iterator]() { return {next: () => { for (;;); }} }})"},
	{name: "regular expression", code: "/^(?=(a+)+$)b?(a+)+\\1$/.test('a'.repeat(40) + 'b')"},
	{name: "promises", code: "const again = () => Promise.resolve().then(again); again()"},
	{name: "try again", code: "for (;;) { try { throw 1 } catch (e) {} }"},
	{name: "finally", code: "(function f() { for (;;) { try { return } finally { continue } } })()"},
	// The limit on memory ends the interpreter.
	{name: "string that grows", code: "let s = 'x'; for (;;) s = (s + s).repeat(2)", end: tool.Memory},
	{name: "power of big integers", code: "for (let n = 3n; ; ) { try { n = n * n } catch { n = 3n } }"},
}

func TestPython(t *testing.T) {
	control := program{code: "import json\nprint(json.dumps(sum(range(1000))))"}
	endAll(t, "python", `["-c", "{code}"]`, "499500", control, pythonPrograms)
}

func TestJavaScript(t *testing.T) {
	control := program{code: "print([3, 1, 2].sort((a, b) => a - b).join(','))"}
	endAll(t, "javascript", `["--eval", "{code}"]`, "1,2,3", control, javascriptPrograms)
}

// endAll has an interpreter run the programs, each in a subtest, and the control, which ends.
func endAll(t *testing.T, language, args, answer string, control program, programs []program) {
	module, r := interpreterOf(t, language), newRuntime(t)
	run, patient := load(t, r, module, args, deadline), load(t, r, module, args, time.Minute)
	outcome, err := patient.Invoke(t.Context(), control.invocation(t))
	require.NoError(t, err, outcome.Log)
	require.Equal(t, answer, strings.TrimSpace(outcome.Result.Output))
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if p.end != "" {
				outcome, err := patient.Invoke(t.Context(), p.invocation(t))
				require.Equal(t, p.end, outcome.Result.Kind, "%v: %s", err, outcome.Log)
				return
			}
			// A guest that escaped keeps its processor: nothing but the process's end ends it.
			watchdog := time.AfterFunc(attempts*(deadline+patience), func() { panic(t.Name() + " never ends") })
			defer watchdog.Stop()
			var over time.Duration
			for range attempts {
				start := time.Now()
				outcome, err := run.Invoke(t.Context(), p.invocation(t))
				over = time.Since(start) - deadline
				require.Equal(t, tool.Deadline, outcome.Result.Kind, "%v: %s", err, outcome.Log)
				if over <= promisedOver {
					break
				}
			}
			t.Logf("%s after the deadline", over.Round(time.Millisecond))
			assert.LessOrEqual(t, over, promisedOver)
		})
	}
}

// load makes a tool of an interpreter, whose program is the argument code.
func load(t *testing.T, r *runtime.Runtime, module []byte, args string, timeout time.Duration) *runtime.Tool {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), module, 0o600))
	file := filepath.Join(dir, "tool.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `schema: caisson/v1
name: interpreter
description: Runs a program.
module: {path: guest.wasm, args: %s}
parameters: {type: object, properties: {code: {type: string}}, required: [code]}
limits: {timeout: %s, memory: 256MiB}
`, args, timeout), 0o600))
	m, err := manifests.Load(file)
	require.NoError(t, err)
	loaded, err := r.Load(t.Context(), m, manifests.Grants{})
	require.NoError(t, err)
	require.NoError(t, loaded.Prepare(t.Context()))
	return loaded
}

func (p program) invocation(t *testing.T) tool.Invocation {
	t.Helper()
	arguments, err := tool.ParseArguments(`{"code": ` + strconv.Quote(p.code) + `}`)
	require.NoError(t, err)
	return tool.Invocation{CallID: "the-call", Tool: "interpreter", Arguments: arguments}
}
