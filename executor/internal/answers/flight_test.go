package answers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/internal/noerr"
)

var one = sized{id: 1, size: 1}

// returned is the state of a caller that has its answer.
func returned(answer sized, from answers.Source) state {
	return state{returned: true, answer: answer, from: from}
}

// bubble runs a test with a cache, and callers that wait until they are told.
func bubble(t *testing.T, test func(t *testing.T, c *cache)) {
	synctest.Test(t, func(t *testing.T) { test(t, newCache(t, 100)) })
}

// TestEachAsksAfterAFailure: all callers that waited ask at once, and no caller waits for them.
func TestEachAsksAfterAFailure(t *testing.T) {
	for name, failure := range map[string]outcome{
		"not to be given again": {answer: one},
		"panic":                 {how: "panic"},
		"goexit":                {how: "goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cache) {
				first := ask(t, c, question("k", "A"))
				synctest.Wait()
				second, third := ask(t, c, question("k", "A")), ask(t, c, question("k", "A"))
				synctest.Wait()
				first.finish <- failure
				synctest.Wait()
				switch failure.how {
				case "panic":
					assert.Equal(t, state{panicked: "ask"}, first.state, "it passes on")
				case "goexit":
					assert.Equal(t, state{exited: true}, first.state, "it passes on")
				default:
					assert.Equal(t, returned(one, answers.Asked), first.state)
				}
				require.True(t, second.state.asks)
				require.True(t, third.state.asks)
				require.False(t, has(c, "k"))

				newcomer := ask(t, c, question("k", "A"))
				synctest.Wait()
				require.True(t, newcomer.state.asks, "it must not wait for one that asks again")

				two := sized{2, 2}
				third.finish <- outcome{answer: two, keep: true}
				synctest.Wait()
				assert.Equal(t, returned(two, answers.Asked), third.state)
				kept, ok := c.Get("k")
				assert.True(t, ok)
				assert.Equal(t, two, kept)

				second.finish <- outcome{answer: one}
				newcomer.finish <- outcome{answer: one}
				synctest.Wait()
				assert.Equal(t, returned(one, answers.Asked), second.state)
				assert.Equal(t, returned(one, answers.Asked), newcomer.state)
				kept, _ = c.Get("k")
				assert.Equal(t, two, kept, "what may not be given again does not replace it")
			})
		})
	}
}

func TestWaiterStopsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *cache) {
		first := ask(t, c, question("k", "A"))
		synctest.Wait()
		patient := ask(t, c, question("k", "A"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		answer, from, err := c.Do(ctx, question("k", "A"), answers.Ready{}, mustNotAsk(t))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		assert.Zero(t, answer)
		assert.Zero(t, from)

		_, _, err = c.Do(ctx, question("k", "A"), answers.Ready{}, mustNotAsk(t))
		require.ErrorIs(t, err, context.DeadlineExceeded, "it had ended before")

		first.finish <- outcome{answer: one, keep: true}
		synctest.Wait()
		assert.Equal(t, returned(one, answers.Shared), patient.state)
		answer, from, err = c.Do(ctx, question("k", "A"), answers.Ready{}, mustNotAsk(t))
		require.NoError(t, err, "there is nothing to wait for")
		assert.Equal(t, one, answer)
		assert.Equal(t, answers.Kept, from)
	})
}

// ended is a context whose Err is set although its Done is not closed.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// TestEndedWaiterDoesNotAsk: of a context and a failed flight that end together, the context
// decides, whichever is noticed first.
func TestEndedWaiterDoesNotAsk(t *testing.T) {
	for name, test := range map[string]struct {
		keep bool
		want error
	}{
		"failure": {false, context.Canceled},
		"answer":  {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cache) {
				first := ask(t, c, question("k"))
				synctest.Wait()
				waiting := make(chan error)
				go func() {
					_, _, err := c.Do(ended{t.Context()}, question("k"), answers.Ready{}, mustNotAsk(t))
					waiting <- err
				}()
				synctest.Wait()
				first.finish <- outcome{answer: one, keep: test.keep}
				require.ErrorIs(t, <-waiting, test.want)
			})
		})
	}
}

