package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
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

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/tool"
)

// unguarded is the harm if a call resumed another tenant's start without the guard. With it, a test shows that the
// guard is needed.
type unguarded string

const (
	leaks unguarded = "the call tells what the other tenant's start saw"
	loses unguarded = "the call lacks what its own start would have done"
	never unguarded = "there is nothing to resume"
)

// start is an action of a program before it reads its input. The guest prints the action's result, then a space and its
// input.
type start struct {
	does      string
	raw       bool   // only the guest in C does it
	args      string // of the manifest; empty: does
	snapshot  string // of the manifest; empty: start, the author's word that resuming does no harm
	reason    string // why calls start the program anew; empty: they resume it
	unguarded unguarded
	output    func(who, input string) string // of each call; nil: it tells a time, or random bytes
	log       string
}

// tells returns the output of a guest for which each start had the same result.
func tells(text string) func(who, input string) string {
	return func(_, input string) string { return text + " " + input }
}

func tooEarly(function string) string { return "it calls " + function + " before it reads its input" }

func tooEarlyOn(function, path string) string { return tooEarly(function + " on " + path) }

var starts = []start{
	{does: "file", reason: tooEarlyOn("path_open", "/project/tenant.txt"), unguarded: leaks, output: func(who, input string) string { return who + " " + input }},
	{does: "stat", reason: tooEarlyOn("path_filestat_get", "/project/tenant.txt"), unguarded: leaks, output: func(who, input string) string { return fmt.Sprintf("%d %s", len(who), input) }},
	{does: "list", reason: tooEarlyOn("path_open", "/project"), unguarded: leaks, output: func(who, input string) string { return "about-" + who + ";tenant.txt; " + input }},
	{does: "argument", args: `"{who}"`, reason: "its command line depends on the call", unguarded: leaks, output: func(who, input string) string { return who + " " + input }},
	{does: "sleep", reason: tooEarly("poll_oneoff"), unguarded: leaks},
	{does: "random", snapshot: "auto", reason: "it asks for random bytes as it starts", unguarded: leaks},
	{does: "clock", snapshot: "auto", reason: "it asks for ", unguarded: leaks}, // Go's programs ask for random bytes too
	{does: "log", reason: tooEarly("fd_write"), unguarded: loses, output: tells("written"), log: "starting\n"},
	{does: "print", reason: tooEarly("fd_write"), unguarded: loses, output: tells("early written")},
	{does: "exit", reason: tooEarly("proc_exit"), unguarded: never, output: func(string, string) string { return "" }},

	{does: "poll", raw: true, reason: tooEarly("poll_oneoff"), unguarded: leaks, output: func(_, input string) string { return fmt.Sprintf("%d %s", len(input), input) }},
	{does: "directory-times", raw: true, reason: tooEarlyOn("fd_filestat_get", "/project"), unguarded: leaks, output: func(who, input string) string { return fmt.Sprintf("%d %s", changed(who).UnixNano(), input) }},
	{does: "file-section", raw: true, reason: tooEarlyOn("path_open", "/project/tenant.txt"), unguarded: leaks, output: func(who, input string) string { return "section " + who + " " + input }},

	// The controls: work that is the same for all calls is done once for them.
	{does: "constant", output: tells("constant")},
	{does: "environment", output: tells("setting")},
	{does: "clock"},
	{does: "random"},
	// It reads the file only after an empty read, which is where calls resume.
	{does: "read-nothing", raw: true, output: func(who, input string) string { return who + " " + input }},
	// State that a call sets is gone in the next one, and state that the start has set is there.
	{does: "flags", raw: true, output: tells("flags 4 0")},
	{does: "close", raw: true, output: func(string, string) string { return "errno 0 errno 8" }},
	{does: "renumber", raw: true, output: func(string, string) string { return "errno 0 errno 8" }},
	// Calls that always fail.
	{does: "read-directory", raw: true, output: tells("errno 31")},
	{does: "pread", raw: true, output: tells("errno 70")},
	{does: "seek", raw: true, output: tells("errno 70")},
}

// languages are those of the early guest, with its module.
var languages = map[string]string{
	"C": "internal/guests/early/c/early.wasm", "Rust": "internal/guests/early/rust/early.wasm", "Go": "internal/guests/early/early.wasm",
}

