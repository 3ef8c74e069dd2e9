package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const callprobe = "internal/guests/callprobe/callprobe.wasm"

// household is a set of tools that may call each other, and their host. Its only bound is most.
type household struct {
	runtime *Runtime
	tools   map[string]invoker
	most    int // how deep calls nest; zero for any depth
	// then, if set, is done with each nested call's context after the call.
	then func(ctx context.Context)
	took time.Duration // by the records of nested calls

	mu      sync.Mutex
	records []tool.Record // of nested calls, in the order of their ends
}

type invoker interface {
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// goTool is a tool that is a function.
type goTool func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)

func (f goTool) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return f(ctx, invocation)
}

// answers is a tool of the host's whose calls all have one result.
func answers(result tool.Result) goTool {
	return func(context.Context, tool.Invocation) (tool.Outcome, error) { return tool.Outcome{Result: result}, nil }
}

func newHousehold(t testing.TB, options Options) *household {
	return &household{runtime: newRuntime(t, options), tools: map[string]invoker{}}
}

// calling grants calls.
func calling(names ...string) manifests.Grants {
	var grants manifests.Grants
	for _, name := range names {
		grants.Calls = append(grants.Calls, manifests.NameGrant{Binding: manifests.Binding{Origin: "caisson.yaml:7"}, Name: name})
	}
	return grants
}

// add loads a callprobe that may call the tools of these names, with more in its manifest.
func (h *household) add(t testing.TB, name, more string, callees ...string) *Tool {
	t.Helper()
	text := more
	if asked := callees; len(asked) > 0 {
		text += "\npermissions: {tools: [" + strings.Join(asked, ", ") + "]}"
	} else {
		text += "\npermissions: {tools: [nobody]}"
	}
	return h.load(t, named(t, name, callprobe, text), calling(callees...))
}

func (h *household) load(t testing.TB, m *manifests.Manifest, grants manifests.Grants) *Tool {
	t.Helper()
	loaded := load(t, h.runtime, m, grants)
	h.tools[m.Name] = loaded
	return loaded
}

// errNested is the household's error for a call that is too deep.
var errNested = &tool.Error{Op: "call", Kind: tool.Busy, Message: "calls are nested too deep"}

// nested is the host of one call, with which it makes nested calls.
type nested struct {
	household *household
	parent    string
	depth     int
}

func (n nested) Page(string, int64, int64) (tool.Page, error) { return tool.Page{}, errors.New("no") }

func (nested) Emit(tool.Emission) error { return nil }

func (n nested) Call(ctx context.Context, call tool.Call) (tool.Record, error) {
	h := n.household
	if h.most > 0 && n.depth > h.most {
		return tool.Record{}, errNested
	}
	record := tool.Record{Call: call, CallID: fmt.Sprintf("%s.%d", n.parent, n.depth), Parent: n.parent, ExecutionTime: h.took}
	callee, known := h.tools[call.Function.Name]
	if !known {
		record.Result = tool.Result{Error: "no tool " + call.Function.Name, Kind: tool.UnknownTool}
		return record, nil
	}
	arguments, err := tool.ParseArguments(call.Function.Arguments)
	if err != nil {
		record.Result = tool.Result{Error: err.Error(), Kind: tool.InvalidArguments}
		return record, nil
	}
	outcome, _ := callee.Invoke(ctx, tool.Invocation{
		CallID: record.CallID, Tool: call.Function.Name, Arguments: arguments, Tenant: "tenant",
		Host: nested{h, record.CallID, n.depth + 1},
	})
	if h.then != nil {
		h.then(ctx)
	}
	record.Result, record.Usage, record.Denials, record.HostCalls, record.Log = outcome.Result, outcome.Usage, outcome.Denials, outcome.HostCalls, outcome.Log
	record.Repairs = []tool.Repair{{Path: "$.project_id", Rule: "cast", From: json.RawMessage(`"of the tenant"`), To: json.RawMessage("1")}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, record)
	return record, nil
}

// call makes a call of a tool as a model's.
func (h *household) call(t testing.TB, name, arguments string) (tool.Outcome, error) {
	t.Helper()
	return h.callIn(t, t.Context(), name, arguments)
}

