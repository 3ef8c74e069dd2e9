package caisson_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) {
	if err := guests.ShareCompiledCode(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const header = "schema: caisson/v1\ndescription: Greets.\nmodule: {path: greet.wasm}\n"

// open opens a host, which has compiled code where all tests have it if the options say nothing else.
func open(t *testing.T, options caisson.Options, tools ...registry.Tool) *caisson.Host {
	t.Helper()
	if options.Runtime.CacheDir == "" && !options.NoCache {
		_, dir := noerr.Get2(guests.CompiledCode())(t)
		options.Runtime.CacheDir = dir
	}
	return tooltest.Host(t, options, tools...)
}

// greeting returns a host with one tool, which runs in this process.
func greeting(t *testing.T, options caisson.Options, more tooltest.Fields) *caisson.Host {
	t.Helper()
	return open(t, options, tooltest.New(t, "greet", more, tooltest.Echo))
}

var greet = executor.Batch{Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: "greet", Arguments: "{}"}}}}

// TestProblems: a broken manifest keeps out its own tool, and one whose name cannot be read also its
// source and the later ones. The remaining tools are loaded, and the host reports the missing ones.
func TestProblems(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{
		"one/a.tool.yaml": header + "name: a\nnonsense: 1\n", "one/b.tool.yaml": header + "name: b\n", "one/c.tool.yaml": header + "name: c\npermissions: {llm: {tokens: 1}}\n",
		"two/a.tool.yaml": header + "name: a\n", "two/d.tool.yaml": header + "name: d\n",
		"nameless/tool.yaml": header + "nonsense: 1\n", "nameless/e.tool.yaml": header + "name: e\n",
		"alike/tool.yaml": header + "name: A\naliases: [D]\n", "alike/f.tool.yaml": header + "name: f\naliases: [d]\n",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	namesOf := func(host *caisson.Host) (names []string) {
		for _, d := range host.Definitions() {
			names = append(names, d.Name)
		}
		return names
	}
	host := open(t, caisson.Options{Tools: []string{in("one"), in("two")}})
	assert.Equal(t, []string{"b", "d"}, namesOf(host))
	require.Len(t, host.Problems(), 2)
	for i, name := range []string{"a", "c"} {
		var broken *manifests.Error
		require.ErrorAs(t, host.Problems()[i], &broken)
		assert.Equal(t, []string{name}, broken.Names)
		assert.Equal(t, in("one/"+name+".tool.yaml"), broken.Problems[0].File)
	}

	var log strings.Builder
	host = open(t, caisson.Options{Tools: []string{in("one"), in("nameless"), in("two")}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Equal(t, []string{"b"}, namesOf(host))
	require.Len(t, host.Problems(), 4)
	require.ErrorIs(t, host.Problems()[2], manifests.ErrInvalid)
	assert.ErrorContains(t, host.Problems()[3], in("two")+": not loaded, because "+in("nameless")+" was not, and may have tools with the same names")
	assert.Equal(t, 4, strings.Count(log.String(), "not loaded\" err="))

	for name, spoil := range map[string]func(folder string) error{
		"a link to nothing":    func(folder string) error { return os.Symlink("/nonexistent", filepath.Join(folder, "tool.yaml")) },
		"a name in upper case": func(folder string) error { return os.WriteFile(filepath.Join(folder, "Tool.yaml"), nil, 0o600) },
	} {
		folder := t.TempDir()
		if err := spoil(folder); err != nil && goruntime.GOOS == "windows" {
			continue // which may not make links
		}
		host = open(t, caisson.Options{Tools: []string{in("one"), folder, in("two")}})
		assert.Equal(t, []string{"b"}, namesOf(host), name)
		assert.Len(t, host.Problems(), 4, name)
	}

	// A tool whose name looks like that of an earlier one is not loaded. The rest of its folder is.
	log.Reset()
	host = open(t, caisson.Options{Tools: []string{in("two"), in("alike")}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Equal(t, []string{"a", "d", "f"}, namesOf(host))
	require.Len(t, host.Problems(), 1)
	var alike *registry.DuplicateError
	require.ErrorAs(t, host.Problems()[0], &alike)
	assert.Equal(t, []string{"A", in("alike/tool.yaml"), in("two/a.tool.yaml")}, []string{alike.Name, alike.Dropped.File, alike.Kept.File})
	assert.Contains(t, log.String(), "level=ERROR msg=\"not loaded\" err=")

	require.ErrorIs(t, noerr.Error(caisson.Open(t.Context(), caisson.Options{Tools: []string{in("one"), in("nowhere")}, NoCache: true})), registry.ErrSource, "which is a mistake of the caller")
	require.ErrorIs(t, noerr.Error(caisson.Open(t.Context(), caisson.Options{Tools: []string{in("nameless"), in("one")}, NoCache: true})), caisson.ErrTools, "no tool is left")
}

func TestTheZeroOptionsOpenNothing(t *testing.T) {
	t.Chdir(tooltest.Files(t, map[string]string{"caisson.yaml": "not: a policy\n", "wasm-tools/tool.yaml": "not: a manifest\n"}))
	host := open(t, caisson.Options{})
	assert.Empty(t, host.Definitions())
	report := noerr.Get(host.Execute(t.Context(), greet))(t)
	assert.Equal(t, tool.UnknownTool, report.Records[0].Result.Kind)
	require.NoError(t, host.CloseRecords(t.Context()))
}

// TestOpenFails: each error has its kind and wraps the cause.
func TestOpenFails(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{
		"policy.yaml": "schema: caisson-config/v1\nprofile: none\n", "broken.yaml": "schema: nothing\n",
		"one/tool.yaml": header + "name: one\nnonsense: 1\n", "two/tool.yaml": header + "name: two\nnonsense: 2\n",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, test := range map[string]struct {
		options     caisson.Options
		kind, cause error
	}{
		"no policy":         {caisson.Options{PolicyFile: in("missing.yaml")}, caisson.ErrPolicy, fs.ErrNotExist},
		"no good policy":    {caisson.Options{PolicyFile: in("broken.yaml")}, caisson.ErrPolicy, manifests.ErrInvalid},
		"policy's profile":  {caisson.Options{PolicyFile: in("policy.yaml")}, caisson.ErrPolicy, manifests.ErrInvalid},
		"profile":           {caisson.Options{Profile: "none"}, caisson.ErrPolicy, manifests.ErrProfile},
		"no tools":          {caisson.Options{Tools: []string{in("missing")}}, caisson.ErrTools, fs.ErrNotExist},
		"broken tools":      {caisson.Options{Tools: []string{in("one"), in("two")}}, caisson.ErrTools, manifests.ErrInvalid},
		"negative limit":    {caisson.Options{Runtime: runtime.Options{Limits: runtime.Limits{Fuel: -1}}}, caisson.ErrRuntime, nil},
		"negative number":   {caisson.Options{Executor: executor.Options{Parallel: -1}}, caisson.ErrInvalidOptions, executor.ErrInvalidOptions},
		"two profiles":      {caisson.Options{Runtime: runtime.Options{Profile: manifests.Profile{Name: "mine"}}}, caisson.ErrInvalidOptions, nil},
		"no cache, a cache": {caisson.Options{Runtime: runtime.Options{CacheDir: in("cache")}}, caisson.ErrInvalidOptions, nil},
	} {
		test.options.NoCache = true
		_, err := caisson.Open(t.Context(), test.options)
		var known *caisson.Error
		require.ErrorAs(t, err, &known, name)
		assert.Equal(t, "open", known.Op, name)
		assert.Equal(t, test.kind, known.Kind, name)
		require.ErrorIs(t, err, test.kind, name)
		if test.cause != nil {
			require.ErrorIs(t, err, test.cause, name)
		}
	}
	_, err := caisson.Open(t.Context(), caisson.Options{NoCache: true, Tools: []string{in("one"), in("two")}})
	require.ErrorContains(t, err, filepath.Join("one", "tool.yaml"))
	require.ErrorContains(t, err, filepath.Join("two", "tool.yaml"), "all problems are reported together")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = caisson.Open(ended, caisson.Options{NoCache: true, Tools: []string{in("one")}})
	require.ErrorIs(t, err, context.Canceled)
}

// TestPoliciesTogether: the lists of several policies are joined in order; if only one policy can decide, the
// first does.
func TestPoliciesTogether(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{
		"caisson.yaml": `schema: caisson-config/v1
profile: strict
tools: [{path: tools}]
context: {region: {from: fixed, value: north}}
grants: [{tools: [greet], context: [region], env: {LANG: en}}]
deny: [{env: HOME}]
`,
		"tools/tool.yaml": header + "name: greet\ncontext: [region]\nparameters: {type: object, properties: {region: {type: string}}}\npermissions: {env: [HOME, LANG]}\n",
		"mine/tool.yaml":  header + "name: mine\npermissions: {env: [HOME, LANG]}\n",
	})
	ours := &manifests.Policy{
		Profile: "lenient", Context: []manifests.ContextSource{{Origin: "main.go", Name: "region", From: manifests.FromFixed, Value: "south"}},
		Grants: []manifests.Grant{{Tools: []string{"*"}, Grants: manifests.Grants{Env: []manifests.EnvGrant{{Name: "HOME", Value: "/"}, {Name: "LANG", Value: "de"}}}}},
	}
	host := open(t, caisson.Options{PolicyFile: filepath.Join(dir, "caisson.yaml"), Policies: []*manifests.Policy{nil, ours}, Tools: []string{filepath.Join(dir, "mine")}})
	effective := map[string][]string{}
	for _, entry := range host.Registry().List() {
		loaded, ok := entry.Tool.(*runtime.Tool)
		require.True(t, ok)
		assert.Equal(t, 5*time.Second, loaded.Limits().Timeout, "the first choice of a profile counts")
		for _, d := range loaded.Decisions() {
			if d.Permission == "env" && d.Effective != "" {
				effective[entry.Name] = append(effective[entry.Name], d.Requested)
			}
		}
	}
	assert.Equal(t, map[string][]string{"greet": {"LANG"}, "mine": {"LANG"}}, effective, "a policy takes away what another one gives")
	require.ErrorIs(t, noerr.Error(host.NewSession(executor.SessionOptions{Context: map[string]string{"region": "south"}})), caisson.ErrContext)
}

// TestFixedContext: values fixed by the policy are filled in, and cannot be set differently.
func TestFixedContext(t *testing.T) {
	policy := &manifests.Policy{Context: []manifests.ContextSource{
		{Origin: "caisson.yaml:3", Name: "project_id", From: manifests.FromFixed, Value: "household"}, {Name: "user", From: manifests.FromToken},
	}}
	host := greeting(t, caisson.Options{Policies: []*manifests.Policy{policy}}, tooltest.Fields{
		"context":    []string{"project_id"},
		"parameters": tooltest.Fields{"type": "object", "properties": tooltest.Fields{"project_id": tooltest.Fields{"type": "string"}}},
	})
	report := noerr.Get(host.Execute(t.Context(), greet))(t)
	assert.Equal(t, `{"project_id":"household"}`, report.Records[0].Result.Output, "without a session, too")
	for _, values := range []map[string]string{nil, {"project_id": "household"}, {"user": "ada"}} {
		noerr.Get(host.NewSession(executor.SessionOptions{Context: values}))(t)
	}
	for _, values := range []map[string]string{{"project_id": "other"}, {"Project_ID": "household"}} {
		_, err := host.NewSession(executor.SessionOptions{Context: values})
		require.ErrorIs(t, err, caisson.ErrContext)
		require.ErrorContains(t, err, "caisson.yaml:3 fixes project_id")
	}
}

// heard is the program's own recorder.
type heard struct{ ids []string }

func (h *heard) Record(_ context.Context, entry executor.Entry) error {
	h.ids = append(h.ids, entry.Record.CallID)
	return nil
}

func TestRecordsAreKept(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var told heard
	host := greeting(t, caisson.Options{StateDir: state, Executor: executor.Options{Recorder: &told}}, nil)
	assert.NoDirExists(t, state, "nothing is created before the first batch")
	report := noerr.Get(host.Execute(t.Context(), greet))(t)
	require.NoError(t, noerr.Error(host.Ledger(t.Context())))
	id := report.Records[0].CallID
	assert.Equal(t, []string{id}, told.ids)
	entry := tooltest.Kept(t, state, id)
	assert.Equal(t, id, entry.Record.CallID)
	assert.Equal(t, "greet.tool.json", filepath.Base(entry.Manifest))
	assert.True(t, filepath.IsAbs(entry.Manifest))
	require.NoError(t, host.CloseRecords(t.Context()))
	require.NoError(t, host.CloseRecords(t.Context()))
	report = noerr.Get(host.Execute(t.Context(), greet))(t)
	assert.True(t, report.Records[0].Result.Success, "calls run although their records are not kept")
	assert.Len(t, told.ids, 2)
}

// TestAttackRecordsThatCannotBeKept: calls that may have an effect are not run, others say that they are not recorded,
// and CloseRecords reports the error once. The control keeps no records.
func TestAttackRecordsThatCannotBeKept(t *testing.T) {
	state := filepath.Join(tooltest.Files(t, map[string]string{"file": ""}), "file")
	host := greeting(t, caisson.Options{StateDir: state}, nil)
	record := noerr.Get(host.Execute(t.Context(), greet))(t).Records[0]
	assert.Equal(t, tool.Busy, record.Result.Kind)
	assert.Contains(t, record.Result.Error, "cannot be recorded")
	assert.True(t, record.Skipped)
	assert.True(t, record.Unrecorded)
	require.ErrorContains(t, noerr.Error(host.Ledger(t.Context())), "not a directory")
	readOnly := greeting(t, caisson.Options{StateDir: state}, tooltest.Fields{"behavior": map[string]any{"read_only": true}})
	record = noerr.Get(readOnly.Execute(t.Context(), greet))(t).Records[0]
	assert.True(t, record.Result.Success)
	assert.True(t, record.Unrecorded)
	require.Error(t, readOnly.CloseRecords(t.Context()))
	record = noerr.Get(greeting(t, caisson.Options{}, nil).Execute(t.Context(), greet))(t).Records[0]
	assert.True(t, record.Result.Success, "the control")
	assert.False(t, record.Unrecorded, "the control")
	require.ErrorContains(t, host.CloseRecords(t.Context()), "not a directory")
	require.NoError(t, host.CloseRecords(t.Context()))
}

// brittle is a ledger that keeps intents, but no records.
type brittle struct{ intended, kept []executor.Entry }

func (b *brittle) Intend(_ context.Context, entry executor.Entry) error {
	b.intended = append(b.intended, entry)
	return nil
}

func (b *brittle) Record(_ context.Context, entry executor.Entry) error {
	b.kept = append(b.kept, entry)
	return io.ErrShortWrite
}

// TestAttackUnknownOutcomes: a call is run, and its record cannot be kept. The caller is not told that it succeeded. The
// control is a read-only call.
func TestAttackUnknownOutcomes(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		var kept brittle
		var told heard
		host := greeting(t, caisson.Options{Executor: executor.Options{Ledger: &kept, Recorder: &told}},
			tooltest.Fields{"behavior": map[string]any{"read_only": readOnly}})
		record := noerr.Get(host.Execute(t.Context(), greet))(t).Records[0]
		require.Len(t, kept.kept, 1)
		assert.True(t, kept.kept[0].Record.Result.Success)
		assert.Equal(t, []string{record.CallID}, told.ids)
		assert.True(t, record.Unrecorded)
		assert.Equal(t, readOnly, record.Result.Success)
		assert.Equal(t, !readOnly, kept.kept[0].Intended)
		if readOnly {
			assert.Empty(t, kept.intended)
			continue
		}
		assert.Equal(t, tool.UnknownOutcome, record.Result.Kind)
		assert.Contains(t, record.Result.Error, "find out what it has done")
		assert.False(t, record.Skipped)
		require.Len(t, kept.intended, 1)
		assert.Equal(t, record.CallID, kept.intended[0].Record.CallID)
		assert.Equal(t, "{}", kept.intended[0].Record.Function.Arguments)
	}
}

// TestAttackFirstRequestThatIsGivenUp: who needs the ledger first gives up, or cannot open it. It is opened for others.
func TestAttackFirstRequestThatIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	state := filepath.Join(dir, "state")
	host := greeting(t, caisson.Options{StateDir: state}, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := host.KeptCalls(gone, "", caisson.CallFilter{})
	require.ErrorIs(t, err, context.Canceled)
	record := noerr.Get(host.Call(t.Context(), "greet", `{}`))(t)
	assert.Equal(t, record.CallID, tooltest.Kept(t, state, record.CallID).Record.CallID)

	state = filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	host = greeting(t, caisson.Options{StateDir: state}, nil)
	noerr.Get(host.Call(t.Context(), "greet", `{}`))(t)
	require.NoError(t, os.Remove(state))
	require.Eventually(t, func() bool {
		record = noerr.Get(host.Call(t.Context(), "greet", `{}`))(t)
		_, _, err = host.KeptCall(t.Context(), "", record.CallID)
		return err == nil
	}, 10*time.Second, 100*time.Millisecond)
	require.ErrorContains(t, host.CloseRecords(t.Context()), "not a directory")
}

// TestAttackForgedRecords: a tool that may write to the records folder could forge records. The control is
// a session whose calls may not.
func TestAttackForgedRecords(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{
		"tool.yaml": header + "name: greet\ncontext: [project_id]\nparameters: {type: object, properties: {project_id: {type: string}}}\npermissions: {files: [{path: /project, access: read-write}]}\n",
		"p/.keep":   "", "state/.keep": "",
	})
	policy := &manifests.Policy{Grants: []manifests.Grant{{
		Tools: []string{"greet"}, Grants: manifests.Grants{Context: manifests.GrantContext("project_id"),
			Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(dir, "{project_id}"), manifests.AccessReadWrite)},
		},
	}}}
	host := open(t, caisson.Options{Policies: []*manifests.Policy{policy}, Tools: []string{dir}, StateDir: filepath.Join(dir, "state")})
	_, err := host.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "state"}})
	require.ErrorIs(t, err, caisson.ErrExposed)
	require.ErrorContains(t, err, "greet may write")
	assert.NoDirExists(t, filepath.Join(dir, "state", "ledger"))
	noerr.Get(host.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "p"}}))(t)
	writer, found := noerr.Get2(host.WriterTo(filepath.Join(dir, "p", "deeper"), map[string]string{"project_id": "p"}))(t)
	assert.True(t, found)
	assert.Equal(t, caisson.Writer{Tool: "greet", Dir: filepath.Join(dir, "p")}, writer)
	below, found := noerr.Get2(host.WriterTo(dir, map[string]string{"project_id": "p"}))(t)
	assert.True(t, found, "a subdirectory belongs to its directory")
	assert.Equal(t, writer, below)
	_, found = noerr.Get2(host.WriterTo(filepath.Join(dir, "p.json"), map[string]string{"project_id": "p"}))(t)
	assert.False(t, found, "a file next to it")
}

