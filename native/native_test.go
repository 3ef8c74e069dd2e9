package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
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

type numbers struct {
	A float64 `json:"a" jsonschema:"the first number"`
	B float64 `json:"b,omitempty"`
}

func add(_ context.Context, n numbers) (float64, error) { return n.A + n.B, nil }

// made returns a tool of a function.
func made[A, R any](t *testing.T, about native.About, do func(context.Context, A) (R, error)) *native.Tool {
	t.Helper()
	about.Description = "Do " + about.Name + "."
	f, err := native.New(about, do)
	require.NoError(t, err)
	return f.(*native.Tool)
}

// executing returns an executor of the tools, which the test closes.
func executing(t *testing.T, tools ...registry.Tool) *executor.Executor {
	t.Helper()
	r := registry.New()
	for _, f := range tools {
		require.NoError(t, r.Register("test", f))
	}
	t.Cleanup(func() { assert.NoError(t, r.Close(context.WithoutCancel(t.Context()))) })
	e, err := executor.New(r, executor.Options{})
	require.NoError(t, err)
	return e
}

// one runs one call.
func one(t *testing.T, e *executor.Executor, name, arguments string) tool.Record {
	t.Helper()
	report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: arguments}}}})
	require.NoError(t, err)
	require.Len(t, report.Records, 1)
	return report.Records[0]
}

// TestAFunctionIsATool: a name, a description and a function are a tool, whose calls are checked and repaired as any.
func TestAFunctionIsATool(t *testing.T) {
	f, err := native.New(native.About{Name: "add", Description: "Add two numbers.", Category: "math"}, add)
	require.NoError(t, err)
	e := executing(t, f)

	m := f.Manifest()
	assert.Equal(t, manifests.ExecutionHost, m.Execution)
	assert.Equal(t, "math", m.Category)
	assert.JSONEq(t, `{"type":"object","properties":{"a":{"type":"number","description":"the first number"},"b":{"type":"number"}},"required":["a"],"additionalProperties":false}`, string(m.ModelParameters))

	record := one(t, e, "add", `{"a":2,"b":3}`)
	assert.JSONEq(t, "5", string(record.Result.Data))
	record = one(t, e, "add", `{"a":"2","b":3}`)
	assert.JSONEq(t, "5", string(record.Result.Data))
	assert.NotEmpty(t, record.Repairs)
	for _, wrong := range []string{`{}`, `{"a":[1,2]}`, `{"a":1,"c":2}`, `{"a":1`} {
		assert.Equal(t, tool.InvalidArguments, one(t, e, "add", wrong).Result.Kind, wrong)
	}
}

