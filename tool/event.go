package tool

import "time"

// EventType says what an [Event] reports.
type EventType string

// The events of a batch's life. A batch begins with one of BatchStarted and ends with one of
// BatchFinished; in between it may pause with BatchPaused, after which nothing comes before
// BatchResumed. Each of its calls, those that tools made among them, has one of CallStarted and
// then one of CallFinished; in between it may speak with CallOutput. Before it starts, a call may
// wait with CallWaiting for whoever answers it or approves of it.
const (
	BatchStarted  EventType = "batch_started"
	BatchResumed  EventType = "batch_resumed"
	CallWaiting   EventType = "call_waiting"
	CallStarted   EventType = "call_started"
	CallOutput    EventType = "call_output" // in streams alone
	CallFinished  EventType = "call_finished"
	BatchPaused   EventType = "batch_paused"
	BatchFinished EventType = "batch_finished"
)

// Event is one step in the life of a batch. What it points to is shared by all who get it and
// must not be changed.
type Event struct {
	Type    EventType `json:"type"`
	Time    time.Time `json:"time"`
	Batch   string    `json:"batch"`             // the batch's id
	Session string    `json:"session,omitempty"` // the session's id
	Tenant  string    `json:"tenant,omitempty"`
	// Calls are the calls of a batch that has started, in their order, or those of one that was
	// resumed that have not ended.
	Calls []Planned `json:"calls,omitempty"`
	// CallID, Tool, Parent and Hidden are of the call that the event is about.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Hidden is set where the tool's manifest says that people are not shown its calls.
	Hidden bool `json:"hidden,omitempty"`
	// Emission is what a call says.
	Emission *Emission `json:"emission,omitempty"`
	// Lost is how many emissions of the call were dropped just before this event, since whoever
	// watches is slow.
	Lost int `json:"lost,omitempty"`
	// Action is what a call waits for.
	Action *Action `json:"action,omitempty"`
	// Record is set once the call has finished.
	Record *Record `json:"record,omitempty"`
	// Totals is set once the batch has finished or paused.
	Totals *Totals `json:"totals,omitempty"`
}

// Planned is a call that a batch is going to take up.
type Planned struct {
	ID     string `json:"id"` // the provider's
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Type   string `json:"type,omitempty"` // as in [Call]
	// Arguments are as the model wrote them.
	Arguments string `json:"arguments"`
	// Category is what the tool's manifest says of it, such as web_search; empty for nothing.
	Category string `json:"category,omitempty"`
	Hidden   bool   `json:"hidden,omitempty"`
	// Final is set where the tool's output may be shown to the user as it is.
	Final bool `json:"final,omitempty"`
	// Client is set where the client runs the tool.
	Client bool `json:"client,omitempty"`
}

// Totals is what the calls of a batch came to together, those that tools made among them. A
// result that was used again costs nothing, so that calls which were skipped or cached add to
// the counts and to the output alone.
type Totals struct {
	Calls       int           `json:"calls"`
	Nested      int           `json:"nested"` // of these, made by tools
	Succeeded   int           `json:"succeeded"`
	Failed      int           `json:"failed"`
	Skipped     int           `json:"skipped"`
	Cached      int           `json:"cached"`
	Fuel        int64         `json:"fuel"`
	MemoryBytes int64         `json:"memory_bytes"` // the largest of one call
	Wall        time.Duration `json:"wall_ns"`      // of the model's calls one after the other, with what they called
	HostCalls   int64         `json:"host_calls"`
	OutputBytes int64         `json:"output_bytes"` // of the results that go to the model, as Result.Size counts them
}

// Add counts one more record.
func (t *Totals) Add(r *Record) {
	t.Calls++
	if r.Parent != "" {
		t.Nested++
	} else {
		t.OutputBytes += int64(r.Result.Size())
	}
	if r.Result.Success {
		t.Succeeded++
	} else {
		t.Failed++
	}
	if r.Skipped {
		t.Skipped++
	}
	if r.Cached {
		t.Cached++
	}
	if r.Skipped || r.Cached {
		return
	}
	if r.Usage.Fuel != nil {
		t.Fuel += *r.Usage.Fuel
	}
	t.MemoryBytes = max(t.MemoryBytes, r.Usage.MemoryBytes)
	if r.Parent == "" {
		t.Wall += r.Usage.Wall
	}
	t.HostCalls += r.Usage.HostCalls
}
