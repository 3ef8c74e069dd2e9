// Package pause implements batches that wait for their client or their approver: the state that is stored meanwhile,
// the answers that resume a batch, and the approvals that a session has.
//
// A state grants nothing: write access to the store of states must not give any authority. What a batch may do comes
// from the session that resumes it, and approvals are kept in [Approvals], never in a [Batch].
package pause

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

// Version is the version of the format of states.
const Version = "caisson-state/v2"

// Batch is the JSON of a paused batch. It is immutable. Other processes read it: a change of its form needs another
// version.
type Batch struct {
	Version  string      `json:"version"`
	ID       string      `json:"id"`
	Revision int         `json:"revision"` // 1 for the first pause of the batch
	Session  string      `json:"session"`  // its digest
	Expires  time.Time   `json:"expires"`
	Totals   tool.Totals `json:"totals"` // of the calls that have ended
	Calls    list[Call]  `json:"calls"`
}

// Call is a call of a paused batch. It has ended, waits, or neither. Its record and its action do not repeat
// the call, so that they cannot contradict it.
type Call struct {
	CallID string        `json:"call_id"`
	Call   tool.Call     `json:"call"`
	Ended  *storedRecord `json:"ended,omitempty"`
	Waits  *storedAction `json:"waits,omitempty"`
}

// storedRecord is a record without its call.
type storedRecord struct {
	Final         bool                `json:"final,omitempty"`
	Result        storedResult        `json:"result"`
	Skipped       bool                `json:"skipped,omitempty"`
	ExecutionTime time.Duration       `json:"execution_ns"`
	Cached        bool                `json:"cached,omitempty"`
	Source        string              `json:"source,omitempty"`
	Unrecorded    bool                `json:"unrecorded,omitempty"`
	Repairs       list[tool.Repair]   `json:"repairs,omitempty"`
	Cuts          list[tool.Cut]      `json:"cuts,omitempty"`
	Denials       list[storedDenial]  `json:"denials,omitempty"`
	HostCalls     list[tool.HostCall] `json:"host_calls,omitempty"`
	Log           string              `json:"log,omitempty"`
	Usage         tool.Usage          `json:"usage"`
}

// storedResult is a [tool.Result] whose JSON is kept verbatim and whose list is bounded.
type storedResult struct {
	tool.Result
	Data    jsonText           `json:"data,omitempty"`
	Content list[tool.Content] `json:"content,omitempty"`
}

// storedAction is an action without its call.
type storedAction struct {
	Type        tool.ActionType      `json:"type"`
	Tool        string               `json:"tool"`
	Arguments   jsonText             `json:"arguments"`
	Hints       tool.Hints           `json:"hints,omitzero"`
	Reason      string               `json:"reason"`
	Fingerprint string               `json:"fingerprint,omitempty"`
	Decisions   list[storedDecision] `json:"permissions,omitempty"`
	Callees     list[tool.Callee]    `json:"callees,omitempty"`
}

// Ended returns a call that has ended with a record. final says that its output may be shown to the user unchanged.
func Ended(record *tool.Record, final bool) Call {
	r := ownRecord(record)
	return Call{CallID: r.CallID, Call: r.Call, Ended: &storedRecord{
		Final: final, Result: storedResult{r.Result, jsonText(r.Result.Data), r.Result.Content},
		Skipped: r.Skipped, ExecutionTime: r.ExecutionTime, Cached: r.Cached, Source: r.Source, Repairs: r.Repairs,
		Unrecorded: r.Unrecorded, Cuts: r.Cuts,
		Denials: each(r.Denials, encodeDenial), HostCalls: r.HostCalls, Log: r.Log, Usage: r.Usage,
	}}
}

