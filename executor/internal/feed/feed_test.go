package feed_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type got struct {
	value int
	lost  int64
}

func subscribe(t testing.TB, f *feed.Feed[int], queue int) *feed.Subscription[int] {
	t.Helper()
	s, err := f.Subscribe(feed.Options[int]{Queue: queue})
	require.NoError(t, err)
	return s
}

// drain reads a closed subscription to its end.
func drain(t testing.TB, s *feed.Subscription[int]) []got {
	t.Helper()
	var all []got
	for {
		value, lost, err := s.Next(t.Context())
		if err != nil {
			require.ErrorIs(t, err, feed.ErrClosed)
			return all
		}
		all = append(all, got{value, lost})
	}
}

func TestNext(t *testing.T) {
	for _, test := range []struct {
		name  string
		queue int
		sent  int
		want  []got
	}{
		{"nothing", 3, 0, nil},
		{"some", 3, 2, []got{{0, 0}, {1, 0}}},
		{"full", 3, 3, []got{{0, 0}, {1, 0}, {2, 0}}},
		{"the oldest give way", 3, 5, []got{{2, 2}, {3, 0}, {4, 0}}},
		{"queue of one", 1, 5, []got{{4, 4}}},
		{"around many times", 2, 101, []got{{99, 99}, {100, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f feed.Feed[int]
			s := subscribe(t, &f, test.queue)
			for i := range test.sent {
				f.Send(i)
			}
			f.Close()
			assert.Equal(t, test.want, drain(t, s))
		})
	}
}

func TestDefaultQueue(t *testing.T) {
	var f feed.Feed[int]
	s := subscribe(t, &f, 0)
	for i := range feed.DefaultQueue + 2 {
		f.Send(i)
	}
	s.Close()
	all := drain(t, s)
	require.Len(t, all, feed.DefaultQueue)
	assert.Equal(t, got{2, 2}, all[0])
}

func TestLostIsToldInItsPlace(t *testing.T) {
	var f feed.Feed[int]
	s := subscribe(t, &f, 2)
	next := func() got {
		value, lost, err := s.Next(t.Context())
		require.NoError(t, err)
		return got{value, lost}
	}
	send := func(values ...int) {
		for _, v := range values {
			f.Send(v)
		}
	}
	send(0, 1, 2)
	assert.Equal(t, got{1, 1}, next())
	send(3, 4, 5)
	assert.Equal(t, got{4, 2}, next())
	assert.Equal(t, got{5, 0}, next())
	send(6)
	assert.Equal(t, got{6, 0}, next())
	s.Close()
	assert.Empty(t, drain(t, s))
}

func TestSubscribeRefuses(t *testing.T) {
	var f feed.Feed[int]
	_, err := f.Subscribe(feed.Options[int]{Queue: -1})
	require.ErrorIs(t, err, feed.ErrQueue)
	assert.EqualError(t, err, "negative queue: -1")
	f.Close()
	_, err = f.Subscribe(feed.Options[int]{})
	require.ErrorIs(t, err, feed.ErrClosed)
}

func TestIdle(t *testing.T) {
	var f feed.Feed[int]
	assert.True(t, f.Idle())
	a, b := subscribe(t, &f, 1), subscribe(t, &f, 1)
	assert.False(t, f.Idle())
	a.Close()
	a.Close()
	assert.False(t, f.Idle())
	b.Close()
	assert.True(t, f.Idle())
	subscribe(t, &f, 1)
	assert.False(t, f.Idle())
	f.Close()
	f.Close()
	assert.True(t, f.Idle())
	f.Send(1)
}

func TestSubscriberSeesWhatIsSentWhileItIs(t *testing.T) {
	var f feed.Feed[int]
	f.Send(0)
	early := subscribe(t, &f, 9)
	f.Send(1)
	late := subscribe(t, &f, 9)
	f.Send(2)
	early.Close()
	f.Send(3)
	f.Close()
	f.Send(4)
	assert.Equal(t, []got{{1, 0}, {2, 0}}, drain(t, early))
	assert.Equal(t, []got{{2, 0}, {3, 0}}, drain(t, late))
}

func TestWant(t *testing.T) {
	var f feed.Feed[int]
	even, err := f.Subscribe(feed.Options[int]{Queue: 2, Want: func(v int) bool { return v%2 == 0 }})
	require.NoError(t, err)
	for i := range 9 {
		f.Send(i)
	}
	f.Close()
	assert.Equal(t, []got{{6, 3}, {8, 0}}, drain(t, even), "what is not wanted is not lost")
}

func TestPanicInWantEndsItsSubscription(t *testing.T) {
	var f feed.Feed[int]
	all := subscribe(t, &f, 9)
	bad, err := f.Subscribe(feed.Options[int]{Want: func(v int) bool {
		if v == 1 {
			panic("odd")
		}
		return true
	}})
	require.NoError(t, err)
	for i := range 3 {
		f.Send(i)
	}
	value, _, err := bad.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 0, value)
	_, _, err = bad.Next(t.Context())
	require.ErrorIs(t, err, feed.ErrWant)
	assert.EqualError(t, err, "the subscription's Want panicked: odd")
	bad.Close()
	_, _, err = bad.Next(t.Context())
	require.ErrorIs(t, err, feed.ErrWant, "the first reason stays")
	all.Close()
	assert.Len(t, drain(t, all), 3)
	assert.True(t, f.Idle())
}

