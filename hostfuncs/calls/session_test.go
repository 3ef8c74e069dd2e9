package calls_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func search(t *testing.T) *calls.Permission {
	t.Helper()
	return permission(t, options{[]string{"search"}, manifests.Grants{Calls: grants("search")}})
}

// TestGuestSeesLess of a record than there is.
func TestGuestSeesLess(t *testing.T) {
	fuel := int64(5)
	whole := tool.Record{
		Call: tool.Call{ID: "theirs", Type: "function", Function: tool.Function{Name: "web_search", Arguments: `{"tenant":"x"}`}}, CallID: "1",
		Result: tool.Result{Success: true, Output: "found"}, Skipped: true, ExecutionTime: time.Second, Cached: true, Source: "0", Parent: "2",
		Repairs: []tool.Repair{{Path: "$"}}, Cuts: []tool.Cut{{Part: "output"}}, Denials: []tool.Denial{{Permission: "files"}},
		HostCalls: []tool.HostCall{{Kind: "files.open"}}, Log: "log", Usage: tool.Usage{Fuel: &fuel, HostCalls: 1},
	}
	s := search(t).Open(func(_ context.Context, call tool.Call) (tool.Record, error) {
		assert.Equal(t, tool.Call{Type: "function", Function: tool.Function{Name: "search", Arguments: `{"a":1}`}}, call)
		return whole, nil
	}, time.Now)
	got, err := s.Call(t.Context(), "search", `{"a":1}`)
	require.NoError(t, err)
	want := whole
	want.Call = tool.Call{Type: "function", Function: tool.Function{Name: "search", Arguments: `{"a":1}`}}
	want.Source, want.Repairs, want.HostCalls, want.Log, want.Usage, want.ExecutionTime = "", nil, nil, "", tool.Usage{}, 0
	assert.Equal(t, want, got)
}

func TestHostCallsTellWhatBecameOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var record tool.Record
		var err error
		s := search(t).Open(func(context.Context, tool.Call) (tool.Record, error) {
			time.Sleep(time.Second)
			return record, err
		}, time.Now)
		for _, test := range []struct {
			name   string
			result tool.Result
			err    error
			status string
			bytes  int64
		}{
			{"search", tool.Result{Success: true, Output: "12345"}, nil, "ok", 7},
			{"search", tool.Result{Error: "no", Kind: tool.Trap}, nil, "trap", 4},
			{"search", tool.Result{Kind: tool.Denied}, nil, "denied", 2},
			{"search", tool.Result{}, nil, "tool_failed", 2},
			{"search", tool.Result{}, &tool.Error{Kind: tool.Busy}, "busy", 2},
			{"search", tool.Result{}, errors.New("broken"), "internal", 2},
			{"other", tool.Result{}, nil, "denied", 2},
		} {
			record, err = tool.Record{Result: test.result}, test.err
			began := time.Now()
			_, _ = s.Call(t.Context(), test.name, "{}")
			all := s.Journal.HostCalls()
			want := tool.HostCall{Kind: "tools.call", Target: test.name, Bytes: test.bytes, Duration: time.Since(began), Allowed: test.name == "search", Status: test.status, Began: began}
			assert.Equal(t, want, all[len(all)-1])
		}
		assert.EqualValues(t, 7, s.Journal.Count())
		assert.Len(t, s.Journal.Denials(), 1)
	})
}

func TestCallsThatWereNotMade(t *testing.T) {
	cause := errors.New("at 10.0.0.1")
	for _, test := range []struct {
		err     error
		kind    error
		message string
	}{
		{&tool.Error{Kind: tool.Busy, Message: "too deep", Err: cause}, hostfuncs.ErrLimit, "too deep"},
		{fmt.Errorf("wrapped: %w", &tool.Error{Kind: tool.Busy}), hostfuncs.ErrLimit, "the call could not be made"},
		{&tool.Error{Kind: tool.Deadline, Message: "late"}, hostfuncs.ErrDeadline, "late"},
		{&tool.Error{Kind: tool.Cancelled, Message: "over"}, hostfuncs.ErrUnavailable, "over"},
		{&tool.Error{Kind: tool.Internal, Message: "at 10.0.0.1", Err: cause}, hostfuncs.ErrHost, "the call could not be made"},
		{cause, hostfuncs.ErrHost, "the call could not be made"},
	} {
		s := search(t).Open(func(context.Context, tool.Call) (tool.Record, error) { return tool.Record{}, test.err }, time.Now)
		for before := range 3 {
			_, err := s.Call(t.Context(), "search", "{}")
			var failure *hostfuncs.Error
			require.ErrorAs(t, err, &failure)
			require.ErrorIs(t, err, test.kind)
			require.ErrorIs(t, err, test.err, "the operator can see the cause")
			assert.Equal(t, test.message, failure.Message)
			assert.NotContains(t, err.Error(), "10.0.0.1")
			if test.kind == hostfuncs.ErrLimit {
				assert.EqualValues(t, before, failure.Value)
			}
		}
	}
	_, err := search(t).Open(nil, time.Now).Call(t.Context(), "search", "{}")
	require.ErrorIs(t, err, hostfuncs.ErrUnavailable)
	_, err = search(t).Open(nil, time.Now).Call(t.Context(), "other", "{}")
	require.ErrorIs(t, err, hostfuncs.ErrDenied)
	assert.ErrorIs(t, hostfuncs.ErrDeadline, context.DeadlineExceeded)
}

func TestPanicIsNoted(t *testing.T) {
	s := search(t).Open(func(context.Context, tool.Call) (tool.Record, error) { panic("a bug") }, time.Now)
	assert.Panics(t, func() { _, _ = s.Call(t.Context(), "search", "{}") })
	require.Len(t, s.Journal.HostCalls(), 1)
	assert.Equal(t, "internal", s.Journal.HostCalls()[0].Status)
}

// TestWhatIsKeptIsBounded: the first receipts and the last stay.
func TestWhatIsKeptIsBounded(t *testing.T) {
	s := search(t).Open(nil, time.Now)
	for i := range 1000 {
		_, err := s.Call(t.Context(), fmt.Sprint("denied_", i), "{}")
		require.ErrorIs(t, err, hostfuncs.ErrDenied)
	}
	_, err := s.Call(t.Context(), "denied_0", "{}")
	require.Error(t, err)
	assert.EqualValues(t, 1001, s.Journal.Count())
	assert.Len(t, s.Journal.HostCalls(), tool.MaxHostCalls)
	denials := s.Journal.Denials()
	require.Len(t, denials, 32)
	assert.Equal(t, "denied_1", denials[0].Value)
	assert.Equal(t, "denied_0", denials[31].Value, "the most recent last")
}
