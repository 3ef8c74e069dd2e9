package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

var inputs = flag.Int("inputs", 200, "how many inputs each program gets that calls resume")

// startable says how to run a program that reads its input, with the same command line in each call.
type startable struct {
	args     []string // of the manifest
	env      []string // NAME=VALUE, granted
	snapshot string   // the mode in which calls resume it
	codes    []int    // exit codes that are no failure
	input    func(random *rand.Rand) string
}

// startables are the programs whose calls resume where they first read. The other programs of the catalogue read
// nothing, or open a file that their command line names.
var startables = map[string]startable{
	"comrak":  {args: []string{"--gfm"}, snapshot: "start", input: markdown},
	"goawk":   {args: []string{"--", awkProgram}, snapshot: "start", input: lines},
	"gojq":    {args: []string{"-c", "--", "[.. | numbers] | length, add, (map(. * 2) | sort)"}, snapshot: "start", input: jsonText},
	"gperf":   {args: []string{"--language=ANSI-C"}, snapshot: "auto", input: keywords},
	"htmlq":   {args: []string{"--", "p, a"}, snapshot: "start", input: html},
	"jsonnet": {args: []string{"-"}, snapshot: "start", input: jsonnetProgram},
	"miller":  {args: []string{"--icsv", "--ojson", "sort", "-f", "a"}, snapshot: "start", input: csvText},
	"php":     {args: []string{"-q", "-d", "html_errors=0"}, snapshot: "start", input: phpScript},
	"python":  {args: []string{"-c", "import json, sys\nexec(sys.stdin.read())"}, snapshot: "start", input: pythonProgram},
	"quickjs": {args: []string{"--std", "-e", "std.evalScript(std.in.readAsString())"}, snapshot: "start", input: javascriptProgram},
	"ruby":    {args: []string{"-e", "eval(STDIN.read)"}, snapshot: "start", input: rubyProgram},
	"shfmt":   {args: []string{"-i=2"}, snapshot: "start", input: shellScript},
	"sqlite3": {args: []string{"-batch", "-json", ":memory:"}, env: []string{"HOME=/home"}, snapshot: "start", input: sqlScript},
	"tidy":    {args: []string{"-quiet", "-indent"}, snapshot: "auto", codes: []int{1}, input: html},
	"yq":      {args: []string{"eval", "-o=json", "--", ".", "-"}, snapshot: "start", input: yamlText},
}

// TestResumedProgramsAnswerTheSame calls third-party programs with random inputs, some of which are wrong, with and
// without a directory to read and write: once with a new start for each call, and once resumed. The answer, the log,
// the receipts, the operations on files and the files themselves are the same.
func TestResumedProgramsAnswerTheSame(t *testing.T) {
	w := here(t)
	chosen, err := choose(strings.Fields(*only))
	require.NoError(t, err)
	rt, err := newRuntime(t.Context(), compiler, filepath.Join(w.dir, "cache"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	for _, p := range chosen {
		s, ok := startables[p.name]
		if !ok {
			continue
		}
		for _, mounted := range []bool{false, true} {
			name := p.name
			if mounted {
				name += " with a directory"
			}
			t.Run(name, func(t *testing.T) {
				anew, resumed := s.load(t, w, rt, p.name, "off", mounted), s.load(t, w, rt, p.name, s.snapshot, mounted)
				isolation, err := resumed.tool.Isolation(t.Context())
				require.NoError(t, err)
				require.True(t, isolation.Resumed, isolation.Reason)
				s.compare(t, anew, resumed, isolation.StartFuel)
			})
		}
	}
}

// side is a program that is called in one of two ways, and its directory.
type side struct {
	tool *runtime.Tool
	dir  string // empty without one
	took []time.Duration
}

func (s startable) load(t *testing.T, w workshop, rt *runtime.Runtime, name, snapshot string, mounted bool) *side {
	t.Helper()
	loaded := &side{}
	grants := manifests.Grants{}
	var asked []string
	for _, variable := range s.env {
		key, value, _ := strings.Cut(variable, "=")
		grants.Env = append(grants.Env, manifests.EnvGrant{Name: key, Value: value})
		asked = append(asked, key)
	}
	permissions := map[string]any{"env": asked}
	if len(asked) == 0 {
		delete(permissions, "env")
	}
	if mounted {
		loaded.dir = t.TempDir()
		permissions["files"] = []map[string]string{{"path": "/data", "access": "read-write"}}
		grants.Files = []manifests.FileGrant{manifests.GrantDirectory("/data", loaded.dir, manifests.AccessReadWrite)}
	}
	module := map[string]any{"path": name + ".wasm", "stdin": "{input}", "stdout": "text"}
	if len(s.codes) > 0 {
		module["success_codes"] = s.codes
	}
	args := slices.Clone(s.args)
	for i := range args {
		args[i] = strings.NewReplacer("{", "{{", "}", "}}").Replace(args[i])
	}
	module["args"] = args
	text, err := json.Marshal(map[string]any{
		"schema": "caisson/v1", "name": name, "description": "A program of others.",
		"module":     module,
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"input": map[string]string{"type": "string"}}},
		"behavior":   map[string]any{"snapshot": snapshot}, "permissions": permissions, "limits": map[string]any{"memory": "256MiB"},
	})
	require.NoError(t, err)
	m, err := manifests.Parse(w.manifest(name), text)
	require.NoError(t, err)
	loaded.tool, err = rt.Load(t.Context(), m, grants)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, loaded.tool.Close(context.Background())) })
	return loaded
}