// Open returns a call that has not ended. action is the one that it waits for; nil if it was not announced.
func Open(callID string, call tool.Call, action *tool.Action) Call {
	c := Call{CallID: callID, Call: call}
	if a := action; a != nil {
		c.Waits = &storedAction{a.Type, a.Tool, jsonText(a.Arguments), a.Hints, a.Reason, a.Fingerprint,
			each(a.Decisions, encodeDecision), a.Callees}
	}
	return c
}

// Pending returns the actions that the batch waits for, in the order of the calls. It is never nil.
func (b *Batch) Pending() []tool.Action {
	pending := []tool.Action{}
	for i := range b.Calls {
		if b.Calls[i].Waits != nil {
			pending = append(pending, b.Calls[i].Action())
		}
	}
	return pending
}

// Record returns a copy of the record of a call that has ended.
func (s *Call) Record() tool.Record {
	e := s.Ended
	result := e.Result.Result
	result.Data, result.Content = json.RawMessage(e.Result.Data), e.Result.Content
	return ownRecord(&tool.Record{
		Call: s.Call, CallID: s.CallID, Result: result,
		Skipped: e.Skipped, ExecutionTime: e.ExecutionTime, Cached: e.Cached, Source: e.Source, Repairs: e.Repairs,
		Unrecorded: e.Unrecorded, Cuts: e.Cuts,
		Denials: each(e.Denials, storedDenial.decode), HostCalls: e.HostCalls, Log: e.Log, Usage: e.Usage,
	})
}

// ownRecord returns a deep copy: the readers of reports and states may change theirs.
func ownRecord(r *tool.Record) tool.Record {
	own := *r
	own.Result = output.Clone(r.Result)
	own.Repairs, own.Cuts = slices.Clone(r.Repairs), slices.Clone(r.Cuts)
	own.Denials, own.HostCalls = slices.Clone(r.Denials), slices.Clone(r.HostCalls)
	return own
}

// Action returns a copy of the action that a call waits for.
func (s *Call) Action() tool.Action {
	a := s.Waits
	action := tool.Action{
		Type: a.Type, CallID: s.CallID, Call: s.Call, Tool: a.Tool, Arguments: bytes.Clone(a.Arguments), Hints: a.Hints,
		Reason:      a.Reason,
		Fingerprint: a.Fingerprint, Decisions: each(a.Decisions, storedDecision.decode), Callees: slices.Clone(a.Callees),
	}
	action.Call.ID = cmp.Or(action.Call.ID, s.CallID)
	return action
}

// storedDenial is a [tool.Denial], and storedDecision a [tool.Decision], whose rules are kept verbatim: a stored
// decision is compared with what the tool may do when its call is resumed.
type storedDenial struct {
	tool.Denial
	Allow storedAllow `json:"allow"`
}

type storedDecision struct {
	tool.Decision
	Allow storedAllow `json:"allow"`
}

type storedAllow struct {
	Manifest jsonText `json:"manifest,omitempty"`
	Grant    jsonText `json:"grant,omitempty"`
}

func encodeDenial(d tool.Denial) storedDenial { return storedDenial{d, encodeAllow(d.Allow)} }

func (s storedDenial) decode() tool.Denial {
	s.Denial.Allow = s.Allow.decode()
	return s.Denial
}

func encodeDecision(d tool.Decision) storedDecision { return storedDecision{d, encodeAllow(d.Allow)} }

func (s storedDecision) decode() tool.Decision {
	s.Decision.Allow = s.Allow.decode()
	return s.Decision
}

func encodeAllow(a tool.Allow) storedAllow {
	return storedAllow{jsonText(a.Manifest), jsonText(a.Grant)}
}

func (s storedAllow) decode() tool.Allow {
	return tool.Allow{Manifest: json.RawMessage(s.Manifest), Grant: json.RawMessage(s.Grant)}
}

// each maps a slice, and nil to nil.
func each[A, B any](all []A, change func(A) B) []B {
	if all == nil {
		return nil
	}
	changed := make([]B, len(all))
	for i := range all {
		changed[i] = change(all[i])
	}
	return changed
}
