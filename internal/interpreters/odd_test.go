package interpreters

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestOddScripts: a script that replaces what the driver uses, or fails in an odd way, still has the result that it
// returned, or says why it failed. None succeeds without having returned.
func TestOddScripts(t *testing.T) {
	w := newWorld(t)
	failed := func(text string) tool.Result { return tool.Result{Kind: tool.ToolFailed, Error: text} }
	ok := tool.Result{Success: true, Output: "ok"}
	for name, c := range map[string]struct {
		file, script string
		want         tool.Result
		log          string
	}{
		"exit at import":      {"a.py", "import sys\nsys.exit(0)\ndef run(a): return 1", failed("a.py exited when it was imported, before run was called"), ""},
		"lines of a message":  {"a.py", "def run(a): raise ValueError('first\\n  second\\n')", failed("ValueError: first\n  second (a.py, line 1)"), ""},
		"notes":               {"a.py", "def run(a):\n  e = ValueError('bad'); e.add_note('try Oslo')\n  raise e", failed("ValueError: bad (a.py, line 3)\ntry Oslo"), ""},
		"group":               {"a.py", "def run(a): raise ExceptionGroup('many', [ValueError('x'), TypeError('y')])", failed("ExceptionGroup: many (2 sub-exceptions): ValueError: x; TypeError: y (a.py, line 1)"), ""},
		"in the library":      {"a.py", "import statistics\ndef run(a):\n  statistics.mean([])", failed("statistics.StatisticsError: mean requires at least one data point (a.py, line 3)"), ""},
		"cause":               {"a.py", "def run(a):\n  try: 1/0\n  except Exception as e: raise RuntimeError('x') from e", failed("RuntimeError: x (a.py, line 3)"), "Traceback (most recent call last):\n  File \"a.py\", line 2, in run\n    try: 1/0\n         ~^~\nZeroDivisionError: division by zero\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in run\n    except Exception as e: raise RuntimeError('x') from e\n                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: x\n"},
		"str raises":          {"a.py", "class X(Exception):\n  def __str__(self): 1/0\ndef run(a): raise X()", failed("tool.X: <exception str() failed> (a.py, line 3)"), ""},
		"class raises":        {"a.py", "class M(type):\n  def __getattribute__(c, n): raise KeyError(n)\nclass X(Exception, metaclass=M): pass\ndef run(a): raise X()", failed("it raised an exception that cannot be shown"), ""},
		"exit with an object": {"a.py", "import sys\nclass X:\n  def __eq__(s, o): 1/0\n  def __str__(s): return 'odd'\ndef run(a): sys.exit(X())", failed("odd"), ""},
		"stream closed":       {"a.py", "import sys\nsys.stdout.close()\nsys.stderr.close()\ndef run(a): print('x'); sys.stdout.close(); return 'ok'", ok, "x\n"},
		"stream removed":      {"a.py", "import sys\ndef run(a):\n  del sys.stdout\n  return 'ok'", ok, ""},
		"stream replaced":     {"a.py", "import sys\nclass X:\n  def write(s, t): 1/0\ndef run(a):\n  sys.stdout = sys.stderr = X()\n  return 'ok'", ok, ""},
		"trace, no stream":    {"a.py", "import sys\ndef run(a):\n  sys.stderr = None\n  1/0", failed("ZeroDivisionError: division by zero (a.py, line 4)"), "Traceback (most recent call last):\n  File \"a.py\", line 4, in run\n    1/0\n    ~^~\nZeroDivisionError: division by zero\n"},
		"json replaced":       {"a.py", "import json, sys\njson.dumps = json.loads = None\nsys.modules['random'] = None\ndef run(a): return 'ok'", ok, ""},
		"logger at the top":   {"a.py", "import logging, sys\nlogging.basicConfig(level=logging.INFO)\nout = sys.stdout\nlogging.info('early')\ndef run(a):\n  logging.info('late'); print('out', file=out)\n  return 'ok'", ok, "INFO:root:early\nINFO:root:late\nout\n"},
		"prints a surrogate":  {"a.py", "def run(a): print('\\ud800'); return 'ok'", ok, "\\ud800\n"},
		"at exit":             {"a.py", "import atexit\natexit.register(print, 'top')\ndef run(a):\n  atexit.register(print, 'bye')\n  return 'ok'", ok, "bye\ntop\n"},
		"no descriptors":      {"a.py", "import os\ndef run(a):\n  try:\n    while True: os.open('/caisson/random', os.O_RDONLY)\n  except OSError: return 'ok'", ok, ""},

		"js null":           {"a.mjs", "export default () => { throw null }", failed("it threw null"), ""},
		"js no prototype":   {"a.mjs", "export default () => { const o = Object.create(null); o.a = 1n; throw o }", failed("it threw a value of type object that cannot be shown"), ""},
		"js getter throws":  {"a.mjs", "export default () => { const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw null } }); throw e }", failed("it threw what cannot be shown"), ""},
		"js result throws":  {"a.mjs", "export default () => ({ get success() { throw null } })", failed("it returned what is no JSON: null"), ""},
		"js toJSON":         {"a.mjs", "export default () => ({ success: true, toJSON() {} })", failed("it returned what is no JSON: object"), ""},
		"js function":       {"a.mjs", "export default () => () => 1", failed("it returned what is no JSON: function"), ""},
		"js several":        {"a.mjs", "export default () => { throw new AggregateError([new Error('x'), 'y'], 'both') }", failed("AggregateError: both; Error: x; \"y\" (a.mjs, line 1)"), ""},
		"js cause":          {"a.mjs", "export default () => { throw new Error('out', { cause: 'in' }) }", failed("Error: out (a.mjs, line 1)"), "Error: out\n    at default (a.mjs:1:34)\ncaused by \"in\"\n"},
		"js JSON replaced":  {"a.mjs", "JSON.stringify = () => '{\"success\":true}';\nexport default () => { throw new Error('x') }", failed("Error: x (a.mjs, line 2)"), ""},
		"js logs oddities":  {"a.mjs", "const o = Object.create(null); o.a = 1n;\nexport default () => { console.log(o, null, 1n); return 'ok' }", ok, "a value of type object that cannot be shown null 1\n"},
		"js no descriptors": {"a.mjs", "import * as os from 'qjs:os';\nexport default () => { while (os.open('/caisson/random', os.O_RDONLY) > 0); return 'ok' }", ok, ""},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := call(t, w.tool(c.file, c.script, ""), "{}")
			assert.Equal(t, c.want, outcome.Result, outcome.Log)
			if c.log != "" {
				assert.Equal(t, c.log, outcome.Log)
			}
		})
	}
}

