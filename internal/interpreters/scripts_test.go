package interpreters

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// leaky is, in each language, a script that changes whatever a program can change, and returns the changes that it
// found at its start.
var leaky = map[string]string{
	"tool.py": `
import builtins, json, os, random, sys, time
STARTED = time.monotonic_ns()
COUNT = 0
LISTS = {"seen": []}

def run(arguments):
    global COUNT
    COUNT += 1
    LISTS["seen"].append(arguments.get("who"))
    found = {
        "count": COUNT, "seen": len(LISTS["seen"]), "patched": json.dumps is not DUMPS or "leak" in vars(builtins),
        "modules": "colorsys" in sys.modules, "environment": "LEAK" in os.environ, "directory": os.getcwd(), "path": len(sys.path),
        "attributes": hasattr(json, "leak"), "recursion": sys.getrecursionlimit(),
    }
    import colorsys
    builtins.leak = json.leak = arguments
    json.dumps = lambda *_, **__: '{"success": true, "data": "patched"}'
    os.environ["LEAK"] = "x"
    sys.path.append("/leak")
    sys.setrecursionlimit(500)
    try:
        os.chdir("/caisson/tool")
    except OSError:
        pass
    if arguments.get("twice"):
        json.dumps = DUMPS
        return run({})
    json.dumps = DUMPS
    return {"found": found, "started": STARTED, "random": random.random()}

DUMPS = json.dumps
`,
	"tool.mjs": `
const started = Date.now();
let count = 0;
const seen = [];
const stringify = JSON.stringify;
export default function run(args) {
  count++;
  seen.push(args.who);
  const found = { count, seen: seen.length, patched: "leak" in globalThis || "leak" in Object.prototype || JSON.stringify !== stringify };
  globalThis.leak = args;
  Object.defineProperty(Object.prototype, "leak", { value: 1, writable: true, configurable: true });
  Array.prototype.leak = function () {};
  if (args.twice) return run({});
  const random = Math.random();
  Math.random = () => 4;
  return { found, started, random };
}
`,
}

// answer is what the scripts return.
type answer struct {
	Found   map[string]any `json:"found"`
	Started json.Number    `json:"started"`
	Random  float64        `json:"random"`
}

func answerOf(t testing.TB, o tool.Outcome) (a answer) {
	t.Helper()
	if assert.True(t, o.Result.Success, "%s\n%s", o.Result.Error, o.Log) {
		require.NoError(t, json.Unmarshal(o.Result.Data, &a), string(o.Result.Data))
	}
	return a
}

// untilResumed calls a tool until calls resume it: when its program began is the same in each then.
func untilResumed(t testing.TB, loaded *runtime.Tool) answer {
	t.Helper()
	isolation, err := loaded.Isolation(t.Context())
	require.NoError(t, err)
	require.True(t, isolation.Resumed, isolation.Reason)
	last := answerOf(t, call(t, loaded, "{}"))
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		next := answerOf(t, call(t, loaded, "{}"))
		if next.Started == last.Started {
			return next
		}
		last = next
		require.Less(t, time.Since(began), time.Minute)
	}
}

// TestCallsAreIsolated: a thousand calls in a row, and then 64 at once, find nothing of each other. Their random
// numbers differ, and memory does not grow. The control, a second run in one instance, finds all of it.
func TestCallsAreIsolated(t *testing.T) {
	for file, script := range leaky {
		t.Run(filepath.Ext(file), func(t *testing.T) {
			loaded := newWorld(t).tool(file, script, "limits: {memory: 64MiB, timeout: 60s}\n")
			first := untilResumed(t, loaded)
			control := answerOf(t, call(t, loaded, `{"twice": true, "who": "a"}`))
			assert.NotEqual(t, first.Found, control.Found, "the script leaks")
			assert.EqualValues(t, 2, control.Found["count"])
			randoms := map[float64]bool{}
			var mu sync.Mutex
			check := func(who int) {
				outcome := call(t, loaded, fmt.Sprintf(`{"who": "%d"}`, who))
				got := answerOf(t, outcome)
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, first.Found, got.Found)
				assert.Equal(t, first.Started, got.Started)
				assert.False(t, randoms[got.Random], "a random number occurs twice")
				randoms[got.Random] = true
			}
			for who := range 1000 {
				check(who)
			}
			var group sync.WaitGroup
			for who := range 64 {
				group.Go(func() {
					for range 4 {
						outcome, err := loaded.Invoke(t.Context(), invocation(t, fmt.Sprintf(`{"who": "%d"}`, who)))
						if err != nil && outcome.Result.Kind == tool.Busy {
							continue // the runtime has no queue; the executor has
						}
						mu.Lock()
						assert.Equal(t, first.Found, answerOf(t, outcome).Found)
						mu.Unlock()
					}
				})
			}
			group.Wait()
			before := call(t, loaded, "{}").Usage.MemoryBytes
			for range 200 {
				assert.Equal(t, before, call(t, loaded, "{}").Usage.MemoryBytes)
			}
		})
	}
}

