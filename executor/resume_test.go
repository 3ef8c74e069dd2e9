package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestResumeMistakes: each mistake of a submission has a separate error, nothing runs, and the
// state can be tried again.
func TestResumeMistakes(t *testing.T) {
	var ran []string
	e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
	session := newSession(t, e, executor.SessionOptions{Tenant: "t", Context: map[string]string{"k": "v"}})
	begun := func(t *testing.T) executor.Resumption {
		report := paused(t, e, session, newCall("same", "k", "{}"), newCall("same", "k", "{}"), newCall("third", "d", "{}"))
		require.Len(t, report.Pending, 3)
		return answered(session, *report.State)
	}
	other := newExecutor(t, executor.Options{})
	tests := map[string]struct {
		change func(*executor.Resumption)
		want   []error
	}{
		"an unknown call":    {func(r *executor.Resumption) { r.Outputs = append(r.Outputs, tool.Answer{CallID: "who"}) }, []error{executor.ErrUnknownCall}},
		"an ambiguous id":    {func(r *executor.Resumption) { r.Outputs[0].CallID = "same" }, []error{executor.ErrUnknownCall, executor.ErrMissingAnswer}},
		"a missing output":   {func(r *executor.Resumption) { r.Outputs = r.Outputs[:1] }, []error{executor.ErrMissingAnswer}},
		"a missing approval": {func(r *executor.Resumption) { r.Approvals = nil }, []error{executor.ErrMissingAnswer}},
		"nothing":            {func(r *executor.Resumption) { r.Outputs, r.Approvals = nil, nil }, []error{executor.ErrMissingAnswer}},
		"a doubled output":   {func(r *executor.Resumption) { r.Outputs = append(r.Outputs, r.Outputs[0]) }, []error{executor.ErrDoubledAnswer}},
		"a doubled approval by another id": {func(r *executor.Resumption) {
			r.Approvals = append(r.Approvals, tool.Approval{CallID: "third", Approve: true, Fingerprint: r.Approvals[0].Fingerprint})
		}, []error{executor.ErrDoubledAnswer}},
		"an output for an approval": {func(r *executor.Resumption) {
			r.Outputs, r.Approvals = append(r.Outputs, tool.Answer{CallID: "third"}), nil
		}, []error{executor.ErrWrongAnswer}},
		"an approval for an output": {func(r *executor.Resumption) {
			r.Approvals, r.Outputs = append(r.Approvals, tool.Approval{CallID: r.Outputs[0].CallID, Approve: true}), r.Outputs[1:]
		}, []error{executor.ErrWrongAnswer}},
		"data that is not JSON": {func(r *executor.Resumption) { r.Outputs[0].Result.Data = json.RawMessage("{") }, []error{executor.ErrWrongAnswer}},
		"a scope that is none":  {func(r *executor.Resumption) { r.Approvals[0].Scope = "ever" }, []error{executor.ErrWrongAnswer}},
		"a time without one":    {func(r *executor.Resumption) { r.Approvals[0].Scope = tool.ApproveFor }, []error{executor.ErrWrongAnswer}},
		"once for a time":       {func(r *executor.Resumption) { r.Approvals[0].For = time.Hour }, []error{executor.ErrWrongAnswer}},
		"no fingerprint":        {func(r *executor.Resumption) { r.Approvals[0].Fingerprint = "" }, []error{executor.ErrNotApproved}},
		"another fingerprint":   {func(r *executor.Resumption) { r.Approvals[0].Fingerprint = strings.Repeat("0", 64) }, []error{executor.ErrNotApproved}},
		"another tenant": {func(r *executor.Resumption) {
			r.Session = newSession(t, e, executor.SessionOptions{Context: map[string]string{"k": "v"}})
		}, []error{executor.ErrWrongSession}},
		"another context value": {func(r *executor.Resumption) {
			r.Session = newSession(t, e, executor.SessionOptions{Tenant: "t", Context: map[string]string{"k": "w"}})
		}, []error{executor.ErrWrongSession}},
		"no session":         {func(r *executor.Resumption) { r.Session = nil }, []error{executor.ErrWrongSession}},
		"another executor's": {func(r *executor.Resumption) { r.Session = newSession(t, other, executor.SessionOptions{}) }, []error{executor.ErrInvalidBatch}},
		"a negative time":    {func(r *executor.Resumption) { r.Timeout = -1 }, []error{executor.ErrInvalidBatch}},
		"no state":           {func(r *executor.Resumption) { r.State = executor.State{} }, []error{executor.ErrInvalidState}},
		"several at once": {func(r *executor.Resumption) {
			r.Outputs = []tool.Answer{{CallID: "who"}, r.Outputs[0], r.Outputs[0]}
			r.Approvals[0].Fingerprint = "x"
		}, []error{executor.ErrUnknownCall, executor.ErrDoubledAnswer, executor.ErrMissingAnswer, executor.ErrNotApproved}},
	}
	all := []error{
		executor.ErrInvalidBatch, executor.ErrInvalidState, executor.ErrWrongSession, executor.ErrUnknownCall, executor.ErrMissingAnswer,
		executor.ErrDoubledAnswer, executor.ErrWrongAnswer, executor.ErrNotApproved, executor.ErrAlreadyResumed,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ran = nil
			right := begun(t)
			wrong := right
			wrong.Outputs, wrong.Approvals = slices.Clone(right.Outputs), slices.Clone(right.Approvals)
			test.change(&wrong)
			report, err := e.Resume(t.Context(), wrong)
			var typed *executor.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, "resume", typed.Op)
			for _, sentinel := range all {
				assert.Equal(t, slices.Contains(test.want, sentinel), errors.Is(err, sentinel), "%v: %v", sentinel, err)
			}
			if name == "an ambiguous id" {
				assert.ErrorContains(t, err, `"same" is the id of 2 calls that wait; use their call ids`)
			}
			assert.Zero(t, report)
			assert.Empty(t, ran)
			done, err := e.Resume(t.Context(), right)
			require.NoError(t, err, "the state can be tried again")
			assertCompleted(t, done)
			assert.Equal(t, []string{"d"}, ran)
		})
	}
}