func TestResults(t *testing.T) {
	about := func(name string) native.About { return native.About{Name: name} }
	type none struct{}
	e := executing(t,
		made(t, about("text"), func(context.Context, none) (string, error) { return "words", nil }),
		made(t, about("rows"), func(context.Context, none) ([]int, error) { return []int{1, 2}, nil }),
		made(t, about("whole"), func(context.Context, none) (tool.Result, error) {
			return tool.Result{Success: false, Error: "no such city", Data: json.RawMessage(`{"near":"Oslo"}`)}, nil
		}),
		made(t, about("pointing"), func(context.Context, none) (*tool.Result, error) { return &tool.Result{Error: "no such city"}, nil }),
		made(t, about("counting"), func(_ context.Context, a struct {
			N    int
			Rest map[string][]int8 `json:",omitempty"`
		}) (string, error) {
			return fmt.Sprint(a.N, a.Rest), nil
		}),
		made(t, about("raw"), func(_ context.Context, a struct {
			Any   json.RawMessage `json:"any"`
			Bytes []byte          `json:"bytes,omitempty"`
		}) (string, error) {
			return string(a.Any) + " " + string(a.Bytes), nil
		}),
		made(t, about("failing"), func(context.Context, none) (string, error) { return "", errors.New("no such city; try Oslo") }),
		made(t, about("refusing"), func(context.Context, none) (string, error) {
			return "", &tool.Error{Kind: tool.Busy, Message: "try again in a minute"}
		}),
		made(t, about("hiding"), func(context.Context, none) (string, error) {
			return "", &tool.Error{Kind: tool.Internal, Message: "the password is hunter2", Err: errors.New("hunter2")}
		}),
		made(t, about("panicking"), func(context.Context, none) (string, error) { panic("hunter2") }),
		made(t, about("exiting"), func(context.Context, none) (string, error) { goruntime.Goexit(); return "", nil }),
		made(t, about("unwritable"), func(context.Context, none) (any, error) { return func() {}, nil }),
	)
	assert.Equal(t, tool.Result{Success: true, Output: "words"}, one(t, e, "text", "").Result)
	assert.Equal(t, tool.Result{Success: true, Data: json.RawMessage("[1,2]")}, one(t, e, "rows", "").Result)
	assert.Equal(t, tool.Result{Error: "no such city", Kind: tool.ToolFailed, Data: json.RawMessage(`{"near":"Oslo"}`)}, one(t, e, "whole", "").Result)
	assert.Equal(t, tool.Result{Error: "no such city", Kind: tool.ToolFailed}, one(t, e, "pointing", "").Result)
	assert.Equal(t, "1000 map[a:[1 20]]", one(t, e, "counting", `{"N":1e3,"Rest":{"a":[1.0,2e1]}}`).Result.Output)
	assert.Equal(t, `{"a":[1]} words`, one(t, e, "raw", `{"any":{"a":[1]},"bytes":"d29yZHM="}`).Result.Output)
	assert.Equal(t, "null ", one(t, e, "raw", `{"any":null}`).Result.Output)
	assert.Equal(t, tool.InvalidArguments, one(t, e, "raw", `{"any":1,"bytes":"no base64!"}`).Result.Kind)
	assert.Equal(t, "the tool cannot take these arguments: illegal base64 data at input byte 2", one(t, e, "raw", `{"any":1,"bytes":"no base64!"}`).Result.Error)
	outside := one(t, e, "counting", `{"N":9223372036854775808}`).Result
	assert.Equal(t, tool.Result{Error: "N: the tool cannot take this number 9223372036854775808", Kind: tool.InvalidArguments}, outside)
	assert.Equal(t, tool.Result{Error: "no such city; try Oslo", Kind: tool.ToolFailed}, one(t, e, "failing", "").Result)
	assert.Equal(t, tool.Result{Error: "try again in a minute", Kind: tool.Busy}, one(t, e, "refusing", "").Result)
	for _, name := range []string{"hiding", "panicking", "exiting", "unwritable"} {
		record := one(t, e, name, "")
		assert.Equal(t, tool.Internal, record.Result.Kind, name)
		assert.Contains(t, record.Result.Error, record.CallID, name)
		assert.NotContains(t, record.Result.Error, "hunter2", name)
	}
}

// TestAttackNamesInAnotherCase: the schema's rules for a parameter apply to the function's field, although
// encoding/json takes names in any case and the schema allows other members.
func TestAttackNamesInAnotherCase(t *testing.T) {
	type place struct {
		Path string `json:"path"`
	}
	type deep struct {
		Deeper place `json:"deeper"`
	}
	type arguments struct {
		place
		*deep   `json:"deep"`
		List    []place          `json:"list"`
		By      map[string]*deep `json:"by"`
		Dropped string           `json:"-"`
		At      *time.Time
		Any     any
	}
	e := executing(t, made(t, native.About{Name: "open", Parameters: json.RawMessage(`{
		"type": "object", "properties": {"path": {"enum": ["a"]}}
	}`)}, func(_ context.Context, a arguments) (arguments, error) { return a, nil }))
	for text, want := range map[string]string{
		`{"path":"a","PATH":"/etc/passwd"}`:     "PATH: unknown parameter; write path",
		`{"Path":"/etc/passwd"}`:                "Path: unknown parameter; write path",
		`{"At":null,"at":null}`:                 "at: unknown parameter; write At",
		`{"li\u017ft":[]}`:                      "liſt: unknown parameter; write list",
		`{"list":[{},{"Path":"b"}]}`:            "list[1].Path: unknown parameter; write path",
		`{"by":{"Path":{"deeper":{"pATH":1}}}}`: "by.Path.deeper.pATH: unknown parameter; write path",
		`{"by":{"Path":{"Deeper":{}}}}`:         "by.Path.Deeper: unknown parameter; write deeper",
	} {
		assert.Equal(t, tool.Result{Error: want, Kind: tool.InvalidArguments}, one(t, e, "open", text).Result, text)
	}
	for _, text := range []string{
		`{}`, `{"path":"a"}`, `{"Dropped":"x","-":1}`, `{"Deeper":{"Path":1}}`, `{"other":{"PATH":1}}`, `{"Any":{"PATH":[{"Path":1}]}}`,
		`{"list":[{"path":"x"}],"by":{"A":{"deeper":{"path":"x"}},"a":null},"At":"2020-01-01T00:00:00Z"}`,
	} {
		assert.True(t, one(t, e, "open", text).Result.Success, text)
	}
}

