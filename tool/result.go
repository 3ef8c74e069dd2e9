package tool

import (
	"encoding/json"
	"math"
	"time"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Result is the result of a call as it goes back to the model.
type Result struct {
	Success bool `json:"success"`
	// Output is for people and the model.
	Output string `json:"output,omitempty"`
	// Data is for programs: any JSON value. A model reads it if there is no output.
	Data json.RawMessage `json:"data,omitempty"`
	// Content holds parts other than plain text, such as images.
	Content []Content `json:"content,omitempty"`
	// Error says why the call failed, worded for the reader that Kind determines.
	Error string `json:"error,omitempty"`
	// Kind is set by the host on failure, and empty on success.
	Kind Kind `json:"kind,omitempty"`
}

// Size returns the number of bytes of text and data in the result.
func (r *Result) Size() int {
	size := len(r.Output) + len(r.Error) + len(r.Data)
	for i := range r.Content {
		c := &r.Content[i]
		size += len(c.Type) + len(c.Text) + len(c.Data) + len(c.URL) + len(c.Name) + len(c.MIMEType)
	}
	return size
}

// ModelReadsData reports whether a model is sent the data: if there is any, and no output. Otherwise
// only programs read the data, so that a model does not read the same twice.
func (r *Result) ModelReadsData() bool { return r.Output == "" && len(r.Data) > 0 }

// Content is one part of a result.
type Content struct {
	Type     string `json:"type"` // text, image, link or file
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	URL      string `json:"url,omitempty"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

// Cut says how much of one part of a result was cut, because it was too long for the model.
type Cut struct {
	Part string `json:"part"` // output, error, data, or a part of the content, such as "content[2]"
	// Reference identifies the whole part, to read it in pages; empty if it is not kept.
	Reference string `json:"reference"`
	Bytes     int64  `json:"bytes"` // of the whole
	Kept      int64  `json:"kept"`  // that the result still has
}

// Page is a page of a part that was cut.
type Page struct {
	Reference string `json:"reference"`
	Text      string `json:"text"`
	From      int64  `json:"from"`  // the first byte
	Next      int64  `json:"next"`  // where the next page begins; -1 if this is the last
	Total     int64  `json:"total"` // bytes of the whole
}

// Denial is the receipt for one denied request: the request, the rule that denied it, and the rules that
// would allow it.
type Denial struct {
	Permission string `json:"permission"` // files, context, network, …
	Value      string `json:"value"`      // the request, as the guest or the model named it
	Rule       string `json:"rule"`       // the rule that denied it
	Allow      Allow  `json:"allow"`
	// Note says that the refusal does not by itself explain a failure of the call: it came before the
	// tool read its input, when language runtimes look for optional files, or the tool did without.
	Note bool `json:"note,omitempty"`
}

// Allow holds the missing rules that would allow a denied request, each a JSON object. A rule that exists already, that
// should not be added, or that cannot be expressed is nil, and null in JSON. The zero value means that nothing would
// allow the request. The bytes must not be changed, because receipts share them.
//
// In a rule, null takes the place of a value that only people can choose, such as the host directory of a mount.
type Allow struct {
	// Manifest belongs in the tool's manifest, under "permissions":
	// {"network":[{"host":"api.example.com"}]}; or at its top level: {"context":["project_id"]}.
	Manifest json.RawMessage `json:"manifest"`
	// Grant belongs in the operator's policy, as an element of "grants":
	// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. One without tools
	// belongs at the top level of the policy: {"context":{"project_id":{"from":"fixed","value":null}}}.
	Grant json.RawMessage `json:"grant"`
}

// UnmarshalJSON reads the two rules; null becomes nil.
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

// Decision is the decision on one permission that a manifest requests.
type Decision struct {
	Permission string `json:"permission"` // files, network, secrets, tools, context or env
	Requested  string `json:"requested"`  // as in the manifest: "/project (read-write)"
	Granted    string `json:"granted"`    // what the operator grants, and where that is written; empty for nothing
	Effective  string `json:"effective"`  // what the tool gets; empty for nothing
	// Reason names the decisive line or grant, and the parts of the request that were cut.
	Reason string `json:"reason"`
	// Allow is what would allow the whole request, if Effective is less.
	Allow Allow `json:"allow"`
}

// HostCall is one request of a call to the host, allowed or not.
type HostCall struct {
	// Kind names the package and the operation: "files.open", "network.request", "secrets.exists", "tools.call".
	Kind string `json:"kind"`
	// Target is the object of the request in a form that is safe to show: a guest path, a URL without
	// its query, a name. It contains no secret, host path or address.
	Target string `json:"target"`
	// Bytes is the number of bytes transferred in both directions together.
	Bytes    int64         `json:"bytes"`
	Duration time.Duration `json:"time_ns"`
	Allowed  bool          `json:"allowed"`
	// Status is a short outcome: "ok", "denied", "404", "no such file or directory". If there is
	// no space left, it says which limit left none, and where a quota is written.
	Status string `json:"status"`
	// Began is the start time, which lists are sorted by. It is not stored.
	Began time.Time `json:"-"`
}

// MaxHostCalls is the maximum number of host calls that a record lists. Usage.HostCalls counts all.
const MaxHostCalls = 256

// Usage is the resource usage of a call.
type Usage struct {
	// Fuel is the number of instructions that the tool executed, without nested calls; nil if the call did not run.
	Fuel        *int64        `json:"fuel"`
	MemoryBytes int64         `json:"memory_bytes"` // peak size of linear memory
	Wall        time.Duration `json:"wall_ns"`      // in the guest and in host functions, without queueing and compilation
	// HostCalls counts the host calls that need a permission. Standard streams, clocks and random numbers need none.
	HostCalls int64 `json:"host_calls"`
	// Queue is the time that the call waited in the executor's queue and for its rates, but not for earlier calls
	// of its batch. Compile is the time that it then waited for its module.
	Queue   time.Duration `json:"queue_ns,omitempty"`
	Compile time.Duration `json:"compile_ns,omitempty"`
}

// Outcome is everything the host knows about a finished invocation.
type Outcome struct {
	Result  Result
	Usage   Usage
	Denials []Denial
	// HostCalls are the first [MaxHostCalls] host calls, in order.
	HostCalls []HostCall
	// Log is the guest's stderr, truncated, and a stack trace if it trapped. It is for people. Only its end
	// reaches the model, as the reason of a failure that has no other, unless the manifest forbids it.
	Log string
	// Inputs are what the host answered the call, if that was to be recorded; otherwise nil. [Invocation.Replay] takes
	// them. They may be megabytes, and are for the operator.
	Inputs json.RawMessage
}

// Repair is one change made to a model's arguments before validation.
type Repair struct {
	Path string          `json:"path"`
	Rule string          `json:"rule"`
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// Record is one call and its result, as stored and streamed.
type Record struct {
	Call
	// CallID is the host's id (a UUIDv7); it never repeats.
	CallID string
	Result Result
	// Skipped is set if the call did not run because it was refused, or because it repeats another
	// call of its batch, which Source then names.
	Skipped bool
	// ExecutionTime is the duration of the call after the queue: Usage.Compile, Usage.Wall and the host's own work.
	ExecutionTime time.Duration
	// Cached is set if the result is that of an earlier call, which Source names.
	Cached bool
	// Source is the CallID of the call that produced the result; empty if it is this call.
	Source string
	// Parent is the CallID of the calling tool's call; empty if a model made the call.
	Parent string
	// Unrecorded is set if the record should have been kept and could not be.
	Unrecorded bool
	Repairs    []Repair
	// Cuts are the parts of Result that were cut.
	Cuts      []Cut
	Denials   []Denial
	HostCalls []HostCall
	Log       string
	Usage     Usage
	// Redacted is set in a stored record from which the operator's rules have removed something.
	Redacted bool
}

// wireRecord fixes the names and the order of a record's JSON.
type wireRecord struct {
	ID            string     `json:"id"` // of the Call; first, and before call_id
	CallID        string     `json:"call_id"`
	Call                     // without its ID
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
	Unrecorded    bool       `json:"unrecorded,omitempty"`
	Cuts          []Cut      `json:"cuts,omitempty"`
	Redacted      bool       `json:"redacted,omitempty"`
}

// MarshalJSON writes the wire form: result is JSON as text, as models expect it, and empty lists are [], never null.
func (r Record) MarshalJSON() ([]byte, error) {
	result, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	wire := wireRecord{
		ID: r.ID, CallID: r.CallID, Call: r.Call, Result: string(result), Success: r.Result.Success, Skipped: r.Skipped,
		ExecutionTime: r.ExecutionTime.Seconds(), Cached: r.Cached,
		Repairs: jsontext.List(r.Repairs), Denials: jsontext.List(r.Denials), HostCalls: jsontext.List(r.HostCalls),
		Log: r.Log, Usage: r.Usage,
		Source: r.Source, Parent: r.Parent, Unrecorded: r.Unrecorded, Cuts: r.Cuts, Redacted: r.Redacted,
	}
	return jsontext.Encode(wire)
}

// UnmarshalJSON reads the wire form.
func (r *Record) UnmarshalJSON(data []byte) error {
	var wire wireRecord
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	wire.Call.ID = wire.ID
	*r = Record{
		Call: wire.Call, CallID: wire.CallID, Skipped: wire.Skipped, Cached: wire.Cached,
		ExecutionTime: time.Duration(math.Round(wire.ExecutionTime * float64(time.Second))),
		Repairs:       wire.Repairs, Denials: wire.Denials, HostCalls: wire.HostCalls, Log: wire.Log, Usage: wire.Usage,
		Source: wire.Source, Parent: wire.Parent, Unrecorded: wire.Unrecorded, Cuts: wire.Cuts, Redacted: wire.Redacted,
	}
	return json.Unmarshal([]byte(wire.Result), &r.Result)
}
