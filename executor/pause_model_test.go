package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

var pauseSeed = flag.Uint64("pause.seed", 0, "the seed of TestPauseModel's batches; 0: another one each time")

// TestPauseModel runs random batches with calls that the client runs and calls that must be approved,
// each resumed by whichever of several executors, from JSON as a rule, and compares them with an
// oracle that makes the calls one after the other. Every write increments one number of the batch,
// and every answer contains it, so that any other order would show.
func TestPauseModel(t *testing.T) {
	seed := *pauseSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	w := newPauseWorld(t)
	each := testsize.Of(40, 120)
	var workers sync.WaitGroup
	for i := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range each {
				p := &pausePlay{world: w, random: random, tenant: fmt.Sprint("t", i, ".", n)}
				if faults := p.play(t); len(faults) > 0 {
					t.Errorf("go test -run TestPauseModel ./executor -args -pause.seed %d\n%s\n%s", seed, p.script(), faults)
					return
				}
			}
		})
	}
	workers.Wait()
	assert.Greater(t, w.pauses, 2*each, "the test is of nothing otherwise")
	assert.Greater(t, w.resumedElsewhere, each)
}

// TestPauseModelNotices: an executor that got it wrong would be noticed.
func TestPauseModelNotices(t *testing.T) {
	for name, spoil := range map[string]func(*pausePlay){
		"a call that runs twice":   func(p *pausePlay) { p.world.run(p.tenant, p.report.Records[0].CallID, true) },
		"a write out of turn":      func(p *pausePlay) { p.report.Records[0].Result.Output = "9" },
		"a record too few":         func(p *pausePlay) { p.report.Records = p.report.Records[1:] },
		"records in another order": func(p *pausePlay) { slices.Reverse(p.report.Records) },
		"another kind":             func(p *pausePlay) { p.report.Records[0].Result.Kind = tool.Trap },
		"totals":                   func(p *pausePlay) { p.report.Totals.Calls++ },
		"recorded twice":           func(p *pausePlay) { p.world.recorded[p.report.Records[0].CallID]++ },
		"an event too few":         func(p *pausePlay) { p.events = p.events[1:] },
		"two ends":                 func(p *pausePlay) { p.events = append(p.events, p.events[len(p.events)-1]) },
		"no pause": func(p *pausePlay) {
			p.events = slices.DeleteFunc(p.events, func(e tool.Event) bool { return e.Type == tool.BatchPaused })
		},
		"a call that starts before it is approved": func(p *pausePlay) {
			at := slices.IndexFunc(p.events, func(e tool.Event) bool { return e.Type == tool.CallWaiting })
			moved := p.events[at]
			p.events = slices.Insert(slices.Delete(p.events, at, at+1), len(p.events)-2, moved)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pausePlay{world: newPauseWorld(t), random: rand.New(rand.NewPCG(1, 2)), tenant: "t"}
			p.calls = []tool.Call{newCall("1", "w", "{}"), newCall("2", "k", "{}"), newCall("3", "r", "{}")}
			require.Empty(t, p.play(t), "control")
			spoil(p)
			assert.NotEmpty(t, p.check())
		})
	}
}

// pauseWorld is the state of the model's tools: a number for each tenant, which is a batch.
type pauseWorld struct {
	executors []*executor.Executor

	mu                       sync.Mutex
	numbers                  map[string]int
	runs                     map[string]int // by call id
	recorded                 map[string]int
	pauses, resumedElsewhere int
}

func newPauseWorld(t *testing.T) *pauseWorld {
	w := &pauseWorld{numbers: map[string]int{}, runs: map[string]int{}, recorded: map[string]int{}}
	do := func(writes bool) run {
		return func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
			dawdle()
			return succeed(w.run(i.Tenant, i.CallID, writes)), nil
		}
	}
	tools := []registry.Tool{
		newFake(t, "r", readOnly, do(false)), newFake(t, "w", nil, do(true)), newClient(t, "c", readOnly), newClient(t, "k", nil),
		newGuarded(t, "a", "asks", readOnly, do(false)), newFake(t, "d", destructive, do(true)),
	}
	recorder := &ledger{hook: func(_ context.Context, entry executor.Entry) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.recorded[entry.Record.CallID]++
		return nil
	}}
	for range 3 {
		w.executors = append(w.executors, newExecutor(t, executor.Options{Rates: unlimited, Recorder: recorder}, tools...))
	}
	return w
}

