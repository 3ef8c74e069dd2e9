package executor

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/tool"
)

// stateVersion is the version of the format of states.
const stateVersion = "caisson-state/v2"

// storedBatch is the JSON of a paused batch. It is immutable.
type storedBatch struct {
	Version  string           `json:"version"`
	ID       string           `json:"id"`
	Revision int              `json:"revision"` // 1 for the first pause of the batch
	Session  string           `json:"session"`  // see [Session.digest]
	Expires  time.Time        `json:"expires"`
	Totals   tool.Totals      `json:"totals"` // of the calls that have ended
	Calls    list[storedCall] `json:"calls"`
}

// storedCall is a call of a paused batch. It has ended, waits, or neither. Its record and its action do not repeat
// the call, so that they cannot contradict it.
type storedCall struct {
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

// jsonText is JSON inside a string, so that databases, which reformat JSON, keep it verbatim.
type jsonText json.RawMessage

// MarshalJSON writes the string.
func (t jsonText) MarshalJSON() ([]byte, error) { return json.Marshal(string(t)) }

// UnmarshalJSON reads the string. It fails if that does not hold JSON.
func (t *jsonText) UnmarshalJSON(text []byte) error {
	var held string
	if err := json.Unmarshal(text, &held); err != nil {
		return err
	}
	if !json.Valid([]byte(held)) {
		return errors.New("the string does not hold JSON")
	}
	*t = jsonText(held)
	return nil
}

// list is a JSON array whose memory is proportional to its text.
type list[E any] []E

// leastElement returns the minimum size of an element as written here.
func leastElement[E any]() (int, error) {
	var empty E
	text, err := json.Marshal(empty)
	return len(text), err
}

// UnmarshalJSON reads the array. It fails for elements below the minimum size, white space aside, which take
// much more memory than text. Each element is checked before the next is read.
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

// element reads one element of a list, of at least the given size.
func element[E any](raw []byte, least int) (read E, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return read, err
	}
	if compact.Len() < least {
		return read, errors.New("it is shorter than any valid element")
	}
	if err := strict(compact.Bytes(), &read); err != nil {
		return read, err
	}
	if checked, ok := any(&read).(interface{ check() error }); ok {
		err = checked.check()
	}
	return read, err
}

// strict reads a single JSON value without unknown members.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the JSON value")
	}
	return nil
}

// stored returns the call as it stands in a state, with what it waits for.
func (c *call) stored() storedCall {
	s := storedCall{CallID: c.record.CallID, Call: c.record.Call}
	switch {
	case c.phase == phaseEnded:
		r := ownRecord(&c.record)
		s.Ended = &storedRecord{
			Final: c.final, Result: storedResult{r.Result, jsonText(r.Result.Data), r.Result.Content},
			Skipped: r.Skipped, ExecutionTime: r.ExecutionTime, Cached: r.Cached, Source: r.Source, Repairs: r.Repairs, Cuts: r.Cuts,
			Denials: each(r.Denials, encodeDenial), HostCalls: r.HostCalls, Log: r.Log, Usage: r.Usage,
		}
	case c.waits():
		a := c.wait.action
		s.Waits = &storedAction{a.Type, a.Tool, jsonText(a.Arguments), a.Hints, a.Reason, a.Fingerprint, each(a.Decisions, encodeDecision), a.Callees}
	}
	return s
}

// record returns a copy of the record of a call that has ended.
func (s *storedCall) record() tool.Record {
	e := s.Ended
	result := e.Result.Result
	result.Data, result.Content = json.RawMessage(e.Result.Data), e.Result.Content
	return ownRecord(&tool.Record{
		Call: s.Call, CallID: s.CallID, Result: result,
		Skipped: e.Skipped, ExecutionTime: e.ExecutionTime, Cached: e.Cached, Source: e.Source, Repairs: e.Repairs, Cuts: e.Cuts,
		Denials: each(e.Denials, storedDenial.decode), HostCalls: e.HostCalls, Log: e.Log, Usage: e.Usage,
	})
}