// TestAttackHang: a function that continues after its deadline delays its call by no more than a moment. When too many
// do, the tool is unavailable until they have returned. The control: functions that heed their context return in time.
func TestAttackHang(t *testing.T) {
	release := make(chan struct{})
	hang := made(t, native.About{Name: "hang", Timeout: 10 * time.Millisecond}, func(context.Context, struct{}) (string, error) {
		<-release
		return "late", nil
	})
	heed := made(t, native.About{Name: "heed", Timeout: 10 * time.Millisecond}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	e := executing(t, hang, heed)
	for range 20 {
		began := time.Now()
		outcome, err := heed.Invoke(t.Context(), tool.Invocation{Tool: "heed"})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "the tool did not finish before its deadline of 10ms", outcome.Result.Error)
		assert.Less(t, time.Since(began), 5*time.Second)
	}
	assert.Empty(t, heed.Unavailable(), "the control")

	for range 16 {
		assert.Empty(t, hang.Unavailable())
		_, err := hang.Invoke(t.Context(), tool.Invocation{Tool: "hang"})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
	assert.Regexp(t, `^16 of its calls have not returned, the first since 20`, hang.Unavailable())
	assert.Equal(t, tool.Denied, one(t, e, "hang", "").Result.Kind)
	ended, stop := context.WithCancel(t.Context())
	stop()
	assert.ErrorContains(t, hang.Close(ended), "16 calls have not returned")
	close(release)
	assert.NoError(t, hang.Close(t.Context()))
	assert.Empty(t, hang.Unavailable())
	assert.Equal(t, "late", one(t, e, "hang", "").Result.Output)
}

// coded is an error, or the value of a panic, whose text and comparison are code.
type coded struct{ do func() }

func (c coded) Error() string { c.do(); return "words" }
func (c coded) Is(error) bool { c.do(); return false }

// TestAttackErrorsThatRunCode: the methods of what a function returns or panics with are part of the function. They
// have its time, and when they exit, the call has ended.
func TestAttackErrorsThatRunCode(t *testing.T) {
	release := make(chan struct{})
	late := time.AfterFunc(time.Minute, func() { close(release) }) // the attack must not hang the test
	block, exit := func() { <-release }, goruntime.Goexit
	ends := map[string]struct {
		do   func() error
		want tool.Kind
	}{
		"an error that blocks":             {func() error { return coded{block} }, tool.Deadline},
		"a cause that blocks":              {func() error { return &tool.Error{Kind: tool.Internal, Err: coded{block}} }, tool.Deadline},
		"an error that exits":              {func() error { return coded{exit} }, tool.Internal},
		"a panic with a value that blocks": {func() error { panic(coded{block}) }, tool.Deadline},
		"a panic with a value that exits":  {func() error { panic(coded{exit}) }, tool.Internal},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f := made(t, native.About{Name: "end", Timeout: 3 * time.Second}, func(context.Context, struct{}) (string, error) { return "", end.do() })
			if end.want == tool.Deadline {
				f = made(t, native.About{Name: "end", Timeout: 10 * time.Millisecond}, func(context.Context, struct{}) (string, error) { return "", end.do() })
			}
			began := time.Now()
			_, err := f.Invoke(t.Context(), tool.Invocation{Tool: "end"})
			require.ErrorIs(t, err, end.want)
			assert.Less(t, time.Since(began), 30*time.Second)
			if end.want == tool.Internal {
				ended, stop := context.WithCancel(t.Context())
				stop()
				assert.NoError(t, f.Close(ended), "none of its calls runs")
			}
		})
	}
	late.Stop()
	close(release)
}