// answered has all results and effects of a call, except its usage.
type answered struct {
	Result    tool.Result
	Log       string
	Denials   []tool.Denial
	HostCalls []tool.HostCall
	Count     int64
	Files     map[string]string
}

// call makes a call with a directory in which only a few files are. It returns the fuel apart.
func (s *side) call(t *testing.T, input string) (answered, int64) {
	t.Helper()
	s.prepare(t)
	arguments, err := json.Marshal(map[string]string{"input": input})
	require.NoError(t, err)
	parsed, err := tool.ParseArguments(string(arguments))
	require.NoError(t, err)
	began := time.Now()
	outcome, _ := s.tool.Invoke(t.Context(), tool.Invocation{Arguments: parsed}) // the error is in the result
	s.took = append(s.took, time.Since(began))
	for i := range outcome.HostCalls {
		outcome.HostCalls[i].Began, outcome.HostCalls[i].Duration = time.Time{}, 0
	}
	require.NotNil(t, outcome.Usage.Fuel, outcome.Result.Error)
	return answered{outcome.Result, outcome.Log, outcome.Denials, outcome.HostCalls, outcome.Usage.HostCalls, s.files(t)}, *outcome.Usage.Fuel
}

func (s *side) prepare(t *testing.T) {
	t.Helper()
	if s.dir == "" {
		return
	}
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, entry.Name())))
	}
	for name, content := range map[string]string{"a.txt": "one\ntwo\n", "b.json": `{"b": [1, 2]}`, "d/c.txt": "deep\n"} {
		file := filepath.Join(s.dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
}

func (s *side) files(t *testing.T) map[string]string {
	t.Helper()
	if s.dir == "" {
		return nil
	}
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(s.dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		found[strings.TrimPrefix(file, s.dir)] = string(content)
		return err
	}))
	return found
}

// compare gives both sides the same inputs. A call that starts the program executes about as many instructions
// more as the start takes; in Go, their number is not the same each time.
func (s startable) compare(t *testing.T, anew, resumed *side, start int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	first := s.input(random)
	_, fuel := anew.call(t, first)
	require.Eventually(t, func() bool {
		_, less := resumed.call(t, first)
		return less < fuel-start/2
	}, time.Minute, 10*time.Millisecond, "calls never resume it")
	anew.took, resumed.took = nil, nil
	outputs := map[string]bool{}
	succeeded, failed, last := 0, 0, ""
	for n := range *inputs {
		input := s.input(random)
		want, fuel := anew.call(t, input)
		got, less := resumed.call(t, input)
		require.Equal(t, want, got, "input %d: %q", n, input)
		require.Less(t, less, fuel-start/2, "input %d: the call did not resume", n)
		outputs[got.Result.Output+got.Result.Error] = true
		if got.Result.Success {
			succeeded++
		} else {
			failed, last = failed+1, got.Result.Error
		}
	}
	assert.Greater(t, len(outputs), *inputs/4, "the inputs make a difference")
	assert.Greater(t, succeeded, *inputs/4, "most fail, the last with %s", last)
	t.Logf("%d inputs, %d of them fail: %s anew, %s resumed (medians)", *inputs, failed, median(anew.took), median(resumed.took))
}

func median(of []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(of))[len(of)/2].Round(10 * time.Microsecond)
}