// TestAttackForgedCode: the host runs the code in its cache, so no tool may write there: neither to the folder, nor to
// one above it or below it, nor by a link. The control is a session whose calls may not.
func TestAttackForgedCode(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{
		"tools/tool.yaml": header + "name: greet\ncontext: [project_id]\nparameters: {type: object, properties: {project_id: {type: string}}}\npermissions: {files: [{path: /project, access: read-write}]}\n",
		"p/.keep":         "",
	})
	cache := filepath.Join(dir, "cache")
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "compiled"), 0o700))
	policy := &manifests.Policy{Grants: []manifests.Grant{{
		Tools: []string{"greet"}, Grants: manifests.Grants{Context: manifests.GrantContext("project_id"),
			Files: []manifests.FileGrant{manifests.GrantDirectory("/project", dir+"/{project_id}", manifests.AccessReadWrite)},
		},
	}}}
	exposed := map[string]bool{"cache": true, "p": false}
	if err := os.Symlink(cache, filepath.Join(dir, "linked")); err == nil {
		exposed["linked"] = true
	}
	options := caisson.Options{Policies: []*manifests.Policy{policy}, Tools: []string{filepath.Join(dir, "tools")}, Runtime: runtime.Options{CacheDir: cache}}
	for kind, options := range map[string]caisson.Options{"code": options, "the index": {Policies: options.Policies, Tools: options.Tools, NoCache: true, IndexDir: cache}} {
		host := open(t, options)
		for project, want := range exposed {
			_, err := host.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": project}})
			assert.Equal(t, want, errors.Is(err, caisson.ErrExposed), "%s: %s: %v", kind, project, err)
		}
	}
	for granted, want := range map[string]bool{dir: true, filepath.Join(cache, "compiled"): true, filepath.Join(dir, "p"): false} {
		policy := &manifests.Policy{Grants: []manifests.Grant{{
			Tools: []string{"greet"}, Grants: manifests.Grants{Context: manifests.GrantContext("project_id"), Files: []manifests.FileGrant{manifests.GrantDirectory("/project", granted, manifests.AccessReadWrite)}},
		}}}
		options.Policies = []*manifests.Policy{policy}
		_, err := open(t, options).NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "p"}})
		assert.Equal(t, want, errors.Is(err, caisson.ErrExposed), "%s: %v", granted, err)
	}
}