// TestResumeLate: a state is resumed once, and not after its time.
func TestResumeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		e := newExecutor(t, executor.Options{Pause: executor.Pause{Expire: time.Hour}}, orderTools(t, &ran)...)
		session := newSession(t, e, executor.SessionOptions{})
		report := paused(t, e, session, newCall("1", "d", "{}"))
		assert.Equal(t, time.Now().Add(time.Hour).UTC(), report.State.Expires())
		time.Sleep(time.Hour - 1)
		_ = resume(t, e, answered(session, *report.State))
		require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(session, stored(t, report.State)))), executor.ErrAlreadyResumed)
		report = paused(t, e, session, newCall("1", "d", "{}"))
		time.Sleep(time.Hour)
		require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(session, *report.State))), executor.ErrExpired)
		assert.Equal(t, []string{"d"}, ran)
	})
}

// TestResumeWithOtherTools: a batch that resumes may call what its session allows by then, and so may new batches. An
// empty list allows nothing, and nil everything.
func TestResumeWithOtherTools(t *testing.T) {
	var allowed []string
	for _, test := range []struct {
		allowed []string
		runs    bool
	}{{nil, true}, {[]string{"d"}, true}, {[]string{}, false}, {[]string{"k"}, false}} {
		var ran []string
		e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
		session := newSession(t, e, executor.SessionOptions{AllowedNow: func() ([]string, error) { return allowed, nil }})
		allowed = []string{"d", "k"}
		report := paused(t, e, session, newCall("1", "d", "{}"))
		allowed = test.allowed
		resumed := resume(t, e, answered(session, *report.State))
		assert.Equal(t, test.runs, resumed.Records[0].Result.Success, test.allowed)
		assert.Equal(t, test.runs, len(ran) == 1, test.allowed)
		again := noerr.Get(e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("2", "d", "{}")}}))(t)
		assert.Equal(t, test.runs, len(again.Pending) == 1, test.allowed)
	}
}

// TestResumeAtOnce: of many that resume the same state at a time, one does.
func TestResumeAtOnce(t *testing.T) {
	var ran []string
	e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "d", "{}"))
	var mu sync.Mutex
	var all sync.WaitGroup
	late, done := 0, 0
	for range 16 {
		all.Go(func() {
			_, err := e.Resume(t.Context(), answered(session, *report.State))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, executor.ErrAlreadyResumed) {
				late++
			} else if assert.NoError(t, err) {
				done++
			}
		})
	}
	all.Wait()
	assert.Equal(t, 1, done)
	assert.Equal(t, 15, late)
	assert.Len(t, ran, 1)
}

// claimer is a table that executors share.
type claimer struct {
	mu    sync.Mutex
	taken map[string]bool
	fail  error
}

func (c *claimer) Claim(_ context.Context, key string, _ time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return false, c.fail
	}
	taken := c.taken[key]
	c.taken[key] = true
	return !taken, nil
}

// TestClaim: executors that share claims resume a state once; where claiming fails, it can be tried
// again. Control: without, each resumes it.
func TestClaim(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint(shared), func(t *testing.T) {
			claims := &claimer{taken: map[string]bool{}}
			options := executor.Options{}
			if shared {
				options.Pause.Claim = claims
			}
			var ran []string
			tools := orderTools(t, &ran)
			first, second := newExecutor(t, options, tools...), newExecutor(t, options, tools...)
			report := paused(t, first, nil, newCall("1", "d", "{}"))
			resume := func(e *executor.Executor) error {
				_, err := e.Resume(t.Context(), answered(newSession(t, e, executor.SessionOptions{}), stored(t, report.State)))
				return err
			}
			if shared {
				claims.fail = errors.New("the table is away")
				require.ErrorIs(t, resume(first), claims.fail)
				claims.fail = nil
			}
			require.NoError(t, resume(first))
			require.ErrorIs(t, resume(first), executor.ErrAlreadyResumed)
			if shared {
				require.ErrorIs(t, resume(second), executor.ErrAlreadyResumed)
				assert.Len(t, ran, 1)
				return
			}
			require.NoError(t, resume(second))
			assert.Len(t, ran, 2)
		})
	}
}
