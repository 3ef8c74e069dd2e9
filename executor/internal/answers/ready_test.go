package answers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/answers"
)

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

// TestWhoIsReadyAgainAsks: after a failure, those who waited for it get places of their own.
func TestWhoIsReadyAgainAsks(t *testing.T) {
	for _, failure := range []outcome{{answer: one}, {how: "panic"}, {how: "goexit"}} {
		bubble(t, func(t *testing.T, c *cache) {
			first := ask(t, c, question("k"))
			synctest.Wait()
			waiter := askWhenReady(t, c, question("k"))
			synctest.Wait()
			require.Equal(t, state{}, waiter.state)
			first.finish <- failure
			synctest.Wait()
			require.Equal(t, state{waits: true}, waiter.state)
			waiter.place <- nil
			synctest.Wait()
			require.Equal(t, state{places: 1, asks: true}, waiter.state)
			waiter.finish <- outcome{answer: one, keep: true}
			synctest.Wait()
			assert.True(t, has(c, "k"))
		})
	}
}

// TestNotReady: without a place there is no answer, and no wait.
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
		answer, from, err := c.DoWhenReady(t.Context(), question("k"), answers.Ready{}, mustNotAsk(t))
		require.NoError(t, err)
		assert.Equal(t, answers.Kept, from, "it needs no place")
		assert.Equal(t, one, answer)
	})
}

// TestAnswerIsFromAfterThePlace: a barrier that ends while a caller waits for its place is no
// reason not to keep what it then finds.
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