func TestUnapplied(t *testing.T) {
	policy := &manifests.Policy{Ask: []manifests.PolicyAsk{{Origin: "caisson.yaml:9", Tool: "geret"}}}
	host := open(t, caisson.Options{Policies: []*manifests.Policy{nil, policy}})
	assert.Empty(t, host.Unapplied(), "without a tool there is nothing to compare with")
	require.NoError(t, host.Registry().Register("main.go", tooltest.New(t, "greet", nil, tooltest.Echo)))
	assert.Equal(t, []caisson.Unapplied{{"ask[0]", "caisson.yaml:9", `there is no tool "geret" here`, "did you mean greet?"}}, host.Unapplied())
}

// TestResolver: calls do not reach tools that the program leaves out.
func TestResolver(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{"tool.yaml": header + "name: greet\n"})
	host := open(t, caisson.Options{Tools: []string{dir}, Resolver: func(tools *registry.Registry) executor.Resolver { return tools.Without("greet") }})
	assert.Len(t, host.Definitions(), 1, "control")
	report := noerr.Get(host.Execute(t.Context(), greet))(t)
	assert.Equal(t, tool.UnknownTool, report.Records[0].Result.Kind)
}

// TestCall: one call returns its record, whether or not the tool succeeds, and a call that needs an answer is an error.
func TestCall(t *testing.T) {
	host := greeting(t, caisson.Options{}, nil)
	subscription := noerr.Get(host.Subscribe(executor.SubscribeOptions{}))(t)
	defer subscription.Close()
	record := noerr.Get(host.Call(t.Context(), "greet", "{}"))(t)
	assert.True(t, record.Result.Success, record.Result.Error)
	for _, want := range []tool.EventType{tool.BatchStarted, tool.CallStarted, tool.CallFinished, tool.BatchFinished} {
		event, _ := noerr.Get2(subscription.Next(t.Context()))(t)
		assert.Equal(t, want, event.Type)
	}

	record = noerr.Get(host.Call(t.Context(), "greet", "[]"))(t)
	assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
	record = noerr.Get(host.Call(t.Context(), "nothing", "{}"))(t)
	assert.Equal(t, tool.UnknownTool, record.Result.Kind)

	client := "schema: caisson/v1\nname: ask_user\ndescription: Ask.\nexecution: client\nparameters: {type: object}\n"
	_, err := open(t, caisson.Options{Tools: []string{tooltest.Files(t, map[string]string{"tool.yaml": client})}}).Call(t.Context(), "ask_user", "{}")
	require.ErrorIs(t, err, caisson.ErrPaused)
	assert.EqualError(t, err, "caisson: call: the call waits for an answer, which only a batch can get: ask_user waits for its tool_output")
}

