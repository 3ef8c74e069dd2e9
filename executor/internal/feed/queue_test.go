package feed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader may hold a subscription long after its end; the queue's memory is not held with it.
func TestQueueIsFreedAtTheEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*Feed[int], *Subscription[int])
	}{
		{"the feed's", func(f *Feed[int], _ *Subscription[int]) { f.Close() }},
		{"the subscription's", func(_ *Feed[int], s *Subscription[int]) { s.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f Feed[int]
			s, err := f.Subscribe(Options[int]{})
			require.NoError(t, err)
			f.Send(1)
			test.end(&f, s)
			_, _, err = s.Next(t.Context())
			require.NoError(t, err)
			assert.Nil(t, s.queue.ring, "read to its end")

			f = Feed[int]{}
			s, err = f.Subscribe(Options[int]{})
			require.NoError(t, err)
			f.Send(1)
			_, _, err = s.Next(t.Context())
			require.NoError(t, err)
			require.NotNil(t, s.queue.ring)
			test.end(&f, s)
			assert.Nil(t, s.queue.ring, "empty at the end")
		})
	}
}

func TestQueueGrowsToItsBound(t *testing.T) {
	q := queue[int]{most: 50}
	for i := range 100 {
		q.push(i)
		assert.LessOrEqual(t, len(q.ring), max(leastRing, 2*q.length))
	}
	assert.Len(t, q.ring, 50)
	small := queue[int]{most: 3}
	small.push(1)
	assert.Len(t, small.ring, 3)
}
