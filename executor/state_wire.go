package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// stateVersion is the form of states that is written and read here.
const stateVersion = "caisson-state/v2"

// wireState is a state's JSON. A call's record and its action do not repeat the call, so that they
// cannot contradict it.
type wireState struct {
	Version  string         `json:"version"`
	ID       string         `json:"id"`
	Revision int            `json:"revision"`
	Session  string         `json:"session"`
	Expires  time.Time      `json:"expires"`
	Totals   tool.Totals    `json:"totals"`
	Calls    list[wireCall] `json:"calls"`
}

type wireCall struct {
	CallID string      `json:"call_id"`
	Call   tool.Call   `json:"call"`
	Ended  *wireEnded  `json:"ended,omitempty"`
	Waits  *wireAction `json:"waits,omitempty"`
}

// wireEnded is a record without its call.
type wireEnded struct {
	Final         bool                `json:"final,omitempty"`
	Result        wireResult          `json:"result"`
	Skipped       bool                `json:"skipped,omitempty"`
	ExecutionTime time.Duration       `json:"execution_ns"`
	Cached        bool                `json:"cached,omitempty"`
	Source        string              `json:"source,omitempty"`
	Repairs       list[tool.Repair]   `json:"repairs,omitempty"`
	Cuts          list[tool.Cut]      `json:"cuts,omitempty"`
	Denials       list[wireDenial]    `json:"denials,omitempty"`
	HostCalls     list[tool.HostCall] `json:"host_calls,omitempty"`
	Log           string              `json:"log,omitempty"`
	Usage         tool.Usage          `json:"usage"`
}

// wireResult is a [tool.Result], the list of which is bounded.
type wireResult struct {
	Success bool               `json:"success"`
	Output  string             `json:"output,omitempty"`
	Data    jsonText           `json:"data,omitempty"`
	Content list[tool.Content] `json:"content,omitempty"`
	Error   string             `json:"error,omitempty"`
	Kind    tool.Kind          `json:"kind,omitempty"`
}

// wireAction is an action without its call.
type wireAction struct {
	Type        tool.ActionType    `json:"type"`
	Tool        string             `json:"tool"`
	Arguments   jsonText           `json:"arguments"`
	Hints       tool.Hints         `json:"hints,omitzero"`
	Reason      string             `json:"reason"`
	Fingerprint string             `json:"fingerprint,omitempty"`
	Decisions   list[wireDecision] `json:"permissions,omitempty"`
	Callees     list[tool.Callee]  `json:"callees,omitempty"`
}

// jsonText is JSON that stands in a string, so that it stays as it was: databases write JSON anew.
type jsonText json.RawMessage

// MarshalJSON writes the string.
func (t jsonText) MarshalJSON() ([]byte, error) { return json.Marshal(string(t)) }

// UnmarshalJSON reads the string. It fails where that holds no JSON.
func (t *jsonText) UnmarshalJSON(text []byte) error {
	var held string
	if err := json.Unmarshal(text, &held); err != nil {
		return err
	}
	if !json.Valid([]byte(held)) {
		return errors.New("a text holds no JSON")
	}
	*t = jsonText(held)
	return nil
}

// list is a JSON array that takes memory in proportion to its text.
type list[E any] []E

// leastElement returns how many bytes each element has at least that is written here.
func leastElement[E any]() (int, error) {
	var empty E
	text, err := json.Marshal(empty)
	return len(text), err
}

// UnmarshalJSON reads the array. It fails for elements that are shorter than any, white space aside:
// those cost much more in memory than as text. Elements that can be checked are, each before the
// next is read.
func (l *list[E]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*l = nil
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(errors.New("want a list"), err)
	}
	var read []E
	least := 0
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if least == 0 {
			var err error
			if least, err = leastElement[E](); err != nil {
				return err
			}
		}
		element, err := element[E](raw, least)
		if err != nil {
			return fmt.Errorf("element %d: %w", len(read), err)
		}
		read = append(read, element)
	}
	*l = read
	return nil
}

