package executor_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// watcher reads a subscription.
type watcher struct{ subscription *executor.Subscription }

// watch subscribes to events from now on, with a queue that no test fills by accident.
func watch(t testing.TB, e *executor.Executor, session *executor.Session) watcher {
	t.Helper()
	subscription := subscribe(t, e, executor.SubscribeOptions{Session: session, Queue: 1 << 16})
	t.Cleanup(subscription.Close)
	return watcher{subscription}
}

// rest ends the subscription and returns the events that were not read yet.
func (w watcher) rest(t testing.TB) (events []tool.Event) {
	t.Helper()
	w.subscription.Close()
	for {
		event, lost, err := w.subscription.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(t, err)
		require.Zero(t, lost)
		events = append(events, event)
	}
}

// until reads events up to the first that matches.
func (w watcher) until(t testing.TB, match func(tool.Event) bool) tool.Event {
	t.Helper()
	for {
		event, _ := noerr.Get2(w.subscription.Next(t.Context()))(t)
		if match(event) {
			return event
		}
	}
}

// started reads events up to the start of a call of the tool and returns the call's id.
func (w watcher) started(t testing.TB, name string) string {
	t.Helper()
	return w.until(t, func(event tool.Event) bool { return event.Type == tool.CallStarted && event.Tool == name }).CallID
}

// ledger is a recorder that keeps entries.
type ledger struct {
	mu      sync.Mutex
	entries []executor.Entry
	hook    func(context.Context, executor.Entry) error // nil for none
}

func (l *ledger) Record(ctx context.Context, entry executor.Entry) error {
	l.mu.Lock()
	l.entries = append(l.entries, entry)
	l.mu.Unlock()
	if l.hook != nil {
		return l.hook(ctx, entry)
	}
	return nil
}

func (l *ledger) all() []executor.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]executor.Entry(nil), l.entries...)
}

// of returns the entries of a tool's calls, in the order in which they ended.
func (l *ledger) of(name string) (found []executor.Entry) {
	for _, entry := range l.all() {
		if entry.Tool == name {
			found = append(found, entry)
		}
	}
	return found
}

// assertEvents checks the events of one batch without nested calls against its report: one
// start of the batch, then for each call a start and later an end with its record, then the
// batch's end with its totals.
func assertEvents(t testing.TB, report executor.Report, events []tool.Event) {
	t.Helper()
	require.Len(t, events, 2*len(report.Records)+2)
	first, last := events[0], events[len(events)-1]
	assert.Equal(t, tool.BatchStarted, first.Type)
	require.Len(t, first.Calls, len(report.Records))
	for i, record := range report.Records {
		assert.Equal(t, record.CallID, first.Calls[i].CallID)
		assert.Equal(t, record.ID, first.Calls[i].ID)
	}
	started := map[string]bool{}
	finished := map[string]tool.Record{}
	for _, event := range events {
		assert.False(t, event.Time.IsZero())
		assert.Equal(t, report.ID, event.Batch)
		switch event.Type {
		case tool.CallStarted:
			assert.False(t, started[event.CallID])
			assert.Nil(t, event.Record)
			started[event.CallID] = true
		case tool.CallFinished:
			assert.True(t, started[event.CallID])
			require.NotNil(t, event.Record)
			finished[event.CallID] = *event.Record
		}
	}
	for _, record := range report.Records {
		assert.Equal(t, record, finished[record.CallID])
	}
	assert.Equal(t, tool.BatchFinished, last.Type)
	require.NotNil(t, last.Totals)
	assert.Equal(t, report.Totals, *last.Totals)
}
