package tool

import "time"

// EventType says what an [Event] reports.
type EventType string

// The types of events. A batch starts with BatchStarted and ends with BatchFinished. In between it
// may pause with BatchPaused, which only BatchResumed can follow. Each call, including nested ones,
// has one CallStarted and later one CallFinished, with any number of CallOutput in between. Before
// CallStarted, CallWaiting says that the call waits for an answer or an approval.
const (
	BatchStarted  EventType = "batch_started"
	BatchResumed  EventType = "batch_resumed"
	CallWaiting   EventType = "call_waiting"
	CallStarted   EventType = "call_started"
	CallOutput    EventType = "call_output" // only in streams
	CallFinished  EventType = "call_finished"
	BatchPaused   EventType = "batch_paused"
	BatchFinished EventType = "batch_finished"
)

// Event is one step of a batch. All receivers share the values that it points to, and must not change them.
type Event struct {
	Type    EventType `json:"type"`
	Time    time.Time `json:"time"`
	Batch   string    `json:"batch"`             // the batch's id
	Session string    `json:"session,omitempty"` // the session's id
	Tenant  string    `json:"tenant,omitempty"`
	// Calls are, in order, the calls of a batch that started, or the unfinished calls of one that was resumed.
	Calls []Planned `json:"calls,omitempty"`
	// CallID, Tool, Parent and Hidden describe the call that the event is about.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Hidden is set if the tool's manifest says not to show its calls to people.
	Hidden bool `json:"hidden,omitempty"`
	// Emission is set for [CallOutput].
	Emission *Emission `json:"emission,omitempty"`
	// Lost is the number of emissions of the call that were dropped just before this event because the watcher is slow.
	Lost int `json:"lost,omitempty"`
	// Action is the action that the call waits for.
	Action *Action `json:"action,omitempty"`
	// Record is set when the call has finished.
	Record *Record `json:"record,omitempty"`
	// Totals is set when the batch has finished or paused.
	Totals *Totals `json:"totals,omitempty"`
}

// Planned is a call that a batch is going to run.
type Planned struct {
	ID     string `json:"id"` // the provider's
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Type   string `json:"type,omitempty"` // as in [Call]
	// Arguments are the arguments as the model wrote them.
	Arguments string `json:"arguments"`
	// Category is the category in the tool's manifest, such as web_search, or empty.
	Category string `json:"category,omitempty"`
	Hidden   bool   `json:"hidden,omitempty"`
	// Final is set if the tool's output may be shown to the user unchanged.
	Final bool `json:"final,omitempty"`
	// Client is set if the client runs the tool.
	Client bool `json:"client,omitempty"`
}

// Totals sums up the calls of a batch, including nested calls. Calls that were skipped or cached cost
// nothing, so they add only to the counts and the output.
type Totals struct {
	Calls       int           `json:"calls"`
	Nested      int           `json:"nested"` // included in Calls
	Succeeded   int           `json:"succeeded"`
	Failed      int           `json:"failed"`
	Skipped     int           `json:"skipped"`
	Cached      int           `json:"cached"`
	Fuel        int64         `json:"fuel"`
	MemoryBytes int64         `json:"memory_bytes"` // the maximum of all calls
	Wall        time.Duration `json:"wall_ns"`      // sum over the model's calls, including their nested calls
	HostCalls   int64         `json:"host_calls"`
	OutputBytes int64         `json:"output_bytes"` // total Result.Size of the results that go to the model
}