func (h *household) mustCall(t testing.TB, name, arguments string) tool.Outcome {
	t.Helper()
	outcome, err := h.call(t, name, arguments)
	require.NoError(t, err, outcome.Result.Error)
	return outcome
}

func (h *household) callIn(t testing.TB, ctx context.Context, name, arguments string) (tool.Outcome, error) {
	t.Helper()
	made := invocation(t, arguments, nil)
	made.Tool, made.Host = name, nested{h, "the-call", 1}
	return h.tools[name].Invoke(ctx, made)
}

// steps returns the arguments with which a callprobe takes these steps.
func steps(list ...string) string { return `{"steps":[` + strings.Join(list, ",") + `]}` }

// asks returns a step that calls a tool, which takes these steps.
func asks(name string, list ...string) string {
	return fmt.Sprintf(`{"do":"call","name":%q,"arguments":%s}`, name, steps(list...))
}

// asksOften returns a step that calls a tool count times. Its result says how the calls ended.
func asksOften(name string, count int, list ...string) string {
	return fmt.Sprintf(`{"do":"flood","name":%q,"count":%d,"arguments":%s}`, name, count, steps(list...))
}

func echoes(text string) string { return fmt.Sprintf(`{"do":"echo","text":%q}`, text) }

// callReply is the result of a step that calls a tool.
type callReply struct {
	Success bool
	Output  string
	Data    []json.RawMessage
	Error   string
	Kind    tool.Kind
	CallID  string
	Denials []tool.Denial
	Failure *struct {
		Text   string
		Status int
		Denial *tool.Denial
		Limit  string
		Value  int64
	}
}

// results returns the results of a callprobe's steps.
func results(t testing.TB, outcome tool.Outcome) []json.RawMessage {
	t.Helper()
	require.True(t, outcome.Result.Success, outcome.Result.Error)
	return decode[[]json.RawMessage](t, outcome.Result.Data)
}

// section and vector write parts of a module.
func section(id byte, content string) string { return string(id) + vector(content) }

func vector(content string) string { return number(len(content)) + content }

func number(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

const magic = "\x00asm\x01\x00\x00\x00"

// bare is a command without imports that does this and no more, with one local of type i32.
func bare(body string) string {
	return magic + section(1, "\x01\x60\x00\x00") + section(3, "\x01\x00") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x00") + section(10, "\x01"+vector("\x01\x01\x7f"+body+"\x0b"))
}

var (
	idle      = bare("")
	crashing  = bare("\x00")
	recursive = bare("\x10\x00")             // calls itself
	spinning  = bare("\x03\x40\x0c\x00\x0b") // loops forever
)

// looping returns a command that runs a loop for some rounds.
func looping(rounds int) string { return bare(loop(rounds)) }

func loop(rounds int) string {
	// local 0 = rounds; loop: local 0 -= 1; br_if 0
	return "\x41" + signed(rounds) + "\x21\x00\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b"
}

// signed writes a number as signed LEB128.
func signed(n int) string {
	var text []byte
	for n > 0x3f || n < -0x40 {
		text = append(text, byte(n&0x7f)|0x80)
		n >>= 7
	}
	return string(append(text, byte(n&0x7f)))
}

// requesting returns a command that makes a call count times, and runs a loop after each.
func requesting(request string, count, rounds int) string {
	then := "\x1a" + loop(rounds) // drop
	return requestingThen(request, then+strings.Repeat(callOf(request)+then, count-1))
}

// callOf makes a call, whose result is then on the stack.
func callOf(request string) string {
	return "\x41\x00\x41" + signed(len(request)) + "\x10\x00" // call(0, length)
}

// requestingThen returns a command that makes a call and then runs code on its result.
func requestingThen(request, then string) string {
	return magic + section(1, "\x02\x60\x02\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x01"+vector("caisson:tools@1")+vector("call")+"\x00\x00") + section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") +
		section(10, "\x01"+vector("\x01\x01\x7f"+callOf(request)+then+"\x0b")) + section(11, "\x01\x00\x41\x00\x0b"+vector(request))
}