// TestStream: events are shown as they happen, up to a pause and after it.
func TestStream(t *testing.T) {
	host := greeting(t, caisson.Options{}, tooltest.Fields{"behavior": tooltest.Fields{"destructive": true}})
	var kinds []tool.EventType
	show := func(event tool.Event) bool {
		kinds = append(kinds, event.Type)
		return true
	}
	session := noerr.Get(host.NewSession(executor.SessionOptions{}))(t)
	batch := greet
	batch.Session = session
	report := noerr.Get(host.Stream(t.Context(), batch, show))(t)
	require.Equal(t, executor.RequiresAction, report.Status)
	assert.Equal(t, tool.BatchStarted, kinds[0])
	kinds = nil
	asked := report.Pending[0]
	report = noerr.Get(host.ResumeStream(t.Context(), executor.Resumption{
		State: *report.State, Session: session, Approvals: []tool.Approval{{CallID: asked.CallID, Approve: true, Fingerprint: asked.Fingerprint}},
	}, show))(t)
	assert.Equal(t, executor.Completed, report.Status)
	assert.True(t, slices.Contains(kinds, tool.CallFinished), kinds)
}

// TestAttackResumedInTwoProcesses: a paused batch with an approval is resumed by two programs that keep their records in
// one place, and runs once. The control are programs that keep them in two.
func TestAttackResumedInTwoProcesses(t *testing.T) {
	for name, shared := range map[string]bool{"one place": true, "control: two places": false} {
		t.Run(name, func(t *testing.T) {
			states := []string{filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "state")}
			if shared {
				states[1] = states[0]
			}
			var hosts []*caisson.Host
			var sessions []*executor.Session
			for _, state := range states {
				host := greeting(t, caisson.Options{StateDir: state}, tooltest.Fields{"behavior": tooltest.Fields{"destructive": true}})
				hosts = append(hosts, host)
				sessions = append(sessions, noerr.Get(host.NewSession(executor.SessionOptions{ID: "one", Tenant: "acme"}))(t))
			}
			batch := greet
			batch.Session = sessions[0]
			report := noerr.Get(hosts[0].Execute(t.Context(), batch))(t)
			require.Equal(t, executor.RequiresAction, report.Status)
			asked, state := report.Pending[0], noerr.Get(json.Marshal(report.State))(t)
			ran := 0
			for i, host := range hosts {
				var copied executor.State
				require.NoError(t, json.Unmarshal(state, &copied))
				report, err := host.Resume(t.Context(), executor.Resumption{
					State: copied, Session: sessions[i], Approvals: []tool.Approval{{CallID: asked.CallID, Approve: true, Fingerprint: asked.Fingerprint}},
				})
				if err != nil {
					require.ErrorIs(t, err, executor.ErrAlreadyResumed)
				} else if report.Records[0].Result.Success {
					ran++
				}
			}
			assert.Equal(t, map[bool]int{true: 1, false: 2}[shared], ran)
		})
	}
}