// eachStart runs a subtest for each start in each language.
func eachStart(t *testing.T, test func(t *testing.T, s start, guest *Tool)) {
	r := newRuntime(t, Options{})
	for language, module := range languages {
		for _, s := range starts {
			if s.raw && language != "C" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s%s", language, s.does, s.snapshot), func(t *testing.T) {
				test(t, s, loadEarly(t, r, module, s))
			})
		}
	}
}

// TestStartsOfTenantsNeverMeet: the work of a program before it reads its input is either the same for all calls or
// done anew in each. One tenant's call never gets data that another's start read, although the author says that the
// program may be started once.
func TestStartsOfTenantsNeverMeet(t *testing.T) {
	eachStart(t, func(t *testing.T, s start, guest *Tool) {
		told := map[string]int{}
		for n := range 8 {
			who := tenants[n%len(tenants)]
			outcome, err := guest.Invoke(t.Context(), invocationOf(t, who))
			require.NoError(t, err, outcome.Log)
			require.True(t, outcome.Result.Success, outcome.Result.Error)
			assert.Equal(t, s.log, outcome.Log)
			if n == 1 {
				guest.program.settled(t)
			}
			if s.output != nil {
				assert.Equal(t, s.output(who, inputOf(who)), outcome.Result.Output)
				continue
			}
			text, input, _ := strings.Cut(outcome.Result.Output, " ")
			assert.Equal(t, inputOf(who), input)
			told[text]++
		}
		started, reason := guest.program.settled(t)
		assert.Contains(t, reason, s.reason)
		assert.Equal(t, s.reason == "", started != nil, reason)
		switch {
		case s.output != nil:
		case s.reason == "":
			assert.Len(t, told, 3, "two calls start the program for themselves, and the rest resume one start")
		default:
			assert.Len(t, told, 8, "each call starts the program")
		}
	})
}

// TestToolsOfOneModuleNeverShareAStart: a start belongs to a tool, not to its module.
func TestToolsOfOneModuleNeverShareAStart(t *testing.T) {
	r := newRuntime(t, Options{})
	var guests []*Tool
	for _, text := range []string{"one", "two"} {
		guests = append(guests, loadEarly(t, r, languages["C"], start{does: text}))
	}
	for call := range 4 {
		for n, text := range []string{"one", "two"} {
			outcome, err := guests[n].Invoke(t.Context(), invocationOf(t, tenants[0]))
			require.NoError(t, err, outcome.Log)
			assert.Equal(t, text+" "+inputOf(tenants[0]), outcome.Result.Output)
			if call == 1 {
				started, reason := guests[n].program.settled(t)
				assert.NotNil(t, started, reason)
			}
		}
	}
}

// TestUnguardedStartsOfTenantsMeet is the control of TestStartsOfTenantsNeverMeet: without the guard, one tenant's call
// resumes a start of another's, with the harm that is foreseen for it.
func TestUnguardedStartsOfTenantsMeet(t *testing.T) {
	eachStart(t, func(t *testing.T, s start, guest *Tool) {
		if s.reason == "" {
			return // nothing is refused
		}
		u := newUnguardedTool(t, guest)
		other, own := u.fresh(t, "ann"), u.fresh(t, "dieter")
		started, err := u.start(t, "ann")
		if s.unguarded == never {
			require.ErrorIs(t, err, engine.ErrNotStarted)
			return
		}
		require.NoError(t, err)
		defer func() { require.NoError(t, started.Drop()) }()
		resumed := u.resume(t, started, "dieter")
		switch s.unguarded {
		case leaks:
			assert.NotEqual(t, other.told(t, "ann"), own.told(t, "dieter"))
			assert.Equal(t, other.told(t, "ann"), resumed.told(t, "dieter"))
		case loses:
			assert.NotEqual(t, own, resumed)
		default:
			require.Fail(t, "it does not say what would come of it")
		}
	})
}

// unguardedTool is a tool whose program one tenant's call starts, as far as its first read,
// and another's resumes.
type unguardedTool struct {
	guest  *Tool
	module *engine.Module
}

func newUnguardedTool(t *testing.T, guest *Tool) unguardedTool {
	t.Helper()
	module, err := guest.prepareModule(t.Context())
	require.NoError(t, err)
	return unguardedTool{guest, module}
}

