package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

// TestStreamModel runs hundreds, or thousands, of random batches of tools that talk, fail, crash, hang, are
// hidden, call other tools, ask, or are the client's, for readers that are quick, slow or late, and
// checks everything that the streams show.
func TestStreamModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	sessions, each := 4, testsize.Of(30, 150)
	for name, test := range streamModelOptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := newTalkWorld()
			e := newExecutor(t, test.options, world.tools(t)...)
			var group sync.WaitGroup
			var sum streamSum
			for i := range sessions {
				player := &streamPlayer{
					world: world, executor: e, room: test.room, session: newSession(t, e, executor.SessionOptions{}),
					random: rand.New(rand.NewPCG(seed, uint64(i))), sum: &sum,
				}
				group.Go(func() {
					for range each {
						player.play(t)
					}
				})
			}
			group.Wait()
			if t.Failed() {
				t.Logf("go test -run 'TestStreamModel/%s' ./executor -args -model.seed %d", name, seed)
			}
			sum.assert(t, test.room > 0)
		})
	}
}

type streamModelOption struct {
	options executor.Options
	room    int64 // of the streams; zero for the default, which no batch fills
}

func streamModelOptions() map[string]streamModelOption {
	base := executor.Options{Rates: unlimited, Breaker: executor.Breaker{Off: true}}
	alone, fresh := base, base
	alone.Limits, alone.Parallel = executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}, 2
	fresh.Reuse.Scope = executor.ReuseNone
	return map[string]streamModelOption{
		"usual":        {options: base},
		"one place":    {options: alone},
		"nothing kept": {options: fresh},
		"little room":  {options: base, room: 5000},
	}
}

// streamSum counts the events of a run of the model.
type streamSum struct{ events, outputs, lost, paused, failed atomic.Int64 }

func (s *streamSum) add(w watched) {
	s.events.Add(int64(len(w.events)))
	for _, event := range w.events {
		s.lost.Add(int64(event.Lost))
		switch {
		case event.Type == tool.CallOutput:
			s.outputs.Add(1)
		case event.Type == tool.BatchPaused:
			s.paused.Add(1)
		case event.Record != nil && !event.Record.Result.Success:
			s.failed.Add(1)
		}
	}
}

// assert checks that the test was of something.
func (s *streamSum) assert(t *testing.T, lossy bool) {
	t.Helper()
	assert.Greater(t, s.events.Load(), int64(600))
	assert.Greater(t, s.outputs.Load(), int64(240))
	assert.Greater(t, s.failed.Load(), int64(20))
	assert.Greater(t, s.paused.Load(), int64(3))
	assert.Equal(t, lossy, s.lost.Load() > 0)
}

// streamPlayer plays batches of one session.
type streamPlayer struct {
	world    *talkWorld
	executor *executor.Executor
	session  *executor.Session
	random   *rand.Rand
	room     int64
	sum      *streamSum
}

// play runs one batch to its end, through all of its pauses, and checks what its streams show.
func (p *streamPlayer) play(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls := p.calls(p.world.stopping(stop))
	var timeout time.Duration
	if slices.ContainsFunc(calls, func(c tool.Call) bool { return strings.Contains(c.Function.Arguments, `h"`) }) || p.random.IntN(20) == 0 {
		timeout = time.Duration(100+p.random.IntN(2000)) * time.Microsecond
	}
	done := p.watch(t, func(stream *executor.Stream) (executor.Report, error) {
		return p.executor.Execute(ctx, executor.Batch{Session: p.session, Calls: calls, Stream: stream, Timeout: timeout})
	})
	for done.report.Status == executor.RequiresAction && !t.Failed() {
		before := map[string]bool{}
		for _, record := range done.report.Records {
			before[record.CallID] = true
		}
		resumption := p.answer(done.report)
		done = p.watch(t, func(stream *executor.Stream) (executor.Report, error) {
			resumption.Stream = stream
			return p.executor.Resume(t.Context(), resumption)
		}, before)
	}
}