// TestEndOfTheCaller: a call ends with its caller's context, and says which of the two deadlines it was.
func TestEndOfTheCaller(t *testing.T) {
	wait := made(t, native.About{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	timed, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	outcome, err := wait.Invoke(timed, tool.Invocation{Tool: "wait"})
	assert.ErrorIs(t, err, tool.Deadline)
	assert.Equal(t, "the tool did not finish before the caller's deadline", outcome.Result.Error)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = wait.Invoke(cancelled, tool.Invocation{Tool: "wait"})
	assert.ErrorIs(t, err, tool.Cancelled)
	assert.ErrorIs(t, err, context.Canceled)
}

// TestInvocation: a function can read its invocation, while its call runs.
func TestInvocation(t *testing.T) {
	var kept context.Context
	who := made(t, native.About{Name: "who", Context: []string{"project_id"}}, func(ctx context.Context, a struct {
		Text      string `json:"text"`
		ProjectID string `json:"project_id,omitempty"`
	}) (string, error) {
		kept = ctx
		i, ok := native.Invocation(ctx)
		assert.True(t, ok)
		return strings.Join([]string{i.Tenant, i.User, a.ProjectID, a.Text}, " "), nil
	})
	assert.NotContains(t, string(who.Manifest().ModelParameters), "project_id")
	e := executing(t, who)
	session, err := e.NewSession(executor.SessionOptions{Tenant: "acme", User: "ada", Context: map[string]string{"project_id": "p1"}})
	require.NoError(t, err)
	call := tool.Call{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: "who", Arguments: `{"text":"hi"}`}}
	report, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{call}})
	require.NoError(t, err)
	assert.Equal(t, "acme ada p1 hi", report.Records[0].Result.Output)
	for _, ended := range []context.Context{kept, context.WithoutCancel(kept)} {
		_, ok := native.Invocation(ended)
		assert.False(t, ok, "the call has ended")
	}
	_, ok := native.Invocation(t.Context())
	assert.False(t, ok)
}

// TestDataOfASession: the data that a function keeps for a session is freed at its end.
func TestDataOfASession(t *testing.T) {
	type table struct{ tenant, session string }
	var mu sync.Mutex
	tables := map[table]int{}
	count := made(t, native.About{Name: "count", CloseSession: func(_ context.Context, tenant, session string) error {
		mu.Lock()
		defer mu.Unlock()
		delete(tables, table{tenant, session})
		return nil
	}}, func(ctx context.Context, _ struct{}) (int, error) {
		i, _ := native.Invocation(ctx)
		mu.Lock()
		defer mu.Unlock()
		tables[table{i.Tenant, i.Session}]++
		return len(tables), nil
	})
	e := executing(t, count)
	for _, tenant := range []string{"acme", "other"} {
		session, err := e.NewSession(executor.SessionOptions{ID: "1", Tenant: tenant})
		require.NoError(t, err)
		_, err = e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: "count", Arguments: "{}"}}}})
		require.NoError(t, err)
		if tenant == "acme" {
			defer func() {
				assert.NoError(t, session.Close(context.WithoutCancel(t.Context())))
				assert.Equal(t, map[table]int{{"other", "1"}: 1}, tables)
			}()
		}
	}
	assert.Len(t, tables, 2)
}

// TestAttackSessionEndThatExits: a function that exits when its panic is printed does not keep a session from ending.
func TestAttackSessionEndThatExits(t *testing.T) {
	f := made(t, native.About{Name: "keep", CloseSession: func(context.Context, string, string) error { panic(coded{goruntime.Goexit}) }}, add)
	session, err := executing(t, f).NewSession(executor.SessionOptions{ID: "1"})
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	assert.ErrorContains(t, session.Close(ctx), "the tool called runtime.Goexit")
}

