package gemini

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// call is a call as far as it has come.
type call struct {
	call  tool.Call
	open  bool
	tree  node // the arguments of a call that comes in pieces
	bytes int  // of the pieces
}

// madeID is what the id of a call without one begins with; the call's position follows.
const madeID = "gemini-call-"

// position returns which call of its response a made id is of.
func position(id string) (int, bool) {
	digits, made := strings.CutPrefix(id, madeID)
	n, err := strconv.Atoi(digits)
	return n, made && err == nil && n >= 0
}

// call takes a functionCall and the signature beside it, and returns the call if it is whole now.
func (a *assembly) call(path string, f functionCall, signature string) (*call, error) {
	c := a.continued(f)
	if c == nil && f.Name == "" {
		if wire.Absent(f.Args) && wire.Absent(f.PartialArgs) {
			return nil, nil // the end of a call that has ended
		}
		return nil, a.reader.Fail(path+".name", "is missing, and no call goes on; a functionCall names its function")
	}
	if c == nil {
		var err error
		if c, err = a.begin(path, f); err != nil {
			return nil, err
		}
		if !f.WillContinue && wire.Absent(f.PartialArgs) {
			c.open, c.call.Signature = false, signature
			return c, a.whole(path+".args", c, f.Args)
		}
	}
	if signature != "" {
		c.call.Signature = signature
	}
	if args := string(f.Args); !wire.Absent(f.Args) && args != "{}" {
		return nil, a.reader.Fail(path+".args", "comes together with pieces of the arguments; want one or the other")
	}
	if err := wire.Each(a.reader, path+".partialArgs", f.PartialArgs, maxValues, func(path string, _ int, element *json.RawMessage) error {
		return a.piece(path, c, *element)
	}); err != nil || f.WillContinue {
		return nil, err
	}
	return c, a.close(path, c)
}

// continued returns the open call that a functionCall goes on with, or nil: the one with its id,
// or the last, unless that is another function's.
func (a *assembly) continued(f functionCall) *call {
	if f.ID != "" {
		if c := a.byID[f.ID]; c != nil && c.open {
			return c
		}
		return nil
	}
	c := a.last()
	if c != nil && f.Name != "" && (f.Name != c.call.Function.Name || !wire.Absent(f.Args)) {
		return nil
	}
	return c
}

// last returns the open call that began last, or nil.
func (a *assembly) last() *call {
	for n := len(a.open); n > 0; n-- {
		if a.open[n-1].open {
			return a.open[n-1]
		}
		a.open = a.open[:n-1]
	}
	return nil
}

func (a *assembly) begin(path string, f functionCall) (*call, error) {
	if len(a.calls) == dialects.MaxCalls {
		return nil, a.reader.Fail(path, "the response has more than %d calls", dialects.MaxCalls)
	}
	id := f.ID
	if id == "" {
		id = fmt.Sprint(madeID, len(a.calls))
	}
	c := &call{open: true, call: tool.Call{ID: id, Type: "function", Function: tool.Function{Name: f.Name}}}
	a.calls = append(a.calls, c)
	if f.WillContinue || !wire.Absent(f.PartialArgs) {
		a.open = append(a.open, c)
		if a.byID == nil {
			a.byID = map[string]*call{}
		}
		a.byID[id] = c
	}
	return c, nil
}

// whole takes arguments that come at once, as they are written.
func (a *assembly) whole(path string, c *call, args json.RawMessage) error {
	if len(args) > dialects.MaxArguments {
		return a.reader.Fail(path, "has %d bytes, more than %d", len(args), dialects.MaxArguments)
	}
	c.call.Function.Arguments = "{}"
	if !wire.Absent(args) {
		c.call.Function.Arguments = string(args)
	}
	return nil
}

// piece takes one of the partialArgs.
func (a *assembly) piece(path string, c *call, element json.RawMessage) error {
	if c.bytes += len(element); c.bytes > dialects.MaxArguments {
		return a.reader.Fail(path, "the arguments have more than %d bytes", dialects.MaxArguments)
	}
	var p partialArg
	if err := a.reader.Into(path, element, &p); err != nil {
		return err
	}
	steps, err := parsePath(p.JSONPath)
	if err != nil {
		return a.reader.Fail(path+".jsonPath", "%s", err)
	}
	if err := c.tree.put(steps, p, &a.values); err != nil {
		return a.reader.Fail(path, "%s", err)
	}
	return nil
}

func (a *assembly) close(path string, c *call) error {
	c.open = false
	arguments := c.tree.append(nil)
	if len(c.tree.members) == 0 {
		arguments = []byte("{}")
	}
	return a.whole(path, c, arguments)
}