// TestResults: the caller gets the values that scripts return and the errors that they raise. Their output is the log.
func TestResults(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		file, script, arguments string
		want                    tool.Result
		log                     string
	}{
		"text":             {"a.py", "def run(a): return 'hé ' + a['x']", `{"x": "y"}`, tool.Result{Success: true, Output: "hé y"}, ""},
		"data":             {"a.py", "def run(a): return [1, {'b': None}]", "{}", tool.Result{Success: true, Output: `[1, {"b": null}]`, Data: json.RawMessage(`[1,{"b":null}]`)}, ""},
		"nothing":          {"a.py", "def run(a): pass", "{}", tool.Result{Success: true}, ""},
		"result object":    {"a.py", "def run(a): return {'success': False, 'error': 'no such city'}", "{}", tool.Result{Kind: tool.ToolFailed, Error: "no such city"}, ""},
		"prints":           {"a.py", "import sys, os\nprint('early')\ndef run(a):\n  print('out'); print('err', file=sys.stderr); os.write(1, b'raw\\n')\n  return 'x'", "{}", tool.Result{Success: true, Output: "x"}, "early\nout\nerr\nraw\n"},
		"exception":        {"a.py", "def helper():\n  raise ValueError('bad')\n\ndef run(a):\n  helper()", "{}", tool.Result{Kind: tool.ToolFailed, Error: "ValueError: bad (a.py, line 2)"}, "Traceback (most recent call last):\n  File \"a.py\", line 5, in run\n    helper()\n  File \"a.py\", line 2, in helper\n    raise ValueError('bad')\nValueError: bad\n"},
		"exit":             {"a.py", "import sys\ndef run(a): sys.exit('not today')", "{}", tool.Result{Kind: tool.ToolFailed, Error: "not today"}, ""},
		"exit code":        {"a.py", "import sys\ndef run(a): sys.exit(3)", "{}", tool.Result{Kind: tool.ToolFailed, Error: "it exited with code 3"}, ""},
		"hard exit":        {"a.py", "import os\ndef run(a): os._exit(3)", "{}", tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 3"}, ""},
		"no JSON":          {"a.py", "def run(a): return {1, 2}", "{}", tool.Result{Kind: tool.ToolFailed, Error: "run returned what is no JSON: Object of type set is not JSON serializable"}, ""},
		"NaN":              {"a.py", "def run(a): return float('nan')", "{}", tool.Result{Kind: tool.ToolFailed, Error: "run returned what is no JSON: Out of range float values are not JSON compliant: nan"}, ""},
		"syntax":           {"a.py", "def run(a):\n  return (", "{}", tool.Result{Kind: tool.ToolFailed, Error: "SyntaxError: '(' was never closed (a.py, line 2)"}, ""},
		"no run":           {"a.py", "def main(): pass", "{}", tool.Result{Kind: tool.ToolFailed, Error: "AttributeError: a.py has no function run(arguments)"}, ""},
		"async":            {"a.py", "async def run(a): pass", "{}", tool.Result{Kind: tool.ToolFailed, Error: "TypeError: run in a.py is async, which this interpreter cannot run; write def run(arguments)"}, ""},
		"import fails":     {"a.py", "import numpy\ndef run(a): pass", "{}", tool.Result{Kind: tool.ToolFailed, Error: "ModuleNotFoundError: No module named 'numpy' (a.py, line 1)"}, ""},
		"a library's name": {"statistics.py", "import statistics\ndef run(a): return statistics.mean([1, 3])", "{}", tool.Result{Success: true, Output: "2", Data: json.RawMessage("2")}, ""},
		"dataclass":        {"a.py", "from dataclasses import dataclass, asdict\n@dataclass\nclass P:\n  x: int\ndef run(a): return asdict(P(1))", "{}", tool.Result{Success: true, Output: `{"x": 1}`, Data: json.RawMessage(`{"x":1}`)}, ""},
		"surrogate":        {"a.py", "def run(a): return '\\ud800'", "{}", tool.Result{Success: true, Output: "?"}, ""},

		"js text":        {"a.mjs", "export default (a) => 'hé ' + a.x", `{"x": "y"}`, tool.Result{Success: true, Output: "hé y"}, ""},
		"js data":        {"a.js", "export default () => [1, {b: null}]", "{}", tool.Result{Success: true, Output: `[1,{"b":null}]`, Data: json.RawMessage(`[1,{"b":null}]`)}, ""},
		"js promise":     {"a.mjs", "export default async () => { await null; return 'later' }", "{}", tool.Result{Success: true, Output: "later"}, ""},
		"js nothing":     {"a.mjs", "export default () => {}", "{}", tool.Result{Success: true}, ""},
		"js prints":      {"a.mjs", "console.log('early', {a: 1});\nexport default () => { console.error('late'); return 'x' }", "{}", tool.Result{Success: true, Output: "x"}, "early {\"a\":1}\nlate\n"},
		"js exception":   {"a.mjs", "function helper() {\n  throw new TypeError('bad');\n}\nexport default function run() {\n  helper();\n}", "{}", tool.Result{Kind: tool.ToolFailed, Error: "TypeError: bad (a.mjs, line 2)"}, "TypeError: bad\n    at helper (a.mjs:2:13)\n    at run (a.mjs:5:3)\n"},
		"js throws text": {"a.mjs", "export default () => { throw 'no such city' }", "{}", tool.Result{Kind: tool.ToolFailed, Error: "no such city"}, ""},
		"js no JSON":     {"a.mjs", "export default () => 10n", "{}", tool.Result{Kind: tool.ToolFailed, Error: "it returned what is no JSON: BigInt are forbidden in JSON.stringify"}, ""},
		"js syntax":      {"a.mjs", "export default () => {\n  return (\n", "{}", tool.Result{Kind: tool.ToolFailed, Error: "SyntaxError: unexpected token in expression: '' (a.mjs, line 3)"}, ""},
		"js no export":   {"a.mjs", "export const run = 1", "{}", tool.Result{Kind: tool.ToolFailed, Error: "TypeError: a.mjs has no default export that is a function: write export default function (arguments) { … }"}, ""},
		"js missing":     {"a.mjs", "import './b.mjs';\nexport default () => 1", "{}", tool.Result{Kind: tool.ToolFailed, Error: "ReferenceError: could not load module filename '/caisson/tool/b.mjs'"}, ""},
		"js long":        {"a.mjs", "export default () => '\\u0000€'.repeat(20000)", "{}", tool.Result{Success: true, Output: strings.Repeat("\x00€", 20000)}, ""},
		"js unicode":     {"a.mjs", "export default (a) => [...a.x].reverse().join('') + '\\ud800'", `{"x": "aé€😀"}`, tool.Result{Success: true, Output: "😀€éa\ufffd"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := call(t, w.tool(c.file, c.script, ""), c.arguments)
			assert.Equal(t, c.want, outcome.Result, outcome.Log)
			if c.log != "" {
				assert.Equal(t, c.log, outcome.Log)
			}
		})
	}
}