// action returns a copy of what a call waits for.
func (s *storedCall) action() tool.Action {
	a := s.Waits
	action := tool.Action{
		Type: a.Type, CallID: s.CallID, Call: s.Call, Tool: a.Tool, Arguments: bytes.Clone(a.Arguments), Hints: a.Hints, Reason: a.Reason,
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

// maxRevision is far above how often a batch pauses.
const maxRevision = 1 << 30

// check returns why this cannot be a paused batch.
func (w *storedBatch) check() error {
	switch {
	case w.Version != stateVersion:
		return fmt.Errorf("it is of the version %q, and %q is what can be resumed here; run the batch again", tool.Shown(w.Version, 64), stateVersion)
	case !isID(w.ID):
		return errors.New("the batch id is invalid")
	case w.Revision < 1 || w.Revision > maxRevision:
		return fmt.Errorf("revision %d", w.Revision)
	case !isDigest(w.Session):
		return errors.New("the session is not a digest")
	case w.Expires.IsZero():
		return errors.New("it does not say when it expires")
	}
	ended, waiting := 0, 0
	seen := make(map[string]bool, len(w.Calls))
	for i := range w.Calls {
		c := &w.Calls[i] // already checked when it was read
		if seen[c.CallID] {
			return fmt.Errorf("call %d: its call_id is another's", i)
		}
		seen[c.CallID] = true
		if c.Ended != nil {
			ended++
		}
		if c.Waits != nil {
			waiting++
		}
	}
	if waiting == 0 {
		return errors.New("no call waits for anything")
	}
	return checkTotals(&w.Totals, ended)
}

// maxTotal is far above any total, and small enough that additions do not overflow.
const maxTotal = 1 << 60

func checkTotals(t *tool.Totals, ended int) error {
	all := []int64{int64(t.Calls), int64(t.Nested), int64(t.Succeeded), int64(t.Failed), int64(t.Skipped), int64(t.Cached),
		t.Fuel, t.MemoryBytes, int64(t.Wall), t.HostCalls, t.OutputBytes}
	switch {
	case slices.Min(all) < 0:
		return errors.New("one of its totals is negative")
	case slices.Max(all) > maxTotal:
		return errors.New("one of its totals is too large")
	case t.Calls-t.Nested != ended:
		return fmt.Errorf("totals of %d calls; %d have ended", t.Calls-t.Nested, ended)
	}
	return nil
}

func (c *storedCall) check() error {
	switch {
	case !isID(c.CallID):
		return errors.New("its call_id is invalid")
	case c.Ended != nil && c.Waits != nil:
		return errors.New("it has ended and waits")
	case c.Ended != nil:
		return c.Ended.check()
	case c.Waits != nil:
		return c.Waits.check()
	}
	return nil
}

func (e *storedRecord) check() error {
	switch kind := e.Result.Kind; {
	case e.Result.Success != (kind == ""):
		return fmt.Errorf("success is %t and the kind is %q", e.Result.Success, tool.Shown(string(kind), 32))
	case kind != "" && !slices.Contains(tool.Kinds(), kind):
		return fmt.Errorf("there is no kind %q", tool.Shown(string(kind), 32))
	case e.Final && !e.Result.Success:
		return errors.New("a failure is no final answer")
	case e.Source != "" && !isID(e.Source):
		return errors.New("its source is not a call_id")
	}
	return nil
}

func (a *storedAction) check() error {
	switch {
	case a.Tool == "":
		return errors.New("it waits without a tool")
	case len(a.Arguments) == 0 || a.Arguments[0] != '{':
		return errors.New("it waits without arguments")
	case a.Type == tool.NeedsOutput && (a.Fingerprint != "" || len(a.Decisions)+len(a.Callees) > 0):
		return errors.New("it waits for an output, which has no fingerprint, no permissions and no callees")
	case a.Type == tool.NeedsApproval && !isDigest(a.Fingerprint):
		return errors.New("its fingerprint is invalid")
	case a.Type != tool.NeedsOutput && a.Type != tool.NeedsApproval:
		return fmt.Errorf("it waits for %q", tool.Shown(string(a.Type), 32))
	}
	return nil
}

// isID reports whether a text is an id in canonical form.
func isID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// isDigest reports whether a text is 64 lower-case hex digits.
func isDigest(text string) bool {
	digest, err := hex.DecodeString(text)
	return err == nil && len(digest) == 32 && hex.EncodeToString(digest) == text
}