// TestApproval: a destructive function waits, and who approves is told that no sandbox confines it.
func TestApproval(t *testing.T) {
	wipe := made(t, native.About{Name: "wipe", Behavior: manifests.Behavior{Destructive: true}}, func(context.Context, struct{}) (string, error) { return "gone", nil })
	e := executing(t, wipe)
	report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: "wipe", Arguments: "{}"}}}})
	require.NoError(t, err)
	require.Len(t, report.Pending, 1)
	assert.Contains(t, report.Pending[0].Decisions[0].Reason, "without a sandbox")

	same := made(t, native.About{Name: "wipe", Behavior: manifests.Behavior{Destructive: true}}, add)
	other := made(t, native.About{Name: "wipe", Version: "2.0.0", Behavior: manifests.Behavior{Destructive: true}}, func(context.Context, struct{}) (string, error) { return "", nil })
	identity := func(f *native.Tool) string {
		text, err := f.Identity(t.Context())
		require.NoError(t, err)
		return text
	}
	assert.Equal(t, identity(wipe), identity(wipe))
	assert.NotEqual(t, identity(wipe), identity(same), "other parameters")
	assert.NotEqual(t, identity(wipe), identity(other), "another version")
}

// TestHostIsForFunctionsAlone: no manifest in a file makes the host run something without a sandbox, and the runtime
// loads no function's manifest.
func TestHostIsForFunctionsAlone(t *testing.T) {
	_, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: x\ndescription: d\nexecution: host\n"))
	assert.ErrorContains(t, err, `unknown value "host"`)
	_, err = manifests.ParseFunction([]byte(`{"schema":"caisson/v1","name":"x","description":"d","permissions":{"tools":["y"]}}`))
	assert.NoError(t, err)
	_, err = manifests.ParseFunction([]byte(`{"schema":"caisson/v1","name":"x","description":"d","permissions":{"tools":["y"],"files":[{"path":"/p"}],"env":["E"]}}`))
	assert.ErrorContains(t, err, "no sandbox to which permissions.files could apply")
	assert.ErrorContains(t, err, "no sandbox to which permissions.env could apply")
	r, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close(context.WithoutCancel(t.Context()))) }()
	_, err = r.Load(t.Context(), made(t, native.About{Name: "add"}, add).Manifest(), manifests.Grants{})
	assert.ErrorContains(t, err, "Go function")
}

func TestWhatIsNoTool(t *testing.T) {
	type looped struct{ Next *looped }
	fine := native.About{Name: "fine", Description: "Do it."}
	with := func(change func(*native.About)) native.About {
		about := fine
		change(&about)
		return about
	}
	text := func(context.Context, struct{}) (string, error) { return "", nil }
	for name, wrong := range map[string]struct {
		make func() error
		want string
	}{
		"no name":        {func() error { _, err := native.New(native.About{Description: "x"}, text); return err }, "name"},
		"no description": {func() error { _, err := native.New(native.About{Name: "x"}, text); return err }, "description"},
		"no function":    {func() error { _, err := native.New[struct{}, string](fine, nil); return err }, "there is no function"},
		"a channel": {func() error {
			_, err := native.New(fine, func(context.Context, chan int) (string, error) { return "", nil })
			return err
		}, "chan"},
		"a type in itself": {func() error {
			_, err := native.New(fine, func(context.Context, looped) (string, error) { return "", nil })
			return err
		}, "cycle"},
		"no object": {func() error {
			_, err := native.New(fine, func(context.Context, int) (string, error) { return "", nil })
			return err
		}, "object"},
		"a wrong schema": {func() error {
			_, err := native.New(with(func(a *native.About) {
				a.Parameters = json.RawMessage(`{"type":"object","properties":{"a":{"type":"objekt"}}}`)
			}), text)
			return err
		}, "objekt"},
		"a schema that is cut off": {func() error {
			_, err := native.New(with(func(a *native.About) { a.Parameters = json.RawMessage(`{`) }), text)
			return err
		}, "parameters: this is not JSON"},
		"a snapshot": {func() error {
			_, err := native.New(with(func(a *native.About) { a.Behavior.Snapshot = "start" }), text)
			return err
		}, "no sandbox"},
		"a negative time": {func() error { _, err := native.New(with(func(a *native.About) { a.Timeout = -1 }), text); return err }, "negative"},
	} {
		err := wrong.make()
		require.ErrorIs(t, err, native.ErrInvalid, name)
		assert.ErrorContains(t, err, wrong.want, name)
	}
}