// TestStartablesAreOfTheCatalogue: a program that is not in the catalogue is never built, so it would be skipped.
func TestStartablesAreOfTheCatalogue(t *testing.T) {
	for name := range startables {
		assert.True(t, slices.ContainsFunc(catalogue, func(p program) bool { return p.name == name }), name)
	}
	assert.GreaterOrEqual(t, len(startables), 15)
}

const awkProgram = `{ n++; s += $2; if ($1 == "read") while ((getline line < $3) > 0) print "file", line
  else if ($1 == "write") print $2 > $3
  else if ($1 == "fail") exit $2
  else print n, toupper($1), NF } END { print s }`

// word is one of a few, some of which need more than a byte for a letter.
func word(random *rand.Rand) string {
	words := []string{"tea", "pot", "crème", "brûlée", "x", "numbers", "if", "then", "日本", "a b", "0", "-17", "3.25", "true", "null", "e\u0301", "long" + strings.Repeat("er", 40)}
	return words[random.IntN(len(words))]
}

// some joins up to a few texts.
func some(random *rand.Rand, limit int, between string, one func() string) string {
	var parts []string
	for range random.IntN(limit + 1) {
		parts = append(parts, one())
	}
	return strings.Join(parts, between)
}

// choice returns one of the texts.
func choice(random *rand.Rand, texts ...string) string { return texts[random.IntN(len(texts))] }

func lines(random *rand.Rand) string {
	return some(random, 12, "\n", func() string {
		if random.IntN(8) == 0 {
			return choice(random, "read 1 /data/a.txt", "read 1 /data/none", "read 1 /etc/passwd", "write new /data/new.txt", "write new /data/d/e", "fail 3")
		}
		return fmt.Sprintf("%s %d %s", word(random), random.IntN(100)-20, word(random))
	}) + choice(random, "", "\n")
}

func jsonText(random *rand.Rand) string {
	if random.IntN(10) == 0 {
		return choice(random, "", "{", "[1,", "nul", "\x01", "{}{}", "[1] 2")
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch kind := random.IntN(6); {
		case kind == 0 && depth < 4:
			list := []any{}
			for range random.IntN(6) {
				list = append(list, value(depth+1))
			}
			return list
		case kind <= 2 && depth < 4:
			object := map[string]any{}
			for range random.IntN(6) {
				object[word(random)] = value(depth + 1)
			}
			return object
		case kind == 3:
			return word(random)
		}
		return random.IntN(1000)
	}
	text, _ := json.Marshal([]any{value(0), value(0), value(1)}) // of values that JSON has
	return string(text)
}

func yamlText(random *rand.Rand) string {
	if random.IntN(10) == 0 {
		return choice(random, "", "a: [", "a: b: c", "\tx", "- 1\n---\n- 2\n", "&a [*a]", "a: *none")
	}
	return some(random, 10, "\n", func() string {
		return fmt.Sprintf("k%d: %s", random.IntN(100000), choice(random, "[1, "+fmt.Sprint(random.IntN(100))+"]", "\n  - "+word(random), "'"+word(random)+"'", "{"+"a: 1"+"}", "2001-01-01", "0x1f", "|\n  text\n  more"))
	}) + "\n"
}

func keywords(random *rand.Rand) string {
	return fmt.Sprintf("first%d\n", random.IntN(1000)) + some(random, 12, "\n", func() string { return fmt.Sprintf("k%s%d", choice(random, "a", "bc", "def"), random.IntN(1000)) }) + "\n"
}

func markdown(random *rand.Rand) string {
	return some(random, 12, "\n", func() string {
		return choice(random, "# "+word(random), "- "+word(random), "", "> "+word(random), "`"+word(random)+"`", "**"+word(random)+"**", "| a | b |\n|---|---|\n| "+word(random)+" | 2 |", "[a](http://x/"+word(random)+")", "<b>"+word(random), fmt.Sprint(random.IntN(1000)))
	})
}

func html(random *rand.Rand) string {
	return "<html><body>" + some(random, 12, "\n", func() string {
		return choice(random, "<p>"+word(random), "<a href='"+word(random)+"'>"+word(random)+"</a>", "<div><p>"+word(random)+"</p></div>", "<b>"+word(random), "&amp;&nope;", "</i>", fmt.Sprintf("<p>%d</p>", random.IntN(1000)))
	})
}

func csvText(random *rand.Rand) string {
	return "a,b\n" + some(random, 12, "\n", func() string {
		if random.IntN(30) == 0 {
			return choice(random, "1,2,3", "\"x", "one")
		}
		return fmt.Sprintf("%s,%d", word(random), random.IntN(100))
	}) + "\n"
}

