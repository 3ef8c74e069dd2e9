package rest

import (
	"sync"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/ledger"
)

// feed holds the latest events of a run, for readers who come late or come back. Writing never waits for a reader. The
// zero value has no events and keeps only the latest. It is safe for concurrent use.
type feed struct {
	most int // bytes to keep; the latest event is always kept

	mu     sync.Mutex
	frames []frame
	bytes  int
	next   int64 // the id of the next event, less one
	begins int64 // the id of the first event of the current response
	closed bool
	more   chan struct{} // closed when an event is added; nil if no reader waits
}

// frame is an event of a feed.
type frame struct {
	id   int64
	name string
	data []byte
	last bool // of its response
}

// add adds events. The last of a response says so.
func (f *feed) add(mapped []dialects.Event, last bool) {
	if len(mapped) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, m := range mapped {
		f.next++
		f.frames = append(f.frames, frame{f.next, m.Name, m.Data, last && i == len(mapped)-1})
		f.bytes += len(m.Data)
	}
	f.trim()
	f.wake()
}

// trim drops the oldest events beyond the bound. The caller must hold f.mu.
func (f *feed) trim() {
	dropped := 0
	for f.bytes > f.most && dropped < len(f.frames)-1 {
		f.bytes -= len(f.frames[dropped].data)
		f.frames[dropped].data = nil
		dropped++
	}
	f.frames = f.frames[dropped:]
}

// mirror adds events that another process has made, in their order.
func (f *feed) mirror(events []ledger.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if e.ID != f.next+1 {
			f.frames, f.bytes = nil, 0 // those between are no longer kept
		}
		f.next = e.ID
		f.frames = append(f.frames, frame{e.ID, e.Name, e.Data, e.IsLast})
		f.bytes += len(e.Data)
	}
	f.trim()
	f.wake()
}

// since returns the events after one that are kept, and the id of the first that is.
func (f *feed) since(id int64) (events []ledger.Event, first int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.frames {
		if one.id > id {
			events = append(events, ledger.Event{ID: one.id, Name: one.name, Data: one.data, IsLast: one.last})
		}
	}
	return events, f.next - int64(len(f.frames)) + 1
}

// startResponse says that what follows is another response, so that who comes now does not begin with the one before.
func (f *feed) startResponse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins = f.next + 1
}

// wake wakes the readers. The caller must hold f.mu.
func (f *feed) wake() {
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// size returns how many bytes of events are kept.
func (f *feed) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// close says that nothing follows.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wake()
}

// forget drops all events, and says that nothing follows.
func (f *feed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames, f.bytes, f.closed = nil, 0, true
	f.wake()
}

// start returns the id after which a reader without one begins: before the current response.
func (f *feed) start() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.begins-1, 0)
}

// end returns the id of the latest event.
func (f *feed) end() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// after returns the next event after an id. If there is none yet, more is closed when there is; nil means that there
// never will be. gone is set if the event is no longer kept.
func (f *feed) after(id int64) (found *frame, more <-chan struct{}, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.next - int64(len(f.frames)) + 1
	switch {
	case id+1 < first:
		return nil, nil, true
	case id < f.next:
		found := f.frames[id+1-first]
		return &found, nil, false
	case f.closed:
		return nil, nil, false
	}
	if f.more == nil {
		f.more = make(chan struct{})
	}
	return nil, f.more, false
}
