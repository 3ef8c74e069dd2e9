package benchmark

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
	tools "github.com/caisson-run/caisson/wasm-tools"
)

// scriptFiles are the scripts that are measured besides the tools that come with Caisson.
//
//go:embed scripts
var scriptFiles embed.FS

// scriptLanguage is a language of scripts, with the programs and tools that are measured.
type scriptLanguage struct {
	name    modules.Language
	ending  string
	program string   // the native interpreter
	itself  string   // prints the path of the running interpreter, which may not be what the shell finds
	flags   []string // before the code on its command line
	code    string   // prints scriptPrints
	execute string   // the tool that comes with Caisson and runs code
}

// scriptPrints is the output of the measured code.
const scriptPrints = "2\n"

func scriptLanguages() []scriptLanguage {
	return []scriptLanguage{
		{modules.Python, ".py", "python3", "import sys; print(sys.executable, end='')", []string{"-I", "-c"}, "print(1+1)",
			"execute_python"},
		{modules.JavaScript, ".mjs", "node", "process.stdout.write(process.execPath)", []string{"-e"}, "console.log(1+1)",
			"execute_javascript"},
	}
}

// scriptEcho is the tool that returns the code instead of running it. Its script is of the same name.
const scriptEcho = "echo"

const echoManifest = `schema: caisson/v1
name: ` + scriptEcho + `
description: Returns the code.
module: {script: %s}
parameters:
  type: object
  properties: {code: {type: string}}
  required: [code]
`

// scriptCallers are the numbers of concurrent callers.
var scriptCallers = []int{1, 8}

