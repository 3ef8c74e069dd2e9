package responses

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// openCall is a call that may be incomplete.
type openCall struct {
	pieces.Call
	origin  string
	number  int         // in the order in which calls began
	first   pieces.Text // arguments that it began with
	ended   bool        // its arguments are complete
	settled bool        // the provider says that it is complete
	going   bool        // the provider says that it is not, so it is cut off with the response
	cut     bool        // the provider says that it is incomplete
	passed  bool
}

// head takes the properties that an item has when the call begins.
func (o *openCall) head(r wire.Reader, i *item) error {
	o.Type = i.calls()
	if id := i.id(); id != "" {
		o.ID = id
	}
	if i.Name != "" {
		o.Name = i.Name
	}
	origin, err := wire.Origin(r, wire.Member("namespace", i.Namespace), wire.Member("caller", i.Caller),
		wire.Member("async", i.Async))
	if err != nil {
		return err
	}
	if origin != "" {
		o.origin = origin
	}
	o.first, err = i.arguments(r)
	return err
}

// become takes a complete item.
func (o *openCall) become(r wire.Reader, i *item) error {
	if err := o.head(r, i); err != nil {
		return err
	}
	o.settled, o.cut = i.Status == "completed", i.Status == "incomplete"
	o.going = i.Status != "" && !o.settled
	if o.Name == "" && !o.cut && !o.going {
		return r.Fail("name", "is missing; a call names its tool")
	}
	isSilent := wire.Absent(i.Arguments) && wire.Absent(i.Input) && wire.Absent(i.Action)
	if isSilent && (o.ended || o.Begun()) {
		o.ended = true
		return nil // the pieces are the arguments
	}
	return o.replace(r, o.first)
}

func (o *openCall) replace(r wire.Reader, arguments pieces.Text) error {
	o.ended = true
	o.Replace(arguments)
	return r.Bounded("", o.Len())
}

// Whole returns the call, with the arguments that have come so far.
func (o *openCall) Whole() tool.Call {
	call := o.Call.Whole()
	call.Origin = o.origin
	return call
}

// whole returns the call, and whether it is complete: it may have been truncated with the response.
func (o *openCall) whole(cut, last bool) (tool.Call, bool) {
	if !o.ended && !o.Begun() {
		o.Replace(o.first)
	}
	call := o.Whole()
	switch {
	case o.cut:
		return call, false
	case !cut || o.settled:
		return call, true
	case o.going || call.Function.Name == "":
		return call, false
	case call.Type == tool.LocalShellCall:
		return call, o.ended && !last // half a command may be a valid one
	case call.Type == tool.CustomCall:
		return call, !last
	}
	return call, o.ended && json.Valid([]byte(call.Function.Arguments))
}

// finishedCalls are the calls of a response that has ended.
type finishedCalls struct {
	calls   []tool.Call // with ids
	from    []*openCall // the source of each of calls
	reason  tool.FinishReason
	remarks []string
}

// finishCalls finishes the calls of a response. It leaves out calls that were cut off before they had a name.
func finishCalls(r wire.Reader, opened []*openCall, reason tool.FinishReason) (finishedCalls, error) {
	f := finishedCalls{calls: []tool.Call{}, reason: reason}
	for i, o := range opened {
		call, ok := o.whole(reason.WasCut(), i == len(opened)-1)
		if call.Incomplete = !ok; call.Incomplete && call.Function.Name == "" {
			continue
		}
		if call.Function.Name == "" {
			return finishedCalls{}, r.Fail("", "has arguments for a call that never began")
		}
		f.calls, f.from = append(f.calls, call), append(f.from, o)
	}
	f.remarks = pieces.FillIDs(f.calls)
	if reason == tool.FinishStop && len(f.calls) > 0 {
		f.reason = tool.FinishToolCalls
	}
	return f, nil
}

// slot is a position in the output of a streamed response.
type slot struct {
	kind  string // as in key
	id    string // the item's
	index wire.Integer
	said  bool      // its text has been passed on
	call  *openCall // nil for messages
}

// slots are the positions of a stream's messages and calls.
type slots struct {
	all     []*slot
	byIndex map[wire.Integer]*slot // the latest with each index
	byID    map[string]*slot
	byCall  map[string]*slot // by call_id
	latest  map[string]*slot // by kind
	calls   int
}

// key identifies the item that an event is about.
type key struct {
	Index  *wire.Integer `json:"output_index"`
	ItemID string        `json:"item_id"`
	kind   string        // the item's type, but function_call for calls of all types
	callID string
}

// find returns the slot of the item that an event is about, which may be new.
//
// By the documentation the index identifies it. Some servers give all items the same index, and some make up
// an id for every event: if index and id contradict each other, the call_id decides.
func (s *slots) find(r wire.Reader, k key) (*slot, error) {
	if known := s.known(k); known != nil {
		return known, s.learn(r, known, k)
	}
	if len(s.all) >= maxElements {
		return nil, r.Fail("", "has more than %d items", maxElements)
	}
	if s.byIndex == nil {
		s.byIndex, s.byID = map[wire.Integer]*slot{}, map[string]*slot{}
		s.byCall, s.latest = map[string]*slot{}, map[string]*slot{}
	}
	made := &slot{kind: k.kind}
	if k.Index != nil {
		made.index = *k.Index
		s.byIndex[made.index] = made
	} else if len(s.all) > 0 {
		made.index = s.all[len(s.all)-1].index // it follows the previous item
	}
	s.all = append(s.all, made)
	s.latest[k.kind] = made
	return made, s.learn(r, made, k)
}

func (s *slots) known(k key) *slot {
	fits := func(found *slot) bool {
		if found == nil || found.kind != k.kind {
			return false
		}
		return k.callID == "" || found.call == nil || found.call.ID == "" || found.call.ID == k.callID
	}
	byID := s.byID[k.ItemID]
	if fits(byID) && (k.Index == nil || byID.index == *k.Index) {
		return byID
	}
	if k.Index != nil {
		if found := s.byIndex[*k.Index]; fits(found) {
			return found
		}
	}
	for _, found := range []*slot{byID, s.byCall[k.callID]} {
		if fits(found) {
			return found
		}
	}
	if k.Index == nil && k.ItemID == "" && k.callID == "" {
		return s.latest[k.kind]
	}
	return nil
}

// learn adds the properties of an item in an event to its slot.
func (s *slots) learn(r wire.Reader, known *slot, k key) error {
	if known.id == "" && k.ItemID != "" {
		known.id = k.ItemID
		s.byID[k.ItemID] = known
	}
	if known.kind != functionCall {
		return nil
	}
	if known.call == nil {
		if s.calls >= wire.MaxCalls {
			return r.Fail("", "has one call too many; a response may have %d", wire.MaxCalls)
		}
		known.call = &openCall{number: s.calls}
		s.calls++
	}
	if k.callID != "" {
		s.byCall[k.callID] = known
	}
	return nil
}

func (s *slots) inOrder() []*openCall {
	ordered := slices.Clone(s.all)
	slices.SortStableFunc(ordered, func(a, b *slot) int { return cmp.Compare(a.index, b.index) })
	var calls []*openCall
	for _, place := range ordered {
		if place.call != nil {
			calls = append(calls, place.call)
		}
	}
	return calls
}
