package responses

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// open is a call that may not be whole yet.
type open struct {
	pieces.Call
	number  int         // in the order in which calls began
	first   pieces.Text // arguments that came when it began
	ended   bool        // its arguments are whole
	settled bool        // the provider says that it is whole
	cut     bool        // the provider says that it is not
	passed  bool
}

// head takes what an item says of a call when it begins.
func (o *open) head(r wire.Reader, path string, i *item) error {
	o.Type = i.calls()
	if id := i.id(); id != "" {
		o.ID = id
	}
	if i.Name != "" {
		o.Name = i.Name
	}
	var err error
	o.first, err = i.arguments(r, path)
	return err
}

// become makes a call what a whole item says it is.
func (o *open) become(r wire.Reader, path string, i *item) error {
	if err := o.head(r, path, i); err != nil {
		return err
	}
	o.settled, o.cut = i.Status == "completed", i.Status == "incomplete"
	if o.Name == "" && !o.cut {
		return r.Fail(wire.Join(path, "name"), "is missing; a call names its tool")
	}
	if i.silent() && (o.ended || o.Begun()) {
		o.ended = true
		return nil // the pieces are all there is
	}
	return o.replace(r, path, o.first)
}

func (o *open) replace(r wire.Reader, path string, arguments pieces.Text) error {
	o.ended = true
	if !o.Replace(arguments) {
		return tooLong(r, path)
	}
	return nil
}

func tooLong(r wire.Reader, path string) error {
	return r.Fail(path, "has arguments of more than %d bytes", dialects.MaxArguments)
}

// whole returns the call, and whether there is one: it may have been cut where the response was.
func (o *open) whole(cut, last bool) (tool.Call, bool) {
	if !o.ended && !o.Begun() {
		o.Replace(o.first)
	}
	call := o.Whole()
	switch {
	case o.cut:
		return call, false
	case !cut || o.settled:
		return call, true
	case call.Function.Name == "":
		return call, false
	case call.Type == tool.LocalShellCall:
		return call, o.ended && !last // half a command is a command, too
	case call.Type == tool.CustomCall:
		return call, !last
	}
	return call, json.Valid([]byte(call.Function.Arguments))
}

// finish returns the calls that are whole, with ids, those that they were put together as, and
// why the model stopped.
func finish(r wire.Reader, opened []*open, reason tool.FinishReason) ([]tool.Call, []*open, tool.FinishReason, error) {
	calls, from := []tool.Call{}, []*open{}
	for i, o := range opened {
		call, ok := o.whole(pieces.WasCut(reason), i == len(opened)-1)
		if !ok {
			continue
		}
		if call.Function.Name == "" {
			return nil, nil, "", r.Fail("", "has arguments for a call that never began, so that its tool is not known")
		}
		calls, from = append(calls, call), append(from, o)
	}
	pieces.FillIDs(calls)
	if reason == tool.FinishStop && len(calls) > 0 {
		reason = tool.FinishToolCalls
	}
	return calls, from, reason, nil
}
