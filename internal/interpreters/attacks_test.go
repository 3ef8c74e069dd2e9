package interpreters

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// escapes are attempts to reach the machine. Each is an expression or statements that would set found.
var escapes = map[string]map[string]string{
	"tool.py": {
		"file of the host":         "found = open('/etc/passwd').read()",
		"file by descriptor":       "import os\nfor fd in range(3, 64):\n  try: found = found or os.listdir(fd) and [x for x in os.listdir(fd) if x in ('etc', 'proc', 'secret.txt')]\n  except OSError: pass",
		"parent of a mount":        "found = open('/project/../secret.txt').read()",
		"parent of the tool":       "found = open('/caisson/tool/../../secret.txt').read()",
		"link out of a mount":      "found = open('/project/link').read()",
		"link to a folder":         "import os\nfound = os.listdir('/project/up')",
		"a link of its own":        "import os\nos.symlink('../secret.txt', '/project/own')\nfound = open('/project/own').read()",
		"hard link":                "import os\nos.link('/project/../secret.txt', '/project/hard')\nfound = open('/project/hard').read()",
		"write to a mount":         "open('/project/new.txt', 'w').write('x')\nfound = 'written'",
		"write to the tool":        "open('/caisson/tool/tool.py', 'w').write('x')\nfound = 'written'",
		"remove the driver":        "import os\nos.remove('/caisson/driver.py')\nfound = 'removed'",
		"rename the tool":          "import os\nos.rename('/caisson/tool', '/caisson/other')\nfound = 'renamed'",
		"processes":                "found = open('/proc/self/environ', 'rb').read()",
		"processes, listed":        "import os\nfound = os.listdir('/proc')",
		"devices":                  "found = open('/dev/zero', 'rb').read(1)",
		"environment":              "import os\nfound = dict(os.environ)",
		"command":                  "import os\nfound = os.system('true') == 0",
		"subprocess":               "import subprocess\nfound = subprocess.run(['true'])",
		"fork":                     "import os\nfound = os.fork() + 1",
		"exec":                     "import os\nos.execv('/bin/true', ['true'])\nfound = 1",
		"thread":                   "import threading\nthread = threading.Thread(target=print)\nthread.start()\nfound = 1",
		"socket":                   "import socket\nfound = socket.create_connection(('127.0.0.1', PORT), 1)",
		"socket module":            "import _socket\ns = _socket.socket()\ns.connect(('127.0.0.1', PORT))\nfound = s",
		"urllib":                   "import urllib.request\nfound = urllib.request.urlopen('http://127.0.0.1:PORT/').read()",
		"native code":              "import ctypes\nfound = ctypes.CDLL(None)",
		"extension":                "import importlib.machinery, importlib.util\nfound = importlib.machinery.ExtensionFileLoader('x', '/project/x.so').load_module()",
		"signal":                   "import os, signal\nos.kill(1, 0)\nfound = 1",
		"host without a line":      "import os\nfd = os.open('/caisson/host', os.O_RDWR)\nos.write(fd, b'x' * 1000)\nfound = os.read(fd, 10)",
		"request without grant":    "import caisson\nfound = caisson.fetch('http://127.0.0.1:PORT/').text",
		"other tool without grant": "import caisson\nfound = caisson.call_tool('shell', {})",
		"secret without grant":     "import caisson\nfound = caisson.has_secret('API_KEY')",
		"request that lies":        "import os\nfd = os.open('/caisson/host', os.O_RDWR)\nos.write(fd, b'caisson:context@1.get 4294967295 4294967295\\n')\nfound = os.read(fd, 10)",
		"function that is none":    "import caisson\nfound = caisson._ask('caisson:shell@1.run', {})",
		"WASI through the host":    "import caisson\nfound = caisson._ask('wasi_snapshot_preview1.proc_exit', {})",
		"all devices at once":      "import os\nwhile True: os.open('/caisson/random', os.O_RDONLY)",
	},
	"tool.mjs": {
		"file of the host":      "found = std.loadFile('/etc/passwd')",
		"parent of a mount":     "found = std.loadFile('/project/../secret.txt')",
		"parent of the tool":    "found = std.loadFile('/caisson/tool/../../secret.txt')",
		"link out of a mount":   "found = std.loadFile('/project/link')",
		"link to a folder":      "found = os.readdir('/project/up')[0].find((x) => x === 'secret.txt')",
		"import of a file":      "found = await import('/project/../secret.mjs')",
		"write to a mount":      "const f = std.open('/project/new.txt', 'w'); if (f) found = 'opened'",
		"write to the tool":     "const f = std.open('/caisson/tool/tool.mjs', 'w'); if (f) found = 'opened'",
		"remove the driver":     "if (os.remove('/caisson/driver.mjs') === 0) found = 'removed'",
		"processes":             "found = std.loadFile('/proc/self/environ')",
		"devices":               "found = std.open('/dev/zero', 'r')",
		"environment":           "found = Object.keys(std.getenviron())[0]",
		"command":               "found = os.exec(['true'])",
		"pipe to a command":     "found = std.popen('true', 'r')",
		"worker":                "found = new os.Worker('./tool.mjs')",
		"native module":         "found = await import('/project/x.so')",
		"download":              "found = std.urlGet('http://127.0.0.1:PORT/')",
		"request without grant": "found = caisson.fetch('http://127.0.0.1:PORT/').text()",
		"signal":                "os.kill(1, 0); found = 1",
		"all devices at once":   "for (let n = 0; ; n++) if (os.open('/caisson/random', os.O_RDONLY) < 0) { if (n > 64) found = n; break }",
	},
}