// TestOpenFiles: what a script wrote is in the file, also if it left the file open.
func TestOpenFiles(t *testing.T) {
	w := newWorld(t)
	host := t.TempDir()
	policy, err := manifests.ParsePolicy(filepath.Join(w.dir, "caisson.yaml"), []byte("schema: caisson-config/v1\ngrants: [{tools: [script], files: [{path: /project, host: \""+host+"\", access: read-write}]}]\n"))
	require.NoError(t, err)
	w.grants = policy.For("script", filepath.Join(w.dir, "tool.yaml"))
	const permissions = "permissions: {files: [{path: /project, access: read-write}]}\n"
	for file, script := range map[string]string{
		"a.py":  "import io\ndef run(a):\n  global f, g\n  f = open('/project/a.py.txt', 'w'); f.write('hello')\n  g = io.TextIOWrapper(io.BytesIO()); g.detach()\n  return 'ok'",
		"a.mjs": "import * as std from 'qjs:std';\nexport default () => { globalThis.f = std.open('/project/a.mjs.txt', 'w'); f.puts('hello'); return 'ok' }",
	} {
		outcome := call(t, w.tool(file, script, permissions), "{}")
		assert.Equal(t, "ok", outcome.Result.Output, "%s\n%s", outcome.Result.Error, outcome.Log)
		content, err := os.ReadFile(filepath.Join(host, file+".txt"))
		require.NoError(t, err)
		assert.Equal(t, "hello", string(content))
	}
}