func jsonnetProgram(random *rand.Rand) string {
	return fmt.Sprintf("local n = %d; ", random.IntN(1000)) + choice(random, "{ a: n, b: self.a * 2 }", "[x * x for x in std.range(1, n % 20)]", "std.length('"+word(random)+"') + n", "error 'no'", "{ a: ", "std.sort([3, n, 1])",
		"importstr '/data/a.txt'", "import '/data/b.json'", "importstr '/etc/passwd'", "std.md5('"+word(random)+"' + n)", "{ [k + n]: k for k in ['"+word(random)+"', 'z'] }")
}

func shellScript(random *rand.Rand) string {
	return some(random, 8, "\n", func() string {
		return choice(random, "if true;then\necho "+word(random)+"\nfi", "echo   '"+word(random)+"'", "for i in 1 2;do echo $i;done", "x=$((1+"+fmt.Sprint(random.IntN(100))+"))", "case $x in a) b;; esac", "# "+word(random), "f(){ :;}", "if true; then", "cat <<E\nt\nE")
	})
}

func sqlScript(random *rand.Rand) string {
	return fmt.Sprintf("create table t(a, b); insert into t values ('%s', %d);\n", word(random), random.IntN(1000)) + some(random, 8, "\n", func() string {
		return choice(random, "select * from t order by b;", "select sum(b) as s, count(*) as n from t;", fmt.Sprintf("insert into t values ('%s', %d);", word(random), random.IntN(1000)), "selec 1;", "select * from none;",
			"attach '/data/x.db' as x; create table x.u(c); insert into x.u select b from t; select * from x.u;", "select json_extract('{\"a\": [1, 2]}', '$.a[1]') as j;", ".tables", ".read /data/a.txt", ".read /etc/passwd", "select upper(a) as u from t;",
			"with recursive c(x) as (select 1 union all select x+1 from c where x < 50) select sum(x) as s from c;", "delete from t where b > 500;")
	}) + "\n"
}

func pythonProgram(random *rand.Rand) string {
	return fmt.Sprintf("n = %d\nprint(n)\n", random.IntN(1000)) + some(random, 6, "\n", func() string {
		return choice(random, "print([x * x for x in range(n % 30)])", "print(json.dumps(dict(a=n, b='"+word(random)+"')))", "import re; print(re.sub(r'\\w', '.', '"+word(random)+"'))", "import statistics; print(statistics.mean([n, 1, 2]))",
			"print(open('/data/a.txt').read())", "open('/data/new.txt', 'w').write(str(n))", "import os; print(sorted(os.listdir('/data')))", "import os; s = os.stat('/'); print(s.st_ino, s.st_size, s.st_nlink)",
			"import os; print(os.path.exists('/data/d/c.txt'), os.path.exists('/usr/lib/python3'))", "import os; print([os.stat('/data/' + f).st_ino for f in sorted(os.listdir('/data'))])", "raise ValueError(n)", "sys.exit(n % 5)", "print(", "print(open('/etc/passwd').read())",
			"import csv, io; print(list(csv.reader(io.StringIO('a,b\\n1,2'))))", "print(sys.stderr.write('log %d\\n' % n))", "print(hash(n), sorted({'x', 'y', str(n)}))", "import decimal; print(decimal.Decimal(n) / 7)", "print(sys.stdin.read() == '', sys.stdout.seekable(), sys.argv)",
			"import os; fd = os.open('/data/a.txt', os.O_RDONLY); print(fd, os.lseek(fd, 2, 0), os.read(fd, 5)); os.close(fd)")
	}) + "\n"
}

func rubyProgram(random *rand.Rand) string {
	return fmt.Sprintf("n = %d\nputs n\n", random.IntN(1000)) + some(random, 6, "\n", func() string {
		return choice(random, "p (1..n % 30).map { |x| x * x }", "puts '"+word(random)+"'.reverse.upcase", "p({a: n, 'b' => ['"+word(random)+"']})", "puts File.read('/data/a.txt')", "File.write('/data/new.txt', n.to_s)",
			"p Dir.children('/data').sort", "p File.exist?('/data/d/c.txt'), File.exist?('/usr/lib/ruby')", "raise ArgumentError, n.to_s", "exit(n % 5)", "puts(", "puts File.read('/etc/passwd')", "warn \"log #{n}\"",
			"p File.stat('/').ino, File.stat('/').size", "p 2 ** n", "p n.to_s =~ /5/, $~", "p STDIN.read, STDIN.eof?", "File.open('/data/b.json') { |f| f.seek(3); p f.read(4), f.pos }")
	}) + "\n"
}

