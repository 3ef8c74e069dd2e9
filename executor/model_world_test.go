package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// modelWorld is the state of the model test's tools: numbers by name for each tenant. Only the session
// whose name a number's name begins with changes that number; the tenant's sessions
// share "shared". It records when each call ran, by the process's clock.
type modelWorld struct {
	mu       sync.Mutex
	numbers  map[string]int64    // by tenant and name
	runs     map[string]modelRun // by call id
	writes   map[modelValue]string
	sessions []*executor.Session
	stops    map[string]context.CancelFunc // by session id, of the batch in progress
}

// modelRun is from when to when a tool ran a call.
type modelRun struct {
	begin, end time.Time
	times      int
}

// modelValue is a value that "shared" had in a tenant.
type modelValue struct {
	tenant string
	value  int64
}

func newModelWorld() *modelWorld {
	return &modelWorld{numbers: map[string]int64{}, runs: map[string]modelRun{}, writes: map[modelValue]string{}, stops: map[string]context.CancelFunc{}}
}

// Names of the model's tools that read and that write.
var (
	modelReading = []string{"pure", "read", "fresh", "hidden", "fails", "traps", "long", "hangs", "relay_read"}
	modelWriting = []string{"write", "breaks", "stops", "relay_write"}
)

func (w *modelWorld) tools(t testing.TB) []registry.Tool {
	nested := fields{"tools": []string{"pure", "read", "fresh", "fails", "traps", "long", "hangs", "secret", "write", "breaks", "relay_read", "relay_write"}}
	relays := func(only bool) fields {
		return fields{"permissions": nested, "behavior": fields{"read_only": only}}
	}
	number := fields{"parameters": fields{"type": "object", "required": []string{"n"}, "properties": fields{"n": fields{"type": "integer"}}}, "behavior": fields{"read_only": true}}
	return []registry.Tool{
		newFake(t, "pure", number, w.timed(func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
			return succeed("pure " + number64(i)), nil
		})),
		newFake(t, "read", fields{"aliases": []string{"get"}, "behavior": fields{"read_only": true}}, w.timed(w.read)),
		newFake(t, "fresh", behaves(fields{"read_only": true, "cache": "off"}), w.timed(w.read)),
		newFake(t, "hidden", behaves(fields{"read_only": true, "hidden": true}), w.timed(w.read)),
		newFake(t, "secret", readOnly, w.timed(w.read)),
		newFake(t, "fails", readOnly, w.timed(func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Error: "failed " + number64(i)}}, nil
		})),
		newFake(t, "traps", readOnly, w.timed(func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "trapped"}
		})),
		newFake(t, "long", readOnly, w.timed(func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
			return succeed(longText(number64(i))), nil
		})),
		newFake(t, "hangs", readOnly, w.timed(w.hang)),
		newFake(t, "relay_read", relays(true), w.timed(relay)),
		newFake(t, "write", nil, w.timed(w.write)),
		newFake(t, "breaks", nil, w.timed(func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
			_, _ = w.write(ctx, i)
			return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "trapped"}
		})),
		newFake(t, "stops", nil, w.timed(w.stop)),
		newFake(t, "relay_write", relays(false), w.timed(relay)),
	}
}

func number64(i tool.Invocation) string {
	raw, _ := i.Arguments.Get("n")
	return string(raw)
}

func longText(n string) string { return strings.Repeat("long "+n+"é ", 400) }

// timed notes a run, and has it take a random while.
func (w *modelWorld) timed(do run) run {
	return func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		begin := time.Now()
		dawdle()
		defer func() {
			dawdle()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.runs[i.CallID] = modelRun{begin, time.Now(), w.runs[i.CallID].times + 1}
		}()
		return do(ctx, i)
	}
}

func dawdle() {
	if rand.IntN(4) == 0 {
		time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
	}
}

func (w *modelWorld) read(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
	name := argument(i, "name")
	w.mu.Lock()
	defer w.mu.Unlock()
	return succeed(fmt.Sprintf("%s=%d", name, w.numbers[i.Tenant+" "+name])), nil
}

func (w *modelWorld) write(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
	name := argument(i, "name")
	w.mu.Lock()
	defer w.mu.Unlock()
	key := i.Tenant + " " + name
	w.numbers[key]++
	if name == "shared" {
		w.writes[modelValue{i.Tenant, w.numbers[key]}] = i.CallID
	}
	return succeed("wrote " + name), nil
}

// hang has its own call cancelled.
func (w *modelWorld) hang(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
	for _, session := range w.sessions {
		session.Cancel(i.CallID)
	}
	return hang(ctx, i)
}

// stop has its batch cancelled.
func (w *modelWorld) stop(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
	w.mu.Lock()
	stop := w.stops[argument(i, "session")]
	w.mu.Unlock()
	stop()
	return hang(ctx, i)
}

// modelMaker makes up calls of one session.
type modelMaker struct {
	random  *rand.Rand
	session string
	writes  int // in a hundred calls
}

// batch makes up the calls of a batch. Most only read.
func (m *modelMaker) batch() (calls []tool.Call) {
	random := m.random
	m.writes = []int{0, 0, 0, 0, 0, 10, 40}[random.IntN(7)]
	for i := range random.IntN(11) {
		f := m.function(m.some(), 0)
		calls = append(calls, newCall(fmt.Sprint("id", random.IntN(5)), f.Name, f.Arguments))
		if i > 0 && random.IntN(4) == 0 {
			calls[i].Function = calls[random.IntN(i)].Function
		}
	}
	return calls
}

// some says of which tools the next call is to be.
func (m *modelMaker) some() []string {
	if m.random.IntN(100) < m.writes {
		return modelWriting
	}
	return modelReading
}

func (m *modelMaker) function(names []string, depth int) tool.Function {
	random, session := m.random, m.session
	name := names[random.IntN(len(names))]
	switch random.IntN(30) {
	case 0:
		return function("missing", "{}")
	case 1:
		return function(name, `{"name":`)
	case 2:
		return function("secret", `{"name":"shared"}`)
	case 3:
		return function("pure", `{}`) // n is missing
	}
	switch name {
	case "pure", "fails", "traps", "long", "hangs":
		return function(name, fmt.Sprintf(`{"n":%d}`, random.IntN(3)))
	case "stops":
		if depth > 0 || random.IntN(5) > 0 {
			return function("write", `{"name":"shared"}`)
		}
		return function(name, fmt.Sprintf(`{"session":%q}`, session))
	case "relay_read", "relay_write":
		return function(name, m.script(name == "relay_read", depth))
	case "read":
		if random.IntN(4) == 0 {
			name = "get"
		}
	}
	variable := "shared"
	if n := random.IntN(4); n > 0 {
		variable = fmt.Sprintf("%s_%d", session, n%2)
	}
	space := strings.Repeat(" ", random.IntN(2))
	return function(name, fmt.Sprintf(`{%s"name":%s%q}`, space, space, variable))
}

// script makes up the arguments of a relay.
func (m *modelMaker) script(only bool, depth int) string {
	var functions []tool.Function
	for range m.random.IntN(4) {
		names := modelReading
		if !only || m.random.IntN(10) == 0 {
			names = m.some()
		}
		f := m.function(names, depth+1)
		if depth == 2 && strings.HasPrefix(f.Name, "relay") {
			f = function("read", `{"name":"shared"}`)
		}
		functions = append(functions, f)
	}
	return calling(functions...)
}

// parseScript is the other way round.
func parseScript(arguments string) (functions []tool.Function) {
	var script struct{ Calls []tool.Function }
	if json.Unmarshal([]byte(arguments), &script) != nil {
		return nil
	}
	return script.Calls
}
