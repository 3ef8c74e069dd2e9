package speech_test

import (
	"slices"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// reference is a simple sequencer that searches all waiting events each time.
type reference struct {
	most    int64
	waiting []waits  // in the order in which it was offered
	order   []string // calls in the order in which they were heard
	known   []string // calls in the order in which they came to be known
	lost    map[string]int
	ended   map[string]bool // their end was offered
	gone    map[string]bool // their end was taken
	closed  bool
	// What became of the outputs of calls that were not hidden.
	given, replaced, dropped, taken int
}

type waits struct {
	event tool.Event
	call  string // whose speech it is; empty for what passes
}

func newReference(most int64) *reference {
	return &reference{most: most, lost: map[string]int{}, ended: map[string]bool{}, gone: map[string]bool{}}
}

func (r *reference) offer(event tool.Event) {
	if r.closed || event.Hidden || event.Parent != "" {
		return
	}
	switch event.Type {
	case tool.CallOutput:
		r.output(event)
	case tool.CallFinished:
		r.know(event.CallID)
		if !r.ended[event.CallID] {
			r.ended[event.CallID] = true
			r.speak(event)
		}
	default:
		r.waiting = append(r.waiting, waits{event: event})
		r.closed = event.Type == tool.BatchFinished || event.Type == tool.BatchPaused
	}
}

func (r *reference) know(call string) {
	if !slices.Contains(r.known, call) {
		r.known = append(r.known, call)
	}
}

func (r *reference) speak(event tool.Event) {
	if !slices.Contains(r.order, event.CallID) {
		r.order = append(r.order, event.CallID)
	}
	r.waiting = append(r.waiting, waits{event, event.CallID})
}

func (r *reference) output(event tool.Event) {
	call := event.CallID
	r.know(call)
	if r.ended[call] {
		return
	}
	r.given++
	if at := slices.IndexFunc(r.waiting, func(w waits) bool { return w.call == call && replaces(event, w.event) }); at >= 0 {
		r.replaced++
		r.remove(at)
	}
	size := speech.Size(event.Emission)
	if r.full(size) && (size > r.most || r.holds(call)+size > r.most/r.among(call)) {
		r.dropped++
		r.lost[call]++
		return
	}
	for r.full(size) {
		r.dropped++
		r.lost[r.removeLargest()]++
	}
	event.Lost, r.lost[call] = r.lost[call], 0
	r.speak(event)
}

func replaces(next, old tool.Event) bool {
	if old.Emission == nil || next.Emission.Type != old.Emission.Type {
		return false
	}
	return next.Emission.Type == tool.EmitProgress || next.Emission.Type == tool.EmitImage && next.Emission.Partial && old.Emission.Partial
}

// remove removes an output; the outputs lost before it then count as lost before the call's next event.
func (r *reference) remove(at int) {
	old := r.waiting[at]
	r.waiting = slices.Delete(r.waiting, at, at+1)
	for i := at; i < len(r.waiting); i++ {
		if r.waiting[i].call == old.call && r.waiting[i].event.Type == tool.CallOutput {
			r.waiting[i].event.Lost += old.event.Lost
			return
		}
	}
	r.lost[old.call] += old.event.Lost
}

func (r *reference) removeLargest() string {
	var most string
	for _, call := range r.known {
		if r.holds(call) > 0 && (most == "" || r.holds(call) >= r.holds(most)) {
			most = call
		}
	}
	for at := len(r.waiting) - 1; ; at-- {
		if w := r.waiting[at]; w.call == most && w.event.Type == tool.CallOutput {
			r.remove(at)
			return most
		}
	}
}

// holds returns how many bytes of outputs of a call wait.
func (r *reference) holds(call string) (bytes int64) {
	for _, w := range r.waiting {
		if w.call == call && w.event.Type == tool.CallOutput {
			bytes += speech.Size(w.event.Emission)
		}
	}
	return bytes
}

func (r *reference) full(more int64) bool {
	for _, call := range r.known {
		more += r.holds(call)
	}
	return more > r.most
}

// among returns how many calls have outputs waiting, one of them counted in any case.
func (r *reference) among(one string) (calls int64) {
	for _, call := range r.known {
		if call == one || r.holds(call) > 0 {
			calls++
		}
	}
	return calls
}

func (r *reference) take() (tool.Event, bool) {
	for at, w := range r.waiting {
		if w.call != "" && w.call != r.speaker() {
			continue
		}
		r.waiting = slices.Delete(r.waiting, at, at+1)
		switch w.event.Type {
		case tool.CallOutput:
			r.taken++
		case tool.CallFinished:
			r.gone[w.call] = true
			w.event.Lost = r.lost[w.call]
		}
		return w.event, true
	}
	return tool.Event{}, false
}

// speaker returns whose turn it is to speak.
func (r *reference) speaker() string {
	for _, call := range r.order {
		waits := slices.ContainsFunc(r.waiting, func(w waits) bool { return w.call == call })
		if !r.gone[call] && (waits || !r.closed) {
			return call
		}
	}
	return ""
}
