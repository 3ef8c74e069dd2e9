package tool

import (
	"encoding/json"
	"math"
	"time"
)

// Result is what a call came to, as it goes back to the model.
type Result struct {
	Success bool `json:"success"`
	// Output is for people and the model.
	Output string `json:"output,omitempty"`
	// Data is for programs: any JSON value.
	Data json.RawMessage `json:"data,omitempty"`
	// Content holds parts that are not plain text. It is nil for most tools.
	Content []Content `json:"content,omitempty"`
	// Error says, to the reader that Kind assigns, why the call failed.
	Error string `json:"error,omitempty"`
	// Kind is set by the host on failure and empty on success.
	Kind Kind `json:"kind,omitempty"`
}

// Size returns how many bytes of text and data the result has.
func (r *Result) Size() int {
	size := len(r.Output) + len(r.Error) + len(r.Data)
	for i := range r.Content {
		c := &r.Content[i]
		size += len(c.Type) + len(c.Text) + len(c.Data) + len(c.URL) + len(c.Name) + len(c.MIMEType)
	}
	return size
}

// Content is one part of a result.
type Content struct {
	Type     string `json:"type"` // text, image, link or file
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	URL      string `json:"url,omitempty"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

// Cut says what was left out of one part of a result, because it was longer than what goes to
// a model.
type Cut struct {
	Part string `json:"part"` // output, error, data, or a part of the content, such as "content[2]"
	// Reference is by what the whole can be read; empty where it is not kept.
	Reference string `json:"reference"`
	Bytes     int64  `json:"bytes"` // of the whole
	Kept      int64  `json:"kept"`  // of the whole, that the result still has
}

// Page is a piece of a part that was cut.
type Page struct {
	Reference string `json:"reference"`
	Text      string `json:"text"`
	From      int64  `json:"from"`  // the first byte
	Next      int64  `json:"next"`  // where the next page begins; -1 where this is the last
	Total     int64  `json:"total"` // bytes of the whole
}

// Denial is the receipt of one refused request: what was asked for, which rule
// refused it, and what would allow it.
type Denial struct {
	Permission string `json:"permission"` // files, context, network, …
	Value      string `json:"value"`      // what was asked for, as the guest or the model named it
	Rule       string `json:"rule"`       // what decided
	Allow      Allow  `json:"allow"`
}

// Allow holds the rules that are missing for a refused request, each a JSON object. A rule that
// is there already, that nobody should add, or that cannot be written down is nil, and null in
// JSON. The zero value says that nothing would help. The bytes must not be changed: receipts
// share them.
//
// In a rule, null stands for what only people can say, such as the host directory of a mount.
type Allow struct {
	// Manifest is missing in the tool's manifest, below "permissions":
	// {"network":[{"host":"api.example.com"}]}; or beside that: {"context":["project_id"]}.
	Manifest json.RawMessage `json:"manifest"`
	// Grant is missing in the operator's policy, as an element of "grants":
	// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. One without tools is a key of
	// the policy: {"context":{"project_id":{"from":"fixed","value":null}}}.
	Grant json.RawMessage `json:"grant"`
}

// UnmarshalJSON reads the two rules, of which null is nil again.
func (a *Allow) UnmarshalJSON(data []byte) error {
	var wire struct{ Manifest, Grant *json.RawMessage }
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*a = Allow{}
	if wire.Manifest != nil {
		a.Manifest = *wire.Manifest
	}
	if wire.Grant != nil {
		a.Grant = *wire.Grant
	}
	return nil
}

// Decision is what became of one permission that a manifest asks for.
type Decision struct {
	Permission string `json:"permission"` // files, network, secrets, tools, context or env
	Requested  string `json:"requested"`  // as the manifest has it: "/project (read-write)"
	Granted    string `json:"granted"`    // what the operator gives of it, and where that is written; empty for nothing
	Effective  string `json:"effective"`  // what the tool gets; empty for nothing
	// Reason says which line or grant decided, and what was cut.
	Reason string `json:"reason"`
	// Allow is what would allow the request where Effective is less.
	Allow Allow `json:"allow"`
}

// HostCall is one thing that a call asked of the host, whether or not it got it.
type HostCall struct {
	// Kind names the host function's package and what it was asked for: "files.open",
	// "network.request", "secrets.exists", "tools.call".
	Kind string `json:"kind"`
	// Target is what it was asked about, in a form that is safe to show: a guest path, a URL
	// without its query, a name. It holds no secret, host path or address.
	Target string `json:"target"`
	// Bytes is what was moved, in both directions together.
	Bytes    int64         `json:"bytes"`
	Duration time.Duration `json:"time_ns"`
	Allowed  bool          `json:"allowed"`
	// Status is how it ended, in a word or two: "ok", "denied", "404", "no such file or directory".
	Status string `json:"status"`
	// Began is when; lists are in this order. It is not stored.
	Began time.Time `json:"-"`
}

// MaxHostCalls is how many host calls a record lists; Usage.HostCalls counts all.
const MaxHostCalls = 256

// Usage is what a call took.
type Usage struct {
	// Fuel is how many instructions the tool executed, without those of tools that it called;
	// nil for a call that did not get to run.
	Fuel        *int64        `json:"fuel"`
	MemoryBytes int64         `json:"memory_bytes"` // the largest size of linear memory
	Wall        time.Duration `json:"wall_ns"`      // guest and host functions, without queueing and compiling
	// HostCalls counts the calls that a permission decided. Standard streams, clocks
	// and random numbers need none.
	HostCalls int64 `json:"host_calls"`
}

// Outcome is everything the host knows about a finished invocation.
type Outcome struct {
	Result  Result
	Usage   Usage
	Denials []Denial
	// HostCalls are the first [MaxHostCalls] things that the call asked of the host, in order.
	HostCalls []HostCall
	// Log is what the guest wrote to stderr, capped, and the trace if it trapped. It is
	// for people and never goes back to the model.
	Log string
}

// Repair is one change made to a model's arguments before they were checked.
type Repair struct {
	Path string          `json:"path"`
	Rule string          `json:"rule"`
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// Record is one call and what came of it, as it is stored and streamed.
type Record struct {
	Call
	// CallID is our own id (a UUIDv7); it never repeats.
	CallID string
	Result Result
	// Skipped is set where the call was not run at all: it was refused, or asks what another
	// call of its batch asks, which Source then names.
	Skipped       bool
	ExecutionTime time.Duration
	// Cached is set where the result is that of an earlier call, which Source names.
	Cached bool
	// Source is the CallID of the call whose result this is; empty where it is its own.
	Source string
	// Parent is the CallID of the call that made this one; empty where a model made it.
	Parent  string
	Repairs []Repair
	// Cuts are the parts of Result that were longer than what goes to a model.
	Cuts      []Cut
	Denials   []Denial
	HostCalls []HostCall
	Log       string
	Usage     Usage
}

// wireRecord fixes the names and the order of a record's JSON.
type wireRecord struct {
	ID            string     `json:"id"`
	CallID        string     `json:"call_id"`
	Type          string     `json:"type"`
	Function      Function   `json:"function"`
	Signature     string     `json:"signature,omitempty"`
	Result        string     `json:"result"`
	Success       bool       `json:"success"`
	Skipped       bool       `json:"skipped"`
	ExecutionTime float64    `json:"execution_time"` // seconds
	Cached        bool       `json:"cached"`
	Repairs       []Repair   `json:"repairs"`
	Denials       []Denial   `json:"denials"`
	Log           string     `json:"log"`
	Usage         Usage      `json:"usage"`
	HostCalls     []HostCall `json:"host_calls"`
	Source        string     `json:"source,omitempty"`
	Parent        string     `json:"parent,omitempty"`
	Cuts          []Cut      `json:"cuts,omitempty"`
}

// MarshalJSON writes the wire form: result is JSON as text, as a model expects it,
// and empty lists are [], never null.
func (r Record) MarshalJSON() ([]byte, error) {
	result, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	wire := wireRecord{
		ID: r.ID, CallID: r.CallID, Type: r.Type, Function: r.Function, Signature: r.Signature,
		Result: string(result), Success: r.Result.Success, Skipped: r.Skipped,
		ExecutionTime: r.ExecutionTime.Seconds(), Cached: r.Cached,
		Repairs: r.Repairs, Denials: r.Denials, HostCalls: r.HostCalls, Log: r.Log, Usage: r.Usage,
		Source: r.Source, Parent: r.Parent, Cuts: r.Cuts,
	}
	if wire.Repairs == nil {
		wire.Repairs = []Repair{}
	}
	if wire.Denials == nil {
		wire.Denials = []Denial{}
	}
	if wire.HostCalls == nil {
		wire.HostCalls = []HostCall{}
	}
	return json.Marshal(wire)
}

// UnmarshalJSON reads the wire form.
func (r *Record) UnmarshalJSON(data []byte) error {
	var wire wireRecord
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*r = Record{
		Call:   Call{ID: wire.ID, Type: wire.Type, Function: wire.Function, Signature: wire.Signature},
		CallID: wire.CallID, Skipped: wire.Skipped, Cached: wire.Cached,
		ExecutionTime: time.Duration(math.Round(wire.ExecutionTime * float64(time.Second))),
		Repairs:       wire.Repairs, Denials: wire.Denials, HostCalls: wire.HostCalls, Log: wire.Log, Usage: wire.Usage,
		Source: wire.Source, Parent: wire.Parent, Cuts: wire.Cuts,
	}
	return json.Unmarshal([]byte(wire.Result), &r.Result)
}