// TestAttackEscapes: no script reaches files, processes, the network or the environment of the host. The control is a
// script that reads a granted file.
func TestAttackEscapes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	outside := t.TempDir()
	project := filepath.Join(outside, "project")
	require.NoError(t, os.Mkdir(project, 0o700))
	for name, content := range map[string]string{"secret.txt": "the secret itself", "secret.mjs": "export default 1", "project/open.txt": "granted", "project/x.so": "\x7fELF"} {
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(project, "link")))
	require.NoError(t, os.Symlink("..", filepath.Join(project, "up")))
	frames := map[string]string{
		"tool.py":  "def run(a):\n  found = None\n  BODY\n  return {'found': repr(found)} if found else 'nothing'\n",
		"tool.mjs": "import * as std from 'qjs:std';\nimport * as os from 'qjs:os';\nimport * as caisson from '/caisson/lib/caisson.mjs';\nexport default async function run() {\n  let found;\n  BODY\n  return found ? {found: String(found)} : 'nothing';\n}\n",
	}
	controls := map[string]string{"tool.py": "found = open('/project/open.txt').read()", "tool.mjs": "found = std.loadFile('/project/open.txt')"}
	for file, attempts := range escapes {
		w := newWorld(t)
		policy, err := manifests.ParsePolicy("caisson.yaml", fmt.Appendf(nil, "schema: caisson-config/v1\ngrants: [{tools: [script], files: [{path: /project, host: %q}]}]\n", project))
		require.NoError(t, err)
		w.grants = policy.For("script", "tool.yaml")
		run := func(body string) tool.Outcome {
			body = strings.ReplaceAll(strings.ReplaceAll(body, "PORT", port), "\n", "\n  ")
			return call(t, w.tool(file, strings.Replace(frames[file], "BODY", body, 1), "permissions: {files: [{path: /project}]}\n"), "{}")
		}
		control := run(controls[file])
		assert.Contains(t, string(control.Result.Data), "granted", control.Log)
		for name, body := range attempts {
			t.Run(filepath.Ext(file)+" "+name, func(t *testing.T) {
				outcome := run(body)
				assert.Empty(t, outcome.Result.Data, "%s\n%s", outcome.Result.Output, outcome.Log)
				assert.NotContains(t, outcome.Result.Output+outcome.Log, "the secret itself")
				assert.NoFileExists(t, filepath.Join(project, "new.txt"))
			})
		}
	}
}