// TestPackages: folders and wheels next to the script can be imported, and are part of the tool.
func TestPackages(t *testing.T) {
	w := newWorld(t)
	w.write("vendor/greet/__init__.py", "from .words import HELLO\ndef greet(name): return f'{HELLO} {name}'\n")
	w.write("vendor/greet/words.py", "HELLO = 'hello'\n")
	w.write("vendor/greet/__pycache__/words.pyc", "junk")
	const script = "import greet\ndef run(a): return greet.greet(a['name'])"
	outcome := call(t, w.tool("a.py", script, ""), `{"name": "you"}`)
	assert.Contains(t, outcome.Result.Error, "No module named 'greet'")
	w.write("a.py", script)
	packaged := w.load("module: {script: a.py, packages: [vendor/greet]}\n")
	outcome = call(t, packaged, `{"name": "you"}`)
	assert.Equal(t, "hello you", outcome.Result.Output, outcome.Log)

	w.write("lib/words.mjs", "export const hello = 'hello'\n")
	w.write("b.mjs", "import { hello } from './lib/words.mjs';\nexport default (a) => `${hello} ${a.name}`")
	outcome = call(t, w.load("module: {script: b.mjs, packages: [lib]}\n"), `{"name": "you"}`)
	assert.Equal(t, "hello you", outcome.Result.Output, outcome.Log)
}

