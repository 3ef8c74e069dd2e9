package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackTwoRuntimes: callers that hold the only places of two runtimes, and call into the
// other's, do not wait for each other.
func TestAttackTwoRuntimes(t *testing.T) {
	households := [2]*household{}
	for i := range households {
		households[i] = newHousehold(t, Options{Running: 1})
	}
	var both sync.WaitGroup
	both.Add(len(households))
	for i, h := range households {
		outer := h.add(t, "outer", "limits: {timeout: 5s}", "meet", "leaf")
		leaf := households[1-i].add(t, "leaf_of_the_other", "")
		require.NoError(t, outer.Prepare(t.Context()))
		require.NoError(t, leaf.Prepare(t.Context()))
		h.tools["leaf"] = leaf
		h.tools["meet"] = goTool(func(context.Context, tool.Invocation) (tool.Outcome, error) {
			both.Done()
			both.Wait()
			return tool.Outcome{Result: tool.Result{Success: true}}, nil
		})
	}
	var group sync.WaitGroup
	for _, h := range households {
		group.Go(func() {
			outcome, err := h.call(t, "outer", steps(asks("meet"), asks("leaf", echoes("here"))))
			if assert.NoError(t, err, outcome.Result.Error) {
				assert.Contains(t, string(outcome.Result.Data), "here")
			}
		})
	}
	group.Wait()
	for _, h := range households {
		assert.Zero(t, inside(h.runtime.gate), "every place was given back")
	}
}

// TestAttackLongArguments: arguments that are too long are refused before they are parsed.
func TestAttackLongArguments(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "other")
	longest := 0
	h.tools["other"] = goTool(func(_ context.Context, made tool.Invocation) (tool.Outcome, error) {
		text, err := made.Arguments.MarshalJSON()
		longest = max(longest, len(text))
		return tool.Outcome{Result: tool.Result{Success: true}}, err
	})
	for length, fits := range map[int]bool{255 << 10: true, 257 << 10: false, 900 << 10: false} {
		longest = 0
		outcome := h.mustCall(t, "outer", steps(`{"do":"call","name":"other","arguments":{"a":"`+strings.Repeat("x", length)+`"}}`))
		reply := decode[callReply](t, results(t, outcome)[0])
		if fits {
			assert.True(t, reply.Success)
			assert.Greater(t, longest, length)
			continue
		}
		require.NotNil(t, reply.Failure)
		assert.Equal(t, "request_bytes", reply.Failure.Limit)
		assert.EqualValues(t, 256<<10, reply.Failure.Value)
		assert.Zero(t, longest)
	}
}

// TestAttackLongAnswers: an answer that is longer than any guest's is not written down, which is
// the host's work and would put off the end of the caller by seconds. Control characters take
// seven times their room.
func TestAttackLongAnswers(t *testing.T) {
	const timeout = 300 * time.Millisecond
	h := newHousehold(t, Options{})
	m := named(t, "outer", requesting(`{"name":"other","arguments":{}}`, 1000, 1), fmt.Sprintf("limits: {timeout: %s}\npermissions: {tools: [other]}", timeout))
	require.NoError(t, h.load(t, m, calling("other")).Prepare(t.Context()))
	long := tool.Result{Success: true, Output: strings.Repeat("\x01", 64<<20)}
	h.tools["other"] = answers(long)
	began := time.Now()
	_, _ = h.call(t, "outer", "{}")
	assert.Less(t, time.Since(began), timeout+time.Second)
	assert.NotEmpty(t, h.records, "control: the calls were made")
}

// TestAttackLongAnswerIsALimit: the guest gets the status for a limit.
func TestAttackLongAnswerIsALimit(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "other")
	h.tools["other"] = answers(tool.Result{Success: true, Output: strings.Repeat("a", 8<<20+1)})
	outcome := h.mustCall(t, "outer", steps(asks("other")))
	failure := decode[callReply](t, results(t, outcome)[0]).Failure
	require.NotNil(t, failure)
	assert.Equal(t, "response_bytes", failure.Limit)
	assert.EqualValues(t, 8<<20, failure.Value)
	assert.Len(t, h.records, 1, "control: the call was made")
}

// TestAttackTimesInRecords: how long a tool took is not told to its caller, not by the length of
// the record either: equal calls take equal fuel.
func TestAttackTimesInRecords(t *testing.T) {
	h := newHousehold(t, Options{})
	m := named(t, "outer", measuring(`{"name":"leaf","arguments":{}}`), "permissions: {tools: [leaf]}\nlimits: {fuel: 1000000}")
	h.load(t, m, calling("leaf"))
	output := ""
	h.tools["leaf"] = goTool(func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true, Output: output}}, nil
	})
	used := func(took time.Duration) int64 {
		h.took = took
		outcome := h.mustCall(t, "outer", "{}")
		return *outcome.Usage.Fuel
	}
	first := used(0)
	for _, took := range []time.Duration{time.Second, 123456789, time.Nanosecond, time.Hour + 1} {
		assert.Equal(t, first, used(took), "after %s", took)
	}
	output = "longer"
	assert.Greater(t, used(0), first, "control: fuel tells the length")
}

// measuring is a command that makes a call and runs a loop for as many rounds as the response has
// bytes.
func measuring(request string) string {
	count := "\x21\x00\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b" // local 0 = length; loop: local 0 -= 1; br_if 0
	return requestingThen(request, "\xa7"+count)                        // the lower half
}

// TestAttackDenyAndAlias: a denial is for one name, so an operator who denies a tool has to deny
// its granted aliases too.
func TestAttackDenyAndAlias(t *testing.T) {
	h := newHousehold(t, Options{})
	grants := calling("file_delete", "rm")
	for _, test := range []struct {
		denied  []string
		reached int
	}{{nil, 2}, {[]string{"file_delete"}, 1}, {[]string{"file_delete", "rm"}, 0}} {
		grants.Deny = nil
		for _, name := range test.denied {
			grants.Deny = append(grants.Deny, manifests.Deny{Call: name})
		}
		h.load(t, named(t, "outer", callprobe, "permissions: {tools: [file_delete, rm]}"), grants)
		h.tools["file_delete"] = h.add(t, "leaf", "")
		h.tools["rm"], h.records = h.tools["file_delete"], nil
		h.mustCall(t, "outer", steps(asks("file_delete"), asks("rm")))
		assert.Len(t, h.records, test.reached, "%v", test.denied)
	}
}