// TestStreamEnds: Stream returns when show returns false and when the batch is rejected.
func TestStreamEnds(t *testing.T) {
	host := greeting(t, caisson.Options{}, nil)
	shown := 0
	report := noerr.Get(host.Stream(t.Context(), greet, func(tool.Event) bool { shown++; return false }))(t)
	assert.Len(t, report.Records, 1)
	assert.Equal(t, 1, shown)
	refused := greet
	refused.Parallel = -1
	require.ErrorIs(t, noerr.Error(host.Stream(t.Context(), refused, func(tool.Event) bool { return true })), executor.ErrInvalidBatch)
	refused = greet
	refused.Stream = noerr.Get(executor.NewStream(executor.StreamOptions{}))(t)
	require.ErrorIs(t, noerr.Error(host.Stream(t.Context(), refused, func(tool.Event) bool { return true })), caisson.ErrInvalidOptions)
}

// TestDefaultCacheThatCannotBeUsed: without a usable folder for compiled code, nothing is cached, and the
// program is told once. A folder that the program named must be usable.
func TestDefaultCacheThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, file)
	}
	var log bytes.Buffer
	var reasons []error
	options := caisson.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Runtime: runtime.Options{OnUncached: func(reason error) { reasons = append(reasons, reason) }}}
	host := noerr.Get(caisson.Open(t.Context(), options))(t)
	require.NoError(t, host.Close(t.Context()))
	require.Len(t, reasons, 1)
	assert.ErrorContains(t, reasons[0], file)
	assert.Equal(t, 1, strings.Count(log.String(), "modules are compiled each time"))

	options.Runtime.CacheDir = filepath.Join(file, "cache")
	require.ErrorIs(t, noerr.Error(caisson.Open(t.Context(), options)), caisson.ErrRuntime)
	options.Runtime.CacheDir, options.Runtime.FillCache = "", true
	require.ErrorIs(t, noerr.Error(caisson.Open(t.Context(), options)), caisson.ErrRuntime)
}

// BenchmarkNewSession measures the check that no tool may write to the cache.
func BenchmarkNewSession(b *testing.B) {
	dir := b.TempDir()
	tools := filepath.Join(dir, "tool.yaml")
	require.NoError(b, os.WriteFile(tools, []byte(header+"name: greet\npermissions: {files: [{path: /project, access: read-write}]}\n"), 0o600))
	require.NoError(b, os.Mkdir(filepath.Join(dir, "p"), 0o700))
	policy := &manifests.Policy{Grants: []manifests.Grant{{
		Tools: []string{"greet"}, Grants: manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(dir, "p"), manifests.AccessReadWrite)}},
	}}}
	for name, options := range map[string]caisson.Options{"cache": {Runtime: runtime.Options{CacheDir: filepath.Join(dir, "cache")}}, "no cache": {NoCache: true}} {
		b.Run(name, func(b *testing.B) {
			options.Policies, options.Tools = []*manifests.Policy{policy}, []string{tools}
			host := noerr.Get(caisson.Open(b.Context(), options))(b)
			defer func() { assert.NoError(b, host.Close(context.WithoutCancel(b.Context()))) }()
			for b.Loop() {
				noerr.Get(host.NewSession(executor.SessionOptions{}))(b)
			}
		})
	}
}