// TestSample: the sample is run before the snapshot, and a sample that fails is in the log of each call.
func TestSample(t *testing.T) {
	w := newWorld(t)
	w.write("a.py", "cache = {}\ndef run(a):\n  seen = list(cache)\n  cache[a['x']] = 1\n  return seen")
	outcome := call(t, w.load("module: {script: a.py, sample: {x: 1}}\n"), `{"x": 2}`)
	assert.JSONEq(t, "[1]", string(outcome.Result.Data), outcome.Log)
	outcome = call(t, w.load("module: {script: a.py, sample: {}}\n"), `{"x": 2}`)
	assert.JSONEq(t, "[]", string(outcome.Result.Data), outcome.Log)
	assert.Contains(t, outcome.Log, "KeyError: 'x'\n(with the manifest's sample)")
}

// TestAttackSwappedScript: a grant that is bound to a digest does not pass to another script, package or sample.
func TestAttackSwappedScript(t *testing.T) {
	w := newWorld(t)
	host := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(host, "secret.txt"), []byte("the secret"), 0o600))
	const reads = "import lib.words\ndef run(a):\n  return open('/project/secret.txt').read()\n"
	const module = "module: {script: a.py, packages: [lib]}\npermissions: {files: [{path: /project}]}\n"
	w.write("lib/words.py", "x = 1\n")
	w.write("a.py", reads)
	m, err := manifests.Parse(filepath.Join(w.dir, "tool.yaml"), []byte("schema: caisson/v1\nname: script\ndescription: A script.\n"+module))
	require.NoError(t, err)
	info, err := runtime.InspectModule(m)
	require.NoError(t, err)
	policy, err := manifests.ParsePolicy(filepath.Join(w.dir, "caisson.yaml"), fmt.Appendf(nil, "schema: caisson-config/v1\ngrants: [{tools: [script], sha256: %s, files: [{path: /project, host: %q}]}]\n", info.SHA256, host))
	require.NoError(t, err)
	w.grants = policy.For("script", m.File)
	assert.Equal(t, "the secret", call(t, w.load(module), "{}").Result.Output, "control")
	for name, swap := range map[string]func(){
		"script":  func() { w.write("a.py", reads+"# other\n") },
		"package": func() { w.write("lib/words.py", "x = 2\n") },
		"added":   func() { w.write("lib/more.py", "") },
	} {
		t.Run(name, func(t *testing.T) {
			w.write("a.py", reads)
			w.write("lib/words.py", "x = 1\n")
			_ = os.Remove(filepath.Join(w.dir, "lib", "more.py"))
			swap()
			outcome := call(t, w.load(module), "{}")
			assert.Equal(t, tool.Denied, outcome.Result.Kind, outcome.Result)
			assert.NotContains(t, outcome.Result.Output+outcome.Log, "the secret")
		})
	}
}

// TestTimes prints what a call costs, and the speed of the interpreters compared with native ones.
func TestTimes(t *testing.T) {
	for file, script := range leaky {
		loaded := newWorld(t).tool(file, script, "")
		untilResumed(t, loaded)
		began := time.Now()
		const n = 200
		for range n {
			call(t, loaded, `{"who": "x"}`)
		}
		t.Logf("%s: %s a call", strings.TrimPrefix(filepath.Ext(file), "."), time.Since(began)/n)
	}
}