// run is what a tool does, wherever it runs: it tells the number, after it has counted it up if it
// writes.
func (w *pauseWorld) run(tenant, callID string, writes bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[callID]++
	if writes {
		w.numbers[tenant]++
	}
	return fmt.Sprint(w.numbers[tenant])
}

// pausePlay is one batch from its start to its end.
type pausePlay struct {
	world     *pauseWorld
	random    *rand.Rand
	tenant    string
	calls     []tool.Call
	refusals  map[int]bool // by the place of the call: its approval is refused
	at        int          // the executor that has it
	session   *executor.Session
	approvals []tool.Approval // that the session keeps
	report    executor.Report
	events    []tool.Event
	steps     int
}

func (p *pausePlay) script() (script string) {
	for i, call := range p.calls {
		script += fmt.Sprint(call.Function.Name, call.Function.Arguments, p.refusals[i], " ")
	}
	return script
}

func (p *pausePlay) play(t *testing.T) (faults []string) {
	p.refusals = map[int]bool{}
	if p.calls == nil {
		names := []string{"r", "r", "r", "w", "c", "k", "a", "d", "missing"}
		texts := []string{"{}", "{}", "{}", `{"n":1}`, `{"n":1}`, `{"n":2}`, "{"}
		for i := range 1 + p.random.IntN(12) {
			p.calls = append(p.calls, newCall(fmt.Sprint(i), names[p.random.IntN(len(names))], texts[p.random.IntN(len(texts))]))
			p.refusals[i] = p.random.IntN(4) == 0
		}
	}
	p.enter(t)
	watcher := watch(t, p.world.executors[p.at], p.session)
	var err error
	p.report, err = p.world.executors[p.at].Execute(t.Context(), executor.Batch{Session: p.session, Calls: p.calls, Parallel: p.random.IntN(4)})
	if err != nil {
		return []string{err.Error()}
	}
	p.events = append(p.events, watcher.rest(t)...)
	for p.report.Status == executor.RequiresAction {
		if p.steps++; p.steps > 2*len(p.calls)+2 {
			return []string{"it never ends"}
		}
		if err := p.resume(t); err != nil {
			return []string{err.Error()}
		}
	}
	return p.check()
}

// enter begins a session with one of the executors.
func (p *pausePlay) enter(t *testing.T) {
	p.at = p.random.IntN(len(p.world.executors))
	p.session = newSession(t, p.world.executors[p.at], executor.SessionOptions{Tenant: p.tenant, Approvals: p.approvals})
}