// written is the output of a call.
type written struct{ output, log string }

// told returns the part of the output before the tenant's input.
func (w written) told(t *testing.T, who string) string {
	t.Helper()
	text, ok := strings.CutSuffix(w.output, " "+inputOf(who))
	require.True(t, ok, w.output)
	return text
}

// system returns the WASI system of a tenant's call. It is the same each time, with clocks and random bytes that belong
// to the tenant, so that a program has the same result in two starts.
func (u unguardedTool) system(t *testing.T, who string) *wasi.System {
	t.Helper()
	r := u.guest.newRun(invocationOf(t, who))
	arguments, err := modules.ExpandArgs(u.guest.manifest.Module.Args, r.invocation.Arguments)
	require.NoError(t, err)
	view, err := u.guest.runtime.files.Open(t.Context(), u.guest.outline, r.invocation.Context)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, view.Close()) })
	r.view = view
	r.prepareHost()
	require.NoError(t, r.prepare(arguments, false))
	now := changed(who)
	r.system.Started = now
	r.system.Now = func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
	r.system.Random = rand.NewChaCha8(sha256.Sum256([]byte(who)))
	return &r.system
}

// fresh makes a tenant's call from the beginning.
func (u unguardedTool) fresh(t *testing.T, who string) written {
	t.Helper()
	system := u.system(t, who)
	_, err := u.module.Run(wasi.With(t.Context(), system), engine.Run{Function: startFunction, MemoryLimit: int64(u.guest.limits.Memory)})
	return wrote(t, system, err)
}

// start starts the program with all that a tenant's call sees.
func (u unguardedTool) start(t *testing.T, who string) (*engine.Program, error) {
	t.Helper()
	return u.module.Start(t.Context(), engine.Start{
		MemoryLimit: int64(u.guest.limits.Memory), Timeout: u.guest.limits.Timeout, Fuel: startFuel,
		Context: func(ctx context.Context) context.Context { return wasi.With(ctx, u.system(t, who)) },
	})
}

// resume makes a tenant's call from where the program was started.
func (u unguardedTool) resume(t *testing.T, started *engine.Program, who string) written {
	t.Helper()
	system := u.system(t, who)
	_, err := started.Run(wasi.With(t.Context(), system), engine.Run{})
	return wrote(t, system, err)
}

func wrote(t *testing.T, system *wasi.System, err error) written {
	t.Helper()
	var exit *wasi.ExitError
	if errors.As(err, &exit) && exit.Code == 0 {
		err = nil
	}
	require.NoError(t, err)
	return written{string(system.Stdout.Bytes), string(system.Stderr.Bytes)}
}

// TestStartsSeeNothingOfACall: a starting program can only access data of the tool. The test needs no list of
// functions: they have no input, output, time or directory of a call to use, whatever they do.
func TestStartsSeeNothingOfACall(t *testing.T) {
	guest := loadEarly(t, newRuntime(t, Options{}), languages["C"], start{does: "constant"})
	module, err := guest.prepareModule(t.Context())
	require.NoError(t, err)
	l, reason := guest.launch(module)
	require.Empty(t, reason)
	l.start.Context(t.Context())
	system := l.first.Load()
	assert.True(t, system.Starting)
	assert.Equal(t, []string{"guest", "constant"}, system.Args)
	assert.Equal(t, []string{"SETTING=setting"}, system.Environment)
	assert.Nil(t, system.Stdin)
	assert.Nil(t, system.Stdout)
	assert.Nil(t, system.Stderr)
	assert.Nil(t, system.OnInput)
	preopens := system.Files.Preopens()
	require.Len(t, preopens, 2)
	assert.Equal(t, []string{"/", "/project"}, []string{preopens[0].Path, preopens[1].Path})
	assert.Empty(t, system.Files.Needs())
	_, _, err = preopens[1].Dir.Open("tenant.txt", guestfiles.OpenOptions{Read: true})
	assert.ErrorIs(t, err, errno.NotSupported)
	assert.Equal(t, "/project/tenant.txt", system.Files.Needs())
}