// TestDenialsOfCalls: a call's record has the script's denials in the call, also repeated ones, and as notes its
// denials during the import, whether the call starts the interpreter or resumes it.
func TestDenialsOfCalls(t *testing.T) {
	const script = `
import time
STARTED = time.monotonic_ns()

def look(path):
    try:
        open(path).close()
    except OSError:
        pass

look("/before")
look("/both")
for n in range(40):
    look(f"/before/{n}")

def run(arguments):
    for path in arguments.get("look", []):
        look(path)
    return {"started": STARTED}
`
	loaded := newWorld(t).tool("tool.py", script, "limits: {memory: 64MiB, timeout: 60s}\n")
	denied := func(arguments string) (paths []string) {
		for n, denial := range call(t, loaded, arguments).Denials {
			if denial.Note {
				assert.Contains(t, []string{"/both", "/before", fmt.Sprintf("/before/%d", n-1), fmt.Sprintf("/before/%d", n-2), "/before/39"}, denial.Value)
				continue
			}
			assert.NotEmpty(t, denial.Allow.Manifest, denial.Value)
			paths = append(paths, denial.Value)
		}
		return paths
	}
	check := func() {
		assert.Equal(t, []string{"/call", "/both", "/before/39"}, denied(`{"look": ["/call", "/both", "/before/39"]}`))
		assert.Empty(t, denied("{}"))
		assert.EqualValues(t, 44, call(t, loaded, `{"look": ["/call", "/both"]}`).Usage.HostCalls)
	}
	check()
	untilResumed(t, loaded)
	check()
}

// TestAttackFilesOfTheTopLevel: the record of each call has the script's operations on files during the import, as it
// has those in the call. It has neither the interpreter's lookups nor its reads of the tool's own files.
func TestAttackFilesOfTheTopLevel(t *testing.T) {
	for file, script := range map[string]string{
		"tool.py": `
import os, json, textwrap
for n in range(300):
    os.stat("/caisson/tool/tool.py")

def use():
    said = []
    for what in ("/data/written", "/etc/passwd", "/data/../../secret"):
        try:
            open(what, "w").write("x")
            said.append("written")
        except OSError:
            said.append("refused")
    return said

said = use() if WHEN else None

def run(arguments):
    return said or use()
`,
		"tool.mjs": `
import * as std from "qjs:std";
import * as os from "qjs:os";
for (let n = 0; n < 300; n++) os.stat("/caisson/tool/tool.mjs");
function use() {
  return ["/data/written", "/etc/passwd", "/data/../../secret"].map((what) => {
    const file = std.open(what, "w");
    if (file === null) return "refused";
    file.puts("x");
    file.close();
    return "written";
  });
}
const said = WHEN ? use() : null;
export default function (args) { return said ?? use(); }
`,
	} {
		for when, early := range map[string]bool{"1": true, "0": false} {
			t.Run(file+" "+when, func(t *testing.T) {
				w := newWorld(t)
				data := t.TempDir()
				w.grants.Files = []manifests.FileGrant{manifests.GrantDirectory("/data", data, manifests.AccessReadWrite)}
				loaded := w.tool(file, strings.ReplaceAll(script, "WHEN", when), "permissions: {files: [{path: /data, access: read-write}]}\n")
				for range 4 {
					outcome := call(t, loaded, "{}")
					require.True(t, outcome.Result.Success, outcome.Result.Error)
					assert.Contains(t, outcome.Result.Output, "written")
					var listed, denied []string
					for _, c := range outcome.HostCalls {
						listed = append(listed, c.Target+" "+c.Status)
					}
					for _, d := range outcome.Denials {
						assert.Equal(t, early, d.Note)
						denied = append(denied, d.Value)
					}
					assert.Equal(t, []string{"/data/written ok", "/etc/passwd denied", "/data/../../secret denied"}, listed)
					assert.Equal(t, []string{"/etc/passwd", "/data/../../secret"}, denied)
					assert.EqualValues(t, 3, outcome.Usage.HostCalls)
				}
			})
		}
	}
}