// element reads one element of a list, which has at least so many bytes.
func element[E any](raw []byte, least int) (read E, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return read, err
	}
	if compact.Len() < least {
		return read, errors.New("it is shorter than any")
	}
	if err := strict(compact.Bytes(), &read); err != nil {
		return read, err
	}
	if checked, ok := any(&read).(interface{ check() error }); ok {
		err = checked.check()
	}
	return read, err
}

// strict reads one JSON value without members that are not known.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func (b *storedBatch) encode() ([]byte, error) {
	wire := wireState{
		Version: stateVersion, ID: b.id, Revision: b.revision, Session: b.session, Expires: b.expires, Totals: b.totals,
		Calls: make(list[wireCall], len(b.calls)),
	}
	for i := range b.calls {
		wire.Calls[i] = b.calls[i].encode()
	}
	text, err := json.Marshal(wire)
	if err == nil && len(text) > MaxStateBytes {
		err = fmt.Errorf("the state has %d bytes; at most %d can be stored", len(text), MaxStateBytes)
	}
	return text, err
}

func (s *storedCall) encode() wireCall {
	w := wireCall{CallID: s.callID, Call: s.call}
	if r := s.record; r != nil {
		w.Ended = &wireEnded{
			Final: s.final, Result: wireResult{r.Result.Success, r.Result.Output, jsonText(r.Result.Data), r.Result.Content, r.Result.Error, r.Result.Kind},
			Skipped: r.Skipped, ExecutionTime: r.ExecutionTime, Cached: r.Cached, Source: r.Source, Repairs: r.Repairs, Cuts: r.Cuts,
			Denials: each(r.Denials, encodeDenial), HostCalls: r.HostCalls, Log: r.Log, Usage: r.Usage,
		}
	}
	if a := s.action; a != nil {
		w.Waits = &wireAction{a.Type, a.Tool, jsonText(a.Arguments), a.Hints, a.Reason, a.Fingerprint, each(a.Decisions, encodeDecision), a.Callees}
	}
	return w
}

// decodeState reads a state of which nothing is known but that it is not too long.
func decodeState(document []byte) (*storedBatch, error) {
	var wire wireState
	if err := strict(document, &wire); err != nil {
		return nil, err
	}
	if err := wire.check(); err != nil {
		return nil, err
	}
	b := &storedBatch{
		id: wire.ID, revision: wire.Revision, session: wire.Session, expires: wire.Expires.UTC(), totals: wire.Totals, calls: make([]storedCall, len(wire.Calls)),
	}
	for i := range wire.Calls {
		b.calls[i] = wire.Calls[i].decode()
	}
	return b, nil
}

func (w *wireCall) decode() storedCall {
	s := storedCall{callID: w.CallID, call: w.Call}
	if e := w.Ended; e != nil {
		s.final = e.Final
		s.record = &tool.Record{
			Call: w.Call, CallID: w.CallID, Result: tool.Result{Success: e.Result.Success, Output: e.Result.Output, Data: json.RawMessage(e.Result.Data), Content: e.Result.Content, Error: e.Result.Error, Kind: e.Result.Kind},
			Skipped: e.Skipped, ExecutionTime: e.ExecutionTime, Cached: e.Cached, Source: e.Source, Repairs: e.Repairs, Cuts: e.Cuts,
			Denials: each(e.Denials, wireDenial.decode), HostCalls: e.HostCalls, Log: e.Log, Usage: e.Usage,
		}
	}
	if a := w.Waits; a != nil {
		s.action = &tool.Action{
			Type: a.Type, CallID: w.CallID, Call: w.Call, Tool: a.Tool, Arguments: json.RawMessage(a.Arguments), Hints: a.Hints, Reason: a.Reason, Fingerprint: a.Fingerprint, Decisions: each(a.Decisions, wireDecision.decode), Callees: a.Callees,
		}
		s.action.Call.ID = or(s.action.Call.ID, w.CallID)
	}
	return s
}