func phpScript(random *rand.Rand) string {
	return fmt.Sprintf("before %s <?php $n = %d; echo $n, \"\\n\";\n", word(random), random.IntN(1000)) + some(random, 6, "\n", func() string {
		return choice(random, "print_r(array_map(fn($x) => $x * $x, range(1, 1 + $n % 20)));", "echo json_encode(['a' => $n, 'b' => '"+word(random)+"']);", "echo strrev('"+word(random)+"'), PHP_EOL;", "echo file_get_contents('/data/a.txt');",
			"file_put_contents('/data/new.txt', $n);", "print_r(scandir('/data'));", "var_dump(file_exists('/data/d/c.txt'), file_exists('/usr/lib/php'));", "throw new Exception('no ' . $n);", "exit($n % 5);", "echo (;", "echo file_get_contents('/etc/passwd');",
			"fwrite(fopen('php://stderr', 'w'), \"log $n\\n\");", "var_dump(stat('/')['ino'] ?? null);", "echo md5('"+word(random)+"' . $n), PHP_EOL;", "echo preg_replace('/[0-9]/', '#', \"a$n\"), PHP_EOL;", "var_dump(ini_get('memory_limit'), $argc ?? 0);")
	}) + "\n"
}

func javascriptProgram(random *rand.Rand) string {
	return fmt.Sprintf("const n = %d; print(n);\n", random.IntN(1000)) + some(random, 6, "\n", func() string {
		return choice(random, "print([...Array(n % 30).keys()].map(x => x * x))", "print(JSON.stringify({a: n, b: '"+word(random)+"'}))", "print('"+word(random)+"'.normalize('NFD').toUpperCase())", "print(std.loadFile('/data/a.txt'))",
			"print(std.loadFile('/etc/passwd'))", "{ const f = std.open('/data/new.txt', 'w'); if (f) { f.puts(String(n)); f.close() } }", "print(os.readdir('/data')[0].sort())", "throw new Error(n)", "std.exit(n % 5)", "print(", "print(2n ** BigInt(n))",
			"print(JSON.stringify(os.stat('/')[0]?.ino), os.stat('/data/none')[1])", "print(/(\\d+)/.exec('x' + n)[1])", "std.err.puts('log ' + n + '\\n')", "print(std.in.readAsString() === '')", "print([3, n, 1].sort((a, b) => a - b))")
	}) + "\n"
}

// whatRepeats is what SNAPSHOTS.md says of CPython that imports random before it reads: whether an expression has
// the same value in calls that resume it.
var whatRepeats = map[string]bool{
	"list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})": true, "hash('a')": true, "hash(b'a')": true, "random.random()": true, "random.sample(range(1000), 5)": true,
	"__import__('secrets').token_hex(8)": false, "__import__('os').urandom(8)": false, "__import__('uuid').uuid4()": false, "random.SystemRandom().random()": false,
	"__import__('time').time_ns()": false, "random.seed() or random.random()": false, "sorted({'a', 'b', 'c'})": true,
}

func pythonRepeatsWhatIsSaid(t *testing.T, w workshop, rt *runtime.Runtime, _ *manifests.Manifest) {
	s := startable{args: []string{"-c", "import random, sys\nprint(eval(sys.stdin.read()))"}}
	anew, resumed := s.load(t, w, rt, "python", "off", false), s.load(t, w, rt, "python", "start", false)
	isolation, err := resumed.tool.Isolation(t.Context())
	require.NoError(t, err)
	_, fuel := anew.call(t, "1")
	require.Eventually(t, func() bool {
		_, less := resumed.call(t, "1")
		return less < fuel-isolation.StartFuel/2
	}, time.Minute, 10*time.Millisecond)
	for expression, repeats := range whatRepeats {
		values := map[string]bool{}
		for range 3 {
			answer, _ := resumed.call(t, expression)
			require.True(t, answer.Result.Success, "%s: %s", expression, answer.Log)
			values[answer.Result.Output] = true
		}
		if repeats {
			assert.Len(t, values, 1, expression)
		} else {
			assert.Len(t, values, 3, expression)
		}
	}
	values := map[string]bool{}
	for range 3 {
		answer, _ := anew.call(t, "hash('a')")
		values[answer.Result.Output] = true
	}
	assert.Len(t, values, 3, "control: each start has a seed of its own")
}