// TestInputReadByStartSectionIsReadInEachCall: a program whose start section (§5.5.11) reads the input has read it
// before the function that is resumed has begun. No call can resume it, and the input that it read belongs to one
// tenant.
func TestInputReadByStartSectionIsReadInEachCall(t *testing.T) {
	const begins = len(`{"who":"a`) // the length that the start section reads
	section := func(read, rest string) string { return "section " + read + " " + rest }
	guest := loadEarly(t, newRuntime(t, Options{}), languages["C"], start{does: "input-section"})
	for n := range 8 {
		who := tenants[n%len(tenants)]
		require.NotPanics(t, func() {
			outcome, err := guest.Invoke(t.Context(), invocationOf(t, who))
			require.NoError(t, err, outcome.Log)
			assert.Equal(t, section(inputOf(who)[:begins], inputOf(who)[begins:]), outcome.Result.Output)
		})
		if n == 1 {
			started, reason := guest.program.settled(t)
			assert.Nil(t, started)
			assert.Equal(t, tooEarly("fd_read"), reason)
		}
	}

	// The control: without the guard the call has the beginning of another tenant's input.
	u := newUnguardedTool(t, guest)
	started, err := u.start(t, "ann")
	require.NoError(t, err)
	defer func() { require.NoError(t, started.Drop()) }()
	assert.Equal(t, section(inputOf("ann")[:begins], inputOf("dieter")), u.resume(t, started, "dieter").output)
}

// tenants have names of different lengths, so that a size tells them apart.
var tenants = []string{"ann", "bert", "carla", "dieter"}

// changed returns the time of a tenant's last change of its directory.
func changed(who string) time.Time { return time.Unix(1_700_000_000+int64(len(who)), 0) }

// inputOf returns the guest's input in a tenant's call.
func inputOf(who string) string { return fmt.Sprintf(`{"who":%q}`, who) }

func invocationOf(t *testing.T, who string) tool.Invocation {
	t.Helper()
	return invocation(t, inputOf(who), map[string]string{"project_id": who})
}

// loadEarly loads a guest that starts so, with a directory for each tenant.
func loadEarly(t *testing.T, r *Runtime, module string, s start) *Tool {
	t.Helper()
	args, snapshot := s.args, s.snapshot
	if args == "" {
		args = s.does
	}
	if snapshot == "" {
		snapshot = "start"
	}
	m := manifest(t, module, fmt.Sprintf("module: {path: guest.wasm, args: [%s], stdout: text}\n"+
		"parameters: {type: object, properties: {who: {type: string}}}\nbehavior: {snapshot: %s}\ncontext: [project_id]\nlimits: {memory: 64MiB}\n"+
		"permissions: {files: [{path: /project, access: read}], env: [SETTING]}\n", args, snapshot))
	if strings.HasSuffix(s.does, "-section") {
		startBy(t, filepath.Join(filepath.Dir(m.File), "guest.wasm"), "early")
	}
	return load(t, r, m, manifests.Grants{
		Context: manifests.GrantContext("project_id"), Env: []manifests.EnvGrant{{Name: "SETTING", Value: "setting"}},
		Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(directories(t), "{project_id}"), manifests.AccessRead)},
	})
}

// directories makes the tenants' directories. A program that is started twice is to see the
// same times, so the last access lies ahead, where reading leaves it.
func directories(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, who := range tenants {
		dir := filepath.Join(base, who)
		require.NoError(t, os.Mkdir(dir, 0o700))
		for _, name := range []string{"tenant.txt", "about-" + who} {
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, []byte(who), 0o600))
			require.NoError(t, os.Chtimes(file, time.Now().Add(time.Hour), changed(who)))
		}
		require.NoError(t, os.Chtimes(dir, time.Now().Add(time.Hour), changed(who)))
	}
	return base
}

// startBy makes an exported function the module's start function (§5.5.11), which no
// compiler does.
func startBy(t *testing.T, file, export string) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	description, err := wasm.Inspect(source)
	require.NoError(t, err)
	at := slices.IndexFunc(description.Exports, func(e wasm.Export) bool { return e.Name == export })
	require.GreaterOrEqual(t, at, 0, "the module exports %s", export)
	start := section(byte(wasm.SectionStart), number(int(description.Exports[at].Index)))
	next := slices.IndexFunc(description.Sections, func(s wasm.Section) bool { return s.ID > wasm.SectionExport })
	require.NoError(t, os.WriteFile(file, slices.Insert(source, description.Sections[next].Offset, []byte(start)...), 0o600))
}