// resume answers like a client and an approver, and resumes in any executor, at times twice at once.
func (p *pausePlay) resume(t *testing.T) error {
	state := *p.report.State
	if p.random.IntN(4) > 0 {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		if state = (executor.State{}); json.Unmarshal(text, &state) != nil {
			return errors.New("the state cannot be read")
		}
	}
	before := p.at
	if p.random.IntN(3) > 0 {
		p.approvals = nil
		if p.random.IntN(2) == 0 {
			p.approvals = p.session.Approvals()
		}
		p.enter(t)
	}
	p.world.mu.Lock()
	p.world.pauses++
	if p.at != before {
		p.world.resumedElsewhere++
	}
	p.world.mu.Unlock()
	r := executor.Resumption{State: state, Session: p.session, Parallel: p.random.IntN(4)}
	e := p.world.executors[p.at]
	if _, err := e.Resume(t.Context(), r); !errors.Is(err, executor.ErrMissingAnswer) {
		return fmt.Errorf("without answers: %w", err)
	}
	p.submit(&r)
	watcher := watch(t, e, p.session)
	reports, failures := make(chan executor.Report, 2), make(chan error, 2)
	both := 1 + p.random.IntN(2)
	var all sync.WaitGroup
	for range both {
		all.Go(func() {
			report, err := e.Resume(t.Context(), r)
			if err != nil {
				failures <- err
				return
			}
			reports <- report
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if !errors.Is(err, executor.ErrAlreadyResumed) {
			return err
		}
	}
	if len(reports) != 1 {
		return fmt.Errorf("%d resumed the same state", len(reports))
	}
	p.report = <-reports
	p.events = append(p.events, watcher.rest(t)...)
	return nil
}

// submit answers all that waits, in the order of the calls, as the client runs them.
func (p *pausePlay) submit(r *executor.Resumption) {
	for _, action := range r.State.Pending() {
		id := action.CallID
		if p.random.IntN(2) == 0 {
			id = action.Call.ID
		}
		if action.Type == tool.NeedsOutput {
			output := p.world.run(p.tenant, action.CallID, action.Tool == "k")
			r.Outputs = append(r.Outputs, tool.Answer{CallID: id, Result: tool.Result{Success: true, Output: output}})
			continue
		}
		var place int
		_, _ = fmt.Sscan(action.Call.ID, &place)
		a := approve(action)
		a.CallID, a.Approve, a.Reason = id, !p.refusals[place], "no"
		r.Approvals = append(r.Approvals, a)
	}
	p.random.Shuffle(len(r.Outputs), func(i, j int) { r.Outputs[i], r.Outputs[j] = r.Outputs[j], r.Outputs[i] })
}

// check compares the batch's results with those of its calls made one after the other.
func (p *pausePlay) check() (faults []string) {
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	if len(p.report.Records) != len(p.calls) {
		fault("%d records of %d calls", len(p.report.Records), len(p.calls))
		return faults
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	number := 0
	var totals tool.Totals
	for i, record := range p.report.Records {
		kind, output := p.oracle(i, &number)
		if record.Call != p.calls[i] || record.Result.Kind != kind || record.Result.Output != output || record.Result.Success != (kind == "") {
			fault("call %d is %q with %q; want %q with %q", i, record.Result.Kind, record.Result.Output, kind, output)
		}
		runs := 1
		if record.Skipped || record.Cached {
			runs = 0
		}
		if p.world.runs[record.CallID] != runs {
			fault("call %d ran %d times; want %d", i, p.world.runs[record.CallID], runs)
		}
		if p.world.recorded[record.CallID] != 1 {
			fault("call %d was recorded %d times", i, p.world.recorded[record.CallID])
		}
		executor.AddTotals(&totals, &record)
	}
	if totals != p.report.Totals {
		fault("totals %+v; want %+v", p.report.Totals, totals)
	}
	return append(faults, p.checkEvents()...)
}

// oracle returns the result of a call if calls are made one after the other.
func (p *pausePlay) oracle(i int, number *int) (kind tool.Kind, output string) {
	name := p.calls[i].Function.Name
	switch {
	case p.calls[i].Function.Arguments == "{":
		return tool.InvalidArguments, ""
	case name == "missing":
		return tool.UnknownTool, ""
	case (name == "a" || name == "d") && p.refusals[i]:
		return tool.Denied, ""
	case name == "w" || name == "k" || name == "d":
		*number++
	}
	return "", fmt.Sprint(*number)
}

// checkEvents checks that the batch and each of its calls live as [tool.EventType] says.
func (p *pausePlay) checkEvents() (faults []string) {
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	under, began, over := false, 0, 0
	waited, started, finished := map[string]int{}, map[string]int{}, map[string]int{}
	for i, event := range p.events {
		switch event.Type {
		case tool.BatchStarted, tool.BatchResumed:
			if under || (event.Type == tool.BatchStarted) != (i == 0) {
				fault("event %d: %s", i, event.Type)
			}
			under = true
			began++
		case tool.BatchPaused, tool.BatchFinished:
			if !under || (event.Type == tool.BatchFinished) != (i == len(p.events)-1) || event.Totals == nil || event.Totals.Calls != len(finished) {
				fault("event %d: %s", i, event.Type)
			}
			under = false
			over++
		case tool.CallWaiting:
			waited[event.CallID]++
			if started[event.CallID] > 0 || event.Action == nil || event.Action.CallID != event.CallID {
				fault("event %d: a call waits after its start", i)
			}
		case tool.CallStarted:
			started[event.CallID]++
		case tool.CallFinished:
			finished[event.CallID]++
			if started[event.CallID] != 1 || event.Record == nil {
				fault("event %d: an end without a start", i)
			}
		}
		if !under && event.CallID != "" {
			fault("event %d: %s while the batch is not in progress", i, event.Type)
		}
	}
	if under || began != over || began != p.steps+1 {
		fault("%d beginnings and %d ends, with %d pauses", began, over, p.steps)
	}
	for i, record := range p.report.Records {
		id := record.CallID
		needs := p.calls[i].Function.Name != "r" && p.calls[i].Function.Name != "w" && record.Result.Kind != tool.InvalidArguments && record.Result.Kind != tool.UnknownTool
		if started[id] != 1 || finished[id] != 1 || (waited[id] > 0) != needs {
			fault("call %d waited %d times, and has %d starts and %d ends", i, waited[id], started[id], finished[id])
		}
	}
	return faults
}