// answer answers all that a batch waits for.
func (p *streamPlayer) answer(report executor.Report) executor.Resumption {
	resumption := executor.Resumption{State: *report.State, Session: p.session, Timeout: time.Second}
	for _, action := range report.Pending {
		if action.Type == tool.NeedsOutput {
			resumption.Outputs = append(resumption.Outputs, tool.Answer{CallID: action.CallID, Result: tool.Result{Success: true, Output: "answered"}})
			continue
		}
		resumption.Approvals = append(resumption.Approvals, tool.Approval{CallID: action.CallID, Approve: p.random.IntN(3) > 0, Fingerprint: action.Fingerprint})
	}
	return resumption
}

// watch has something run while its stream is read, and checks the stream. before are the calls
// that have ended before.
func (p *streamPlayer) watch(t *testing.T, execute func(*executor.Stream) (executor.Report, error), before ...map[string]bool) watched {
	stream, err := executor.NewStream(executor.StreamOptions{Bytes: p.room})
	if !assert.NoError(t, err) {
		return watched{}
	}
	w := watched{said: p.world.saidBy, hidden: isHiddenTalk, writes: isWritingTalk}
	if len(before) > 0 {
		w.before = before[0]
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		report, err := execute(stream)
		assert.NoError(t, err)
		w.report = report
	}()
	events := readStream(t, stream, p.random.IntN(4), ended)
	<-ended
	if t.Failed() {
		return w
	}
	w.events = events
	if !assert.Empty(t, w.check()) {
		t.Log(show(w.events))
	}
	p.sum.add(w)
	return w
}

func isHiddenTalk(name string) bool { return name == "whisper" || name == "secretly" }
func isWritingTalk(name string) bool {
	return name == "write" || name == "asks" || name == "client_write"
}

// readStream reads a stream to its end, in one of four ways.
func readStream(t testing.TB, stream *executor.Stream, way int, ended <-chan struct{}) (events []tool.Event) {
	const (
		slow = 1 + iota
		late
		stopping
	)
	if way == late {
		<-ended
	}
	for {
		event, err := stream.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return events
		}
		if !assert.NoError(t, err) {
			return events
		}
		events = append(events, event)
		switch {
		case way == slow:
			time.Sleep(20 * time.Microsecond)
		case way == stopping && len(events) == 3:
			<-ended
		}
	}
}

// calls makes up the calls of a batch.
func (p *streamPlayer) calls(number string) (calls []tool.Call) {
	names := []string{"talk", "talk", "talk", "live", "live", "relay", "relay", "whisper", "missing", "write", "secretly", "asks", "client_read", "client_write"}
	if p.random.IntN(3) > 0 {
		names = names[:8]
	}
	for i := range p.random.IntN(10) {
		call := talking(fmt.Sprint("id", i), names[p.random.IntN(len(names))], p.script())
		if p.random.IntN(100) == 0 {
			call.Function.Arguments = fmt.Sprintf(`{"script":"ts","batch":%q}`, number)
		}
		if i > 0 && p.random.IntN(5) == 0 {
			call.Function = calls[p.random.IntN(i)].Function
		}
		calls = append(calls, call)
	}
	return calls
}

func (p *streamPlayer) script() string {
	const says, ends = "tttTjpppiiIzzcb", "fxgdh"
	var script []byte
	for range p.random.IntN(12) {
		script = append(script, says[p.random.IntN(len(says))])
	}
	switch p.random.IntN(25) {
	case 0:
		script = append(script, ends[p.random.IntN(len(ends))])
	case 1:
		script = append(script, 'f')
	}
	return string(script)
}

// show writes events down for a test's log.
func show(events []tool.Event) string {
	var text strings.Builder
	for _, event := range events {
		fmt.Fprint(&text, "\n", event.Type, " ", event.Tool, " ", event.CallID, " lost ", event.Lost)
		if event.Emission != nil {
			fmt.Fprintf(&text, " %s %.20q", event.Emission.Type, event.Emission.Text)
		}
	}
	return text.String()
}
