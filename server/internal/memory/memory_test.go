package memory

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kib = 1 << 10

// TestBodies: a tenant's bodies have a bound, which its small ones do not count against, and which is not another's.
func TestBodies(t *testing.T) {
	b := New(1000*kib, 1500*kib)
	long := b.Open("a")
	require.NoError(t, long.Body(500*kib))
	require.NoError(t, long.Body(500*kib))
	other := b.Open("a")
	require.NoError(t, other.Body(64*kib))
	require.ErrorIs(t, other.Body(100*kib), ErrFull)
	other.Close()
	another := b.Open("b")
	require.NoError(t, another.Body(600*kib))
	require.ErrorIs(t, another.Body(100*kib), ErrFull, "the bound of all")
	long.Close()
	require.NoError(t, b.Open("a").Body(900*kib))
	another.Close()
	assert.NoError(t, another.Body(10_000*kib), "it is closed")
	assert.Len(t, b.bodies.held, 1)
	assert.Empty(t, b.answers.held)
}

// TestAnswers: an answer waits until there is room for it, or its request ends. One that is too long for any room is
// made by itself.
func TestAnswers(t *testing.T) {
	require.NoError(t, Reserve(t.Context(), 1<<40), "without a bound")
	b := New(1000*kib, 4000*kib)
	ask := func(ctx context.Context, r *Request, bytes int) error { return Reserve(With(ctx, r), bytes) }
	long := b.Open("a")
	require.NoError(t, ask(t.Context(), long, 1<<40))
	require.NoError(t, ask(t.Context(), long, 1<<40), "it has all already")
	require.ErrorIs(t, ReserveOneOfMany(With(t.Context(), long), 1), ErrFull, "so that another answer would wait for it")
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ask(ended, b.Open("a"), 65*kib), ErrFull)
	require.NoError(t, ask(ended, b.Open("a"), 64*kib))
	require.NoError(t, ask(t.Context(), b.Open("b"), 65*kib))
	waiting := b.Open("a")
	got := make(chan error, 1)
	go func() { got <- ask(t.Context(), waiting, 100*kib) }()
	select {
	case err := <-got:
		t.Fatal("it does not wait", err)
	case <-time.After(10 * time.Millisecond):
	}
	long.Close()
	require.NoError(t, <-got)
	waiting.Close()
}

// TestReplace: requests that need more than they have, where all has been reserved, do not wait for one another.
func TestReplace(t *testing.T) {
	b := New(1000*kib, 4000*kib)
	var all sync.WaitGroup
	for range 4 {
		r := b.Open("a")
		require.NoError(t, Reserve(With(t.Context(), r), (64+250)*kib))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(With(t.Context(), r), time.Minute)
			defer cancel()
			assert.NoError(t, Replace(ctx, (64+600)*kib))
			r.Close()
		})
	}
	all.Wait()
	assert.Empty(t, b.answers.held)
}

// TestTryReplace: what a request has is replaced if there is room, and kept if there is none.
func TestTryReplace(t *testing.T) {
	require.True(t, TryReplace(t.Context(), 1<<40), "without a bound")
	b := New(1000*kib, 4000*kib)
	r, other := b.Open("a"), b.Open("a")
	require.NoError(t, Reserve(With(t.Context(), r), (64+400)*kib))
	require.NoError(t, Reserve(With(t.Context(), other), (64+500)*kib))
	ctx := With(t.Context(), r)
	assert.False(t, TryReplace(ctx, (64+501)*kib))
	assert.EqualValues(t, 900*kib, b.answers.sum)
	assert.True(t, TryReplace(ctx, (64+500)*kib))
	assert.True(t, TryReplace(ctx, 64*kib))
	assert.EqualValues(t, 500*kib, b.answers.sum)
	other.Close()
	assert.True(t, TryReplace(ctx, 1<<40), "one long answer takes all")
	assert.EqualValues(t, 1000*kib, b.answers.sum)
	r.Close()
	assert.True(t, TryReplace(ctx, 1<<40))
	assert.Empty(t, b.answers.held, "it is closed")
}

// TestAttackBeginnersOvertake: work does not begin with the memory that a request gave back for which there is no room
// yet: there would be any number of such requests, which hold what they have made. Other tenants do not wait.
func TestAttackBeginnersOvertake(t *testing.T) {
	b := New(1000*kib, 4000*kib)
	unread, waiting := b.Open("a"), b.Open("a")
	require.NoError(t, Reserve(With(t.Context(), unread), (64+500)*kib))
	require.NoError(t, Reserve(With(t.Context(), waiting), (64+400)*kib))
	replaced := make(chan error, 1)
	go func() { replaced <- Replace(With(t.Context(), waiting), (64+600)*kib) }()
	isWaiting := func() bool {
		b.answers.mu.Lock()
		defer b.answers.mu.Unlock()
		return b.answers.sum == 500*kib
	}
	require.Eventually(t, isWaiting, time.Minute, time.Millisecond)
	begin := func(ctx context.Context, tenant string) error {
		r := b.Open(tenant)
		defer r.Close()
		return Reserve(With(ctx, r), (64+100)*kib)
	}
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, begin(ended, "a"), ErrFull)
	require.NoError(t, begin(ended, "b"))
	began := make(chan error, 1)
	go func() { began <- begin(t.Context(), "a") }()
	unread.Close()
	require.NoError(t, <-replaced)
	require.NoError(t, <-began, "nobody waits any more")
	waiting.Close()
	assert.Empty(t, b.answers.held)
	assert.Empty(t, b.answers.waiting)
}

// TestNothingIsLost: whatever many requests do at once, all bytes are given back.
func TestNothingIsLost(t *testing.T) {
	b := New(500*kib, 1000*kib)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for range 20 {
				r := b.Open([]string{"a", "b", "c", ""}[i%4])
				ctx, cancel := context.WithTimeout(With(t.Context(), r), time.Duration(i)*time.Millisecond)
				_ = r.Body(i * 10 * kib)
				_ = Reserve(ctx, i*10*kib)
				r.Close()
				cancel()
			}
		})
	}
	all.Wait()
	for _, p := range []*pool{&b.bodies, &b.answers} {
		assert.Zero(t, p.sum)
		assert.Empty(t, p.held)
	}
}

// TestHoldOfMuch: a request that takes more than there is has all of it, but only if there is no other.
func TestHoldOfMuch(t *testing.T) {
	bound := New(1<<20, 2<<20)
	first, second := bound.Open("acme"), bound.Open("acme")
	require.NoError(t, Hold(With(t.Context(), first), 10<<20))
	require.ErrorIs(t, Hold(With(t.Context(), second), free+1), ErrFull)
	first.Close()
	require.NoError(t, Hold(With(t.Context(), second), free+1))
	second.Close()
}

// TestAttackReservedWhileClosed: nothing is held after requests were closed while bytes of their answers were being
// reserved. What is reserved between two steps of Close would stay forever, which this finds only now and then.
func TestAttackReservedWhileClosed(t *testing.T) {
	b := New(64<<20, 256<<20)
	for range 500 {
		r := b.Open("a")
		ctx := With(t.Context(), r)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { _ = ReserveOneOfMany(ctx, 100*kib) })
		}
		r.Close()
		wg.Wait()
	}
	assert.Empty(t, b.answers.held)
	assert.Empty(t, b.bodies.held)
}
