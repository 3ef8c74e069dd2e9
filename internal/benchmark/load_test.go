package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// fake is a session whose callers answer with what answer returns.
type fake struct {
	answer       func() ([]byte, error)
	takes        time.Duration
	open, closed atomic.Int32
}

func (f *fake) caller(context.Context) (caller, error) {
	f.open.Add(1)
	return fakeCaller{f}, nil
}

func (f *fake) close(context.Context) error { return nil }

type fakeCaller struct{ *fake }

func (c fakeCaller) call(context.Context, input) ([]byte, error) {
	time.Sleep(c.takes)
	return c.answer()
}

func (c fakeCaller) close(context.Context) error {
	c.closed.Add(1)
	return nil
}

func right() ([]byte, error) { return answerOf(1), nil }

func TestCompete(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, err := newInput(0)
	require.NoError(t, err)
	fast, slow := &fake{answer: right, takes: time.Millisecond}, &fake{answer: right, takes: 20 * time.Millisecond}
	schemes := []scheme{{Native, fast}, {ExtismFresh, slow}}
	rows, err := compete(t.Context(), schemes, in, 3, 2, 100*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	for i, f := range []*fake{fast, slow} {
		assert.Equal(t, int32(3), f.open.Load())
		assert.Equal(t, int32(3), f.closed.Load(), "every caller is closed")
		assert.Equal(t, 3, rows[i].Callers)
		assert.Equal(t, len(in.expected.Input), rows[i].Payload)
		assert.GreaterOrEqual(t, rows[i].P50, microseconds(f.takes))
		assert.GreaterOrEqual(t, rows[i].P99, rows[i].P50)
		assert.Positive(t, rows[i].CallsPerSecond)
		assert.LessOrEqual(t, rows[i].CallsPerSecond, 3/f.takes.Seconds())
	}
	assert.Equal(t, []Scheme{Native, ExtismFresh}, []Scheme{rows[0].Scheme, rows[1].Scheme})
	assert.Less(t, *rows[0].Ratio.ExtismFresh, 1.0)
	assert.InDelta(t, 1, *rows[1].Ratio.ExtismFresh, 1e-9)
	assert.Nil(t, rows[1].Ratio.Process, "nothing to compare with")
}

func TestCompeteFails(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		answer func() ([]byte, error)
		want   error
	}{
		"wrong answer": {func() ([]byte, error) { return answerOf(2), nil }, guests.ErrAnswer},
		"no answer":    {func() ([]byte, error) { return nil, broken }, broken},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			in, err := newInput(0)
			require.NoError(t, err)
			f := &fake{answer: test.answer}
			_, err = compete(t.Context(), []scheme{{Caisson, f}}, in, 2, 1, time.Millisecond)
			require.ErrorIs(t, err, test.want)
			require.Contains(t, err.Error(), "caisson")
			require.Equal(t, f.open.Load(), f.closed.Load())
		})
	}
}

func TestCompeteEndsWithItsContext(t *testing.T) {
	in, err := newInput(0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{takes: time.Millisecond}
	f.answer = func() ([]byte, error) { cancel(); return right() }
	_, err = compete(ctx, []scheme{{Caisson, f}}, in, 1, 1, time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, test := range []struct {
		sorted  []time.Duration
		percent int
		want    time.Duration
	}{
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred[:1], 50, 1}, {hundred[:1], 99, 1},
		{hundred[:2], 50, 1}, {hundred[:3], 50, 2}, {hundred[:10], 99, 10},
	} {
		assert.Equal(t, test.want, percentile(test.sorted, test.percent), "%d %% of %d", test.percent, len(test.sorted))
	}
}

// answerOf is the right answer to the shortest call, as the given call of an instance.
func answerOf(call int) []byte { return fmt.Appendf(nil, `{"upper":"","sum":1000,"calls":%d}`, call) }

func TestChecker(t *testing.T) {
	wrong := []byte(`{"upper":"","sum":1001,"calls":1}`)
	for name, test := range map[string]struct {
		reused  bool
		answers [][]byte
		right   int // how many answers are, before the first wrong one
	}{
		"fresh":                        {false, [][]byte{answerOf(1), answerOf(1), answerOf(1)}, 3},
		"fresh, written otherwise":     {false, [][]byte{answerOf(1), []byte(` {"calls": 1, "sum": 1000, "upper": ""}`)}, 2},
		"not fresh":                    {false, [][]byte{answerOf(1), answerOf(2)}, 1},
		"wrong at first":               {false, [][]byte{wrong}, 0},
		"wrong later":                  {false, [][]byte{answerOf(1), wrong}, 1},
		"reused":                       {true, [][]byte{answerOf(1), answerOf(2), answerOf(3)}, 3},
		"fresh though reuse is meant":  {true, [][]byte{answerOf(1), answerOf(1)}, 1},
		"reused and wrong":             {true, [][]byte{answerOf(1), []byte(`{"upper":"","sum":1001,"calls":2}`)}, 1},
		"reused and counting no calls": {true, [][]byte{[]byte(`{"upper":"","sum":1000}`)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := checker{expected: guests.NewCall(0)}
			for i, answer := range test.answers {
				call := 1
				if test.reused {
					call += i
				}
				err := c.check(answer, call)
				if i < test.right {
					require.NoError(t, err, "%s", answer)
				} else {
					require.ErrorIs(t, err, guests.ErrAnswer, "%s", answer)
				}
			}
		})
	}
}