// TestNobodyJoinsAFlightFromBeforeABarrier: nor one from before its end.
func TestNobodyJoinsAFlightFromBeforeABarrier(t *testing.T) {
	bubble(t, func(t *testing.T, c *cache) {
		q, two, three := question("k", "A", "B"), sized{2, 2}, sized{3, 3}
		before := ask(t, c, q)
		synctest.Wait()
		waiter := ask(t, c, q)
		synctest.Wait()
		end := c.Barrier("B")
		during := ask(t, c, q)
		synctest.Wait()
		require.True(t, during.state.asks)
		waiterDuring := ask(t, c, q)
		synctest.Wait()
		require.False(t, waiterDuring.state.asks, "both are from between the same barriers")
		end()
		after := ask(t, c, q)
		synctest.Wait()
		require.True(t, after.state.asks)
		waiterAfter := ask(t, c, q)
		synctest.Wait()
		require.False(t, waiterAfter.state.asks)

		before.finish <- outcome{answer: one, keep: true}
		during.finish <- outcome{answer: two, keep: true}
		synctest.Wait()
		assert.Equal(t, returned(one, answers.Shared), waiter.state, "it asked before the barrier")
		assert.Equal(t, returned(two, answers.Shared), waiterDuring.state)
		require.False(t, has(c, "k"))
		require.Equal(t, state{}, waiterAfter.state)

		after.finish <- outcome{answer: three, keep: true}
		synctest.Wait()
		assert.Equal(t, returned(three, answers.Shared), waiterAfter.state)
		kept, _ := c.Get("k")
		assert.Equal(t, three, kept)
	})
}

// TestPanicOfSize: no caller is left waiting if the size function panics.
func TestPanicOfSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := noerr.Get(answers.New[string](10, func(s sized) int64 {
			if s == one {
				panic("size")
			}
			return s.size
		}))(t)
		first := ask(t, c, question("k"))
		synctest.Wait()
		waiter := ask(t, c, question("k"))
		synctest.Wait()
		first.finish <- outcome{answer: one, keep: true}
		synctest.Wait()
		assert.Equal(t, state{panicked: "size"}, first.state)
		require.True(t, waiter.state.asks)
		waiter.finish <- outcome{answer: sized{2, 2}, keep: true}
		synctest.Wait()
		assert.True(t, has(c, "k"))
	})
}

// TestNobodyWaitsForWhoIsNotReady: of those that ask the same, the first that gets a place asks,
// and those that come to wait for it have none.
func TestNobodyWaitsForWhoIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T, c *cache) {
		first, second, third := askWhenReady(t, c, question("k", "A")), askWhenReady(t, c, question("k", "A")), askWhenReady(t, c, question("k", "A"))
		synctest.Wait()
		for _, caller := range []*caller{first, second, third} {
			require.Equal(t, state{waits: true}, caller.state)
		}
		second.place <- nil
		synctest.Wait()
		require.Equal(t, state{places: 1, asks: true}, second.state)
		require.Equal(t, state{waits: true}, first.state, "who is in a queue stays there")
		newcomer := askWhenReady(t, c, question("k", "A"))
		first.place <- nil
		synctest.Wait()
		require.Equal(t, state{}, first.state, "it gave its place back")
		require.Equal(t, state{}, newcomer.state, "it needs none")

		second.finish <- outcome{answer: one, keep: true}
		synctest.Wait()
		assert.Equal(t, state{places: 1, returned: true, answer: one, from: answers.Asked}, second.state)
		assert.Equal(t, returned(one, answers.Shared), first.state)
		assert.Equal(t, returned(one, answers.Shared), newcomer.state)
		third.place <- nil
		synctest.Wait()
		assert.Equal(t, returned(one, answers.Kept), third.state, "it gave its place back")
	})
}

// TestNotReady: a caller without a place gets no answer, and does not wait.
func TestNotReady(t *testing.T) {
	bubble(t, func(t *testing.T, c *cache) {
		refused, late := askWhenReady(t, c, question("k")), askWhenReady(t, c, question("k"))
		synctest.Wait()
		refused.place <- errNoPlace
		late.cancel()
		synctest.Wait()
		assert.Equal(t, state{returned: true, err: errNoPlace}, refused.state)
		assert.Equal(t, state{returned: true, err: context.Canceled}, late.state)

		put(c, question("k"), one)
		answer, from := noerr.Get2(c.Do(t.Context(), question("k"), answers.Ready{Get: mustNotWait}, mustNotAsk(t)))(t)
		assert.Equal(t, answers.Kept, from, "it needs no place")
		assert.Equal(t, one, answer)
	})
}

// TestAnswerIsFromAfterThePlace: the answer of a caller is kept although a barrier ended while it waited for its
// place.
func TestAnswerIsFromAfterThePlace(t *testing.T) {
	bubble(t, func(t *testing.T, c *cache) {
		caller := askWhenReady(t, c, question("k", "A"))
		synctest.Wait()
		c.Barrier("A")()
		time.Sleep(time.Hour)
		caller.place <- nil
		synctest.Wait()
		caller.finish <- outcome{answer: one, keep: true}
		synctest.Wait()
		assert.True(t, has(c, "k"))
	})
}

func mustNotWait(context.Context) error { return errNoPlace }
