package watchdog

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeadlineEndsByItself(t *testing.T) {
	at := time.Now().Add(30 * time.Millisecond)
	d := NewDeadline(t.Context(), at)
	defer d.Release()
	got, ok := d.Deadline()
	assert.True(t, ok)
	assert.Equal(t, at, got)
	require.NoError(t, d.Err())
	require.Eventually(t, func() bool { return d.Err() != nil }, time.Minute, time.Millisecond)
	assert.False(t, time.Now().Before(at))
	assert.ErrorIs(t, d.Err(), context.DeadlineExceeded)
	assert.ErrorIs(t, context.Cause(d), context.DeadlineExceeded)
	<-d.Done()
	assert.ErrorIs(t, d.Err(), context.DeadlineExceeded, "as before")
}

// TestDeadlineNeedsNoGoroutine for the contexts that are derived of it, which end with it.
func TestDeadlineNeedsNoGoroutine(t *testing.T) {
	d := NewDeadline(t.Context(), time.Now().Add(time.Hour))
	before := goruntime.NumGoroutine()
	var children []context.Context
	for range 100 {
		child, cancel := context.WithCancel(d)
		defer cancel()
		children = append(children, child)
	}
	assert.Less(t, goruntime.NumGoroutine(), before+50)
	ended := false
	assert.True(t, d.AfterFunc(func() { ended = true })(), "stopped in time")
	d.Release()
	for _, child := range children {
		<-child.Done()
		assert.ErrorIs(t, child.Err(), context.Canceled)
	}
	assert.False(t, ended)
}

// TestDeadlineIsSeenBeforeItsTimer: Err reports the deadline as soon as it has passed, even if the
// timer has not fired yet.
func TestDeadlineIsSeenBeforeItsTimer(t *testing.T) {
	for range 100 {
		at := time.Now().Add(time.Millisecond)
		d := NewDeadline(t.Context(), at)
		_ = d.Done()
		for time.Now().Before(at) {
		}
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded)
		d.Release()
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded, "as before")
	}
}

func TestDeadlineFollowsItsParent(t *testing.T) {
	why := errors.New("no longer needed")
	for _, waited := range []bool{false, true} {
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), runKey{}, "value"))
		d := NewDeadline(parent, time.Now().Add(time.Hour))
		if waited {
			_ = d.Done()
		}
		assert.Equal(t, "value", d.Value(runKey{}))
		require.NoError(t, d.Err())
		cancel(why)
		<-d.Done()
		assert.ErrorIs(t, d.Err(), context.Canceled)
		assert.ErrorIs(t, context.Cause(d), why)
		d.Release()
	}
	sooner, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, _ := sooner.Deadline()
	got, _ := NewDeadline(sooner, time.Now().Add(time.Hour)).Deadline()
	assert.Equal(t, want, got)
}

type runKey struct{}

// TestDeadlineHammer: those that ask and those that wait at the same moment see one end.
func TestDeadlineHammer(t *testing.T) {
	for range 50 {
		d := NewDeadline(t.Context(), time.Now().Add(time.Millisecond))
		var group sync.WaitGroup
		for n := range 16 {
			group.Go(func() {
				if n%2 == 0 {
					<-d.Done()
				}
				ended := false
				for range 2000 {
					err := d.Err()
					if !assert.False(t, ended && err == nil, "it ended, and had not") {
						return
					}
					ended = ended || err != nil
				}
			})
		}
		group.Wait()
		d.Release()
	}
}