// runaways are scripts that do not end by themselves, or want more than they get.
var runaways = map[string]map[string]string{
	"tool.py": {
		"while True":            "while True: pass",
		"BaseException":         "while True:\n    try:\n      while True: pass\n    except BaseException: pass",
		"power":                 "return 9 ** 9 ** 9",
		"regular expression":    "import re\n  return re.match('(a+)+$', 'a' * 50 + 'b')",
		"sleep":                 "import time\n  time.sleep(1e6)",
		"sleep again":           "import time\n  while True:\n    try: time.sleep(3600)\n    except BaseException: pass",
		"list":                  "return [0] * 10 ** 9",
		"list again":            "while True:\n    try: [0] * 10 ** 9\n    except MemoryError: pass",
		"recursion":             "def f(): return f()\n  return f()",
		"recursion without end": "import sys\n  sys.setrecursionlimit(10 ** 9)\n  def f(): return f()\n  return f()",
		"deep structure":        "import json\n  return json.loads('[' * 100000)",
		"threads":               "import threading\n  while True:\n    try: threading.Thread(target=print).start()\n    except BaseException: pass",
		"output":                "while True: print('x' * 1000)",
		"result":                "return 'x' * 10 ** 7",
		"finalizer":             "class C:\n    def __del__(self):\n      while True: pass\n  C()",
		"generator":             "return sum(iter(int, 1))",
		"compiler":              "return compile('(' * 10000 + ')' * 10000, 'x', 'exec')",
		"host call without end": "import caisson\n  while True: caisson.context()",
		"progress without end":  "import caisson\n  while True:\n    try: caisson.progress('x' * 1000)\n    except caisson.Error: pass",
		"random without end":    "import os\n  while True: os.urandom(1 << 20)",
		"import without end":    "import importlib, statistics\n  while True: importlib.reload(statistics)",
		"traceback without end": "def f(n):\n    try: raise ValueError('x' * 10 ** 6)\n    except ValueError as e:\n      if n: f(n - 1)\n      raise\n  f(50)",
	},
	"tool.mjs": {
		"for":                "for (;;);",
		"catch":              "for (;;) { try { for (;;); } catch {} }",
		"power":              "let n = 3n; for (;;) n = n * n",
		"regular expression": "return /^(?=(a+)+$)b?(a+)+\\1$/.test('a'.repeat(40) + 'b')",
		"sleep":              "os.sleep(1e9)",
		"timer":              "return new Promise((done) => os.setTimeout(done, 1e9))",
		"promise":            "return new Promise(() => {})",
		"promises":           "const again = () => Promise.resolve().then(again); return again()",
		"array":              "return new Uint8Array(1e9).length",
		"array again":        "for (const kept = []; ; ) { try { kept.push(new Uint8Array(1e6).fill(1)) } catch {} }",
		"recursion":          "const f = () => f() + 1; return f()",
		"recursion, caught":  "const f = () => { try { return f() } catch { return f() } }; return f()",
		"output":             "for (;;) console.log('x'.repeat(1000))",
		"result":             "return 'x'.repeat(1e7)",
		"proxy":              "return {get x() { for (;;); }}.x",
		"host call":          "for (;;) caisson.context()",
	},
}

// scriptDeadline leaves time to start an interpreter on a busy machine.
const scriptDeadline = 2 * time.Second

// TestRunaways: each ends by its deadline with a clear error, or fails before, and the next call of the tool works.
func TestRunaways(t *testing.T) {
	for file, scripts := range runaways {
		w := newWorld(t)
		for name, body := range scripts {
			t.Run(filepath.Ext(file)+" "+name, func(t *testing.T) {
				script := "def run(a):\n  if a.get('control'): return 'works'\n  " + body + "\n"
				if file == "tool.mjs" {
					script = "import * as os from 'qjs:os';\nimport * as caisson from '/caisson/lib/caisson.mjs';\nexport default function run(a) {\n  if (a.control) return 'works';\n  " + body + "\n}\n"
				}
				loaded := w.tool(file, script, fmt.Sprintf("limits: {timeout: %s, memory: 64MiB}\n", scriptDeadline))
				assert.Equal(t, "works", call(t, loaded, `{"control": true}`).Result.Output)
				watchdog := time.AfterFunc(attempts*(scriptDeadline+patience), func() { panic(t.Name() + " never ends") })
				defer watchdog.Stop()
				var over time.Duration
				for range attempts {
					began := time.Now()
					outcome := call(t, loaded, "{}")
					over = time.Since(began) - scriptDeadline
					assert.False(t, outcome.Result.Success, outcome.Result.Output)
					assert.NotEmpty(t, outcome.Result.Error)
					if over <= promisedOver {
						t.Logf("%s: %.100s", over.Round(time.Millisecond), outcome.Result.Error)
						break
					}
				}
				assert.LessOrEqual(t, over, promisedOver)
				assert.Equal(t, "works", call(t, loaded, `{"control": true}`).Result.Output, "after it")
			})
		}
	}
}

// TestRunawaysLeaveTheInstance: an instance that was stopped at its deadline is reset and serves the next call, which
// would take as long as a start in a new one.
func TestRunawaysLeaveTheInstance(t *testing.T) {
	const script = "import json, statistics, time\nSTARTED = time.monotonic_ns()\ndef run(a):\n  while a.get('spin'): pass\n  return {'found': {}, 'started': STARTED, 'random': 0}\n"
	loaded := newWorld(t).tool("tool.py", script, "limits: {timeout: 2s}\n")
	started := untilResumed(t, loaded).Started
	isolation, err := loaded.Isolation(t.Context())
	require.NoError(t, err)
	assert.Empty(t, isolation.NewInstances)
	for range attempts {
		require.Equal(t, tool.Deadline, call(t, loaded, `{"spin": true}`).Result.Kind)
		began := time.Now()
		assert.Equal(t, started, answerOf(t, call(t, loaded, "{}")).Started)
		if took := time.Since(began); took < isolation.StartTime/2 {
			return
		}
	}
	assert.Fail(t, "each call after a runaway takes as long as a start")
}