// scripts measures script tools.
func (b *bench) scripts(ctx context.Context) error {
	for _, language := range scriptLanguages() {
		if err := b.scriptsIn(ctx, language); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) scriptsIn(ctx context.Context, language scriptLanguage) (err error) {
	var ways []scriptWay
	native, err := nativeStart(ctx, language)
	if err != nil {
		b.leaveOut("native start of "+language.program, err)
	} else {
		ways = append(ways, native)
	}
	wanted, found := interpreter.For(string(language.name))
	if !found || b.Interpreters == "" || !b.Interpreters.Has(wanted) {
		b.leaveOut("scripts in "+string(language.name),
			fmt.Errorf("the interpreter is not installed; run \"caisson interpreters install %s\"", language.name))
		return nil
	}
	var loaded *scriptTools
	defer func() { err = errors.Join(err, loaded.close(ctx)) }()
	err = b.step("compiling the interpreter of "+string(language.name), func() (err error) {
		loaded, err = b.openScripts(ctx, language)
		return err
	})
	if err != nil {
		return err
	}
	ways = append(ways, loaded.ways()...)
	for _, callers := range scriptCallers {
		err := b.step(fmt.Sprintf("scripts in %s, callers: %d", language.name, callers), func() error {
			rows, err := competeScripts(ctx, ways, callers, b.rounds(callers), b.Time)
			for i := range rows {
				rows[i].Language = language.name
			}
			b.report.Scripts = append(b.report.Scripts, rows...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scriptWay is one way to run the code.
type scriptWay struct {
	scheme ScriptScheme
	call   func(ctx context.Context) (scriptAnswer, error)
	prints string
}

// scriptAnswer is the result of one call.
type scriptAnswer struct {
	printed string
	fuel    int64 // zero for a native process
}

// measure makes one call.
func (w scriptWay) measure(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	answer, err := w.call(ctx)
	took := time.Since(start)
	if err == nil && answer.printed != w.prints {
		err = fmt.Errorf("it printed %q instead of %q", answer.printed, w.prints)
	}
	if err != nil {
		return 0, fmt.Errorf("benchmark: scripts: %s: %w", w.scheme, err)
	}
	return took, nil
}

// nativeStart starts the interpreter that the shell would find: itself, not a program that looks for it.
func nativeStart(ctx context.Context, language scriptLanguage) (scriptWay, error) {
	run := func(ctx context.Context, program, code string) (string, error) {
		printed, err := exec.CommandContext(ctx, program, append(slices.Clone(language.flags), code)...).Output()
		return string(printed), err
	}
	program, err := run(ctx, language.program, language.itself)
	if err != nil {
		return scriptWay{}, err
	}
	if !filepath.IsAbs(program) {
		return scriptWay{}, fmt.Errorf("%s does not say where it is", language.program)
	}
	call := func(ctx context.Context) (scriptAnswer, error) {
		printed, err := run(ctx, program, language.code)
		return scriptAnswer{printed: printed}, err
	}
	return scriptWay{NativeStart, call, scriptPrints}, nil
}

// scriptTools are the tools of one language, and an executor that runs them.
type scriptTools struct {
	language scriptLanguage
	runtime  *runtime.Runtime
	registry *registry.Registry
	executor *executor.Executor
	session  *executor.Session
	execute  *caissonSession
	echo     *caissonSession
}

// openScripts loads the tools, and calls them in each way until the calls resume the interpreter.
func (b *bench) openScripts(ctx context.Context, language scriptLanguage) (_ *scriptTools, err error) {
	s := &scriptTools{language: language, registry: registry.New()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	options := runtime.Options{CacheDir: filepath.Join(b.dir, "scripts"), Compiler: b.Compiler,
		Interpreters: string(b.Interpreters), Running: 1 << 10}
	if s.runtime, err = runtime.New(ctx, options); err != nil {
		return nil, err
	}
	folder := filepath.Join(b.dir, "scripts-"+string(language.name))
	if err := os.CopyFS(folder, tools.Scripts); err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	if s.execute, err = s.load(ctx, filepath.Join(folder, language.execute, "tool.yaml")); err != nil {
		return nil, err
	}
	if s.echo, err = s.loadEcho(ctx, folder); err != nil {
		return nil, err
	}
	unlimited := executor.Rate{Unlimited: true}
	s.executor, err = executor.New(s.registry,
		executor.Options{Rates: executor.Rates{All: unlimited, PerTenant: unlimited, PerTool: unlimited}})
	if err != nil {
		return nil, err
	}
	if s.session, err = s.executor.NewSession(executor.SessionOptions{}); err != nil {
		return nil, err
	}
	started := int64(0)
	for _, way := range s.ways() {
		if started, err = way.untilResumed(ctx, started); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *scriptTools) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	err := s.registry.Close(ctx)
	if s.runtime != nil {
		err = errors.Join(err, s.runtime.Close(ctx))
	}
	return err
}

// loadEcho writes the tool that returns the code, and loads it.
func (s *scriptTools) loadEcho(ctx context.Context, folder string) (*caissonSession, error) {
	file := scriptEcho + s.language.ending
	script, err := scriptFiles.ReadFile(path.Join("scripts", file))
	if err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	manifest := filepath.Join(folder, scriptEcho+".yaml")
	for name, content := range map[string][]byte{filepath.Join(folder, file): script,
		manifest: fmt.Appendf(nil, echoManifest, file)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("benchmark: %w", err)
		}
	}
	return s.load(ctx, manifest)
}

// load loads and registers a tool.
func (s *scriptTools) load(ctx context.Context, file string) (*caissonSession, error) {
	manifest, err := manifests.Load(file)
	if err != nil {
		return nil, err
	}
	loaded, err := s.runtime.Load(ctx, manifest, manifests.Grants{})
	if err != nil {
		return nil, err
	}
	if err := s.registry.Register("benchmark", loaded); err != nil {
		return nil, errors.Join(err, loaded.Close(ctx))
	}
	return &caissonSession{s.runtime, loaded}, nil
}

// maxWait is the maximum time until calls resume an interpreter.
const maxWait = time.Minute

// untilResumed calls the tool until a call resumes the interpreter, which takes far less work than starting it. started
// is the fuel of a start, or 0 if it is not known yet; untilResumed returns it. Ways may share an interpreter, so the
// first call of another way may have started it.
func (w scriptWay) untilResumed(ctx context.Context, started int64) (int64, error) {
	for began := time.Now(); time.Since(began) < maxWait; {
		answer, err := w.call(ctx)
		if err != nil {
			return 0, fmt.Errorf("benchmark: scripts: %s: %w", w.scheme, err)
		}
		started = cmp.Or(started, answer.fuel)
		if answer.fuel < started/2 {
			return started, nil
		}
	}
	return 0, fmt.Errorf("benchmark: scripts: %s: calls do not resume the interpreter", w.scheme)
}

func scriptInvocation(name, code string) (tool.Invocation, error) {
	arguments, err := scriptArguments(code)
	if err != nil {
		return tool.Invocation{}, err
	}
	parsed, err := tool.ParseArguments(arguments)
	return tool.Invocation{CallID: "benchmark", Tool: name, Arguments: parsed}, err
}

func scriptArguments(code string) (string, error) {
	arguments, err := json.Marshal(map[string]string{"code": code})
	return string(arguments), err
}

// answerBy returns the output that a script reports.
func answerBy(result tool.Result, usage tool.Usage) (scriptAnswer, error) {
	if !result.Success {
		return scriptAnswer{}, errors.New(result.Error)
	}
	var data struct {
		Stdout string `json:"stdout"`
	}
	err := json.Unmarshal(result.Data, &data)
	return scriptAnswer{data.Stdout, *usage.Fuel}, err
}

// ways returns the ways to call the tools.
func (s *scriptTools) ways() []scriptWay {
	direct := func(session *caissonSession) func(context.Context) (scriptAnswer, error) {
		return func(ctx context.Context) (scriptAnswer, error) {
			invocation, err := scriptInvocation(session.tool.Manifest().Name, s.language.code)
			if err != nil {
				return scriptAnswer{}, err
			}
			outcome, err := session.tool.Invoke(ctx, invocation)
			if err != nil {
				return scriptAnswer{}, err
			}
			return answerBy(outcome.Result, outcome.Usage)
		}
	}
	return []scriptWay{
		{ScriptExecutor, s.throughExecutor, scriptPrints},
		{ScriptRuntime, direct(s.execute), scriptPrints},
		{ScriptDriver, direct(s.echo), s.language.code},
	}
}

// throughExecutor makes a call as an agent's program does: parsed, checked against the schema, queued, run, recorded.
func (s *scriptTools) throughExecutor(ctx context.Context) (scriptAnswer, error) {
	arguments, err := scriptArguments(s.language.code)
	if err != nil {
		return scriptAnswer{}, err
	}
	call := tool.Call{ID: "call_1", Type: "function",
		Function: tool.Function{Name: s.language.execute, Arguments: arguments}}
	report, err := s.executor.Execute(ctx, executor.Batch{Session: s.session, Calls: []tool.Call{call}})
	if err != nil {
		return scriptAnswer{}, err
	}
	if report.Records[0].Cached {
		return scriptAnswer{}, errors.New("the answer of an earlier call was reused")
	}
	return answerBy(report.Records[0].Result, report.Records[0].Usage)
}

// competeScripts measures the ways in turns, each for the given time in total, divided into rounds.
func competeScripts(ctx context.Context, ways []scriptWay, callers, rounds int, each time.Duration) ([]Script, error) {
	took := make([][]time.Duration, len(ways))
	lasted := make([]time.Duration, len(ways))
	for round := range rounds + 1 { // the first is not measured: it makes an instance for each caller
		for i := range ways {
			at := (i + round) % len(ways)
			calls, duration, err := ways[at].turn(ctx, callers, each/time.Duration(rounds))
			if err != nil {
				return nil, err
			}
			if round > 0 {
				took[at] = append(took[at], calls...)
				lasted[at] += duration
			}
		}
	}
	rows := make([]Script, len(ways))
	for i, way := range ways {
		slices.Sort(took[i])
		rows[i] = Script{
			Scheme: way.scheme, Callers: callers, CallsPerSecond: float64(len(took[i])) / lasted[i].Seconds(),
			P50: microseconds(percentile(took[i], 50)), P99: microseconds(percentile(took[i], 99)),
		}
	}
	scriptRatios(rows)
	return rows, nil
}

// turn lets callers call concurrently until the time is over, each at least once.
func (w scriptWay) turn(
	ctx context.Context, callers int, duration time.Duration,
) (took []time.Duration, lasted time.Duration, err error) {
	goruntime.GC() // of the previous turn's garbage
	each := make([][]time.Duration, callers)
	numbers := make([]int, callers)
	for i := range numbers {
		numbers[i] = i
	}
	start := time.Now()
	err = together(numbers, func(n int) error {
		for {
			call, err := w.measure(ctx)
			if err != nil {
				return err
			}
			each[n] = append(each[n], call)
			if time.Since(start) >= duration {
				return ctx.Err()
			}
		}
	})
	return slices.Concat(each...), time.Since(start), err
}