// Want is called without a lock, so that it can do with the feed what it likes, even end its
// sender's goroutine.
func TestWantMayCallTheFeed(t *testing.T) {
	var f feed.Feed[int]
	var self *feed.Subscription[int]
	self, err := f.Subscribe(feed.Options[int]{Want: func(v int) bool {
		switch v {
		case 0:
			f.Send(10)
			subscribe(t, &f, 1).Close()
		case 1:
			runtime.Goexit()
		case 2:
			self.Close()
		}
		return true
	}})
	require.NoError(t, err)
	for i := range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Send(i)
		}()
		<-done
	}
	assert.Equal(t, []got{{10, 0}, {0, 0}}, drain(t, self), "what is wanted after the end is not queued")
}

func TestManySubscribers(t *testing.T) {
	var f feed.Feed[int]
	var all []*feed.Subscription[int]
	for range 100 {
		all = append(all, subscribe(t, &f, 4))
	}
	f.Send(7)
	f.Close()
	for _, s := range all {
		assert.Equal(t, []got{{7, 0}}, drain(t, s))
	}
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed[int]
		s := subscribe(t, &f, 1)
		go func() {
			time.Sleep(time.Second)
			f.Send(1)
			time.Sleep(time.Second)
			f.Close()
		}()
		began := time.Now()
		value, _, err := s.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, value)
		assert.Equal(t, time.Second, time.Since(began))
		_, _, err = s.Next(t.Context())
		require.ErrorIs(t, err, feed.ErrClosed)
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed[int]
		s := subscribe(t, &f, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := s.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		f.Send(1)
		_, _, err = s.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "also where there is a value")
		value, lost, err := s.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, got{1, 0}, got{value, lost}, "which is not lost by that")
	})
}

func TestCloseWakesAllReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed[int]
		s := subscribe(t, &f, 9)
		var ended atomic.Int64
		for range 5 {
			go func() {
				for {
					if _, _, err := s.Next(t.Context()); err != nil {
						assert.ErrorIs(t, err, feed.ErrClosed)
						ended.Add(1)
						return
					}
				}
			}()
		}
		synctest.Wait()
		f.Send(1)
		synctest.Wait()
		assert.Zero(t, ended.Load())
		s.Close()
		synctest.Wait()
		assert.EqualValues(t, 5, ended.Load())
	})
}

// One token wakes one reader; the values that came with it must reach the others.
func TestReadersShareABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed[int]
		s := subscribe(t, &f, 9)
		var read atomic.Int64
		for range 5 {
			go func() {
				if _, _, err := s.Next(t.Context()); err == nil {
					read.Add(1)
				}
			}()
		}
		synctest.Wait()
		for i := range 5 {
			f.Send(i)
		}
		synctest.Wait()
		assert.EqualValues(t, 5, read.Load())
	})
}

// A reader that is woken for a value just as its context ends must not leave the value to one
// that sleeps on.
func TestReaderThatGivesUpTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed[int]
		s := subscribe(t, &f, 9)
		ctx, cancel := context.WithCancel(t.Context())
		var read atomic.Int64
		for _, c := range []context.Context{ctx, t.Context()} {
			go func() {
				if _, _, err := s.Next(c); err == nil {
					read.Add(1)
				}
			}()
			synctest.Wait()
		}
		f.Send(1)
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 1, read.Load())
		s.Close()
	})
}

func TestValuesAreFreed(t *testing.T) {
	var f feed.Feed[*[1 << 20]byte]
	s, err := f.Subscribe(feed.Options[*[1 << 20]byte]{})
	require.NoError(t, err)
	collected := make(chan struct{})
	func() {
		value := new([1 << 20]byte)
		runtime.AddCleanup(value, func(done chan struct{}) { close(done) }, collected)
		f.Send(value)
	}()
	_, _, err = s.Next(t.Context())
	require.NoError(t, err)
	waitCollected(t, collected)

	gone := make(chan struct{})
	func() {
		abandoned, err := f.Subscribe(feed.Options[*[1 << 20]byte]{})
		require.NoError(t, err)
		value := new([1 << 20]byte)
		runtime.AddCleanup(value, func(done chan struct{}) { close(done) }, gone)
		f.Send(value)
		abandoned.Close()
		_, _, err = s.Next(t.Context())
		require.NoError(t, err)
	}()
	waitCollected(t, gone)
	runtime.KeepAlive(s)
	runtime.KeepAlive(&f)
}

func waitCollected(t *testing.T, done chan struct{}) {
	t.Helper()
	for {
		runtime.GC()
		select {
		case <-done:
			return
		case <-t.Context().Done():
			t.Fatal("the feed holds what was read")
		case <-time.After(time.Millisecond):
		}
	}
}
