package pieces

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// Call is a call of which the pieces are put together. The zero value is ready.
type Call struct {
	ID, Type, Name string
	arguments      strings.Builder
	halves         Halves
}

// Add adds a piece of the arguments and returns what it completes. It returns false where the
// arguments get longer than [dialects.MaxArguments].
func (c *Call) Add(piece Text) (string, bool) {
	text := c.halves.Add(piece)
	c.arguments.WriteString(text)
	return text, c.arguments.Len() <= dialects.MaxArguments
}

// Begun returns whether there are any arguments yet.
func (c *Call) Begun() bool { return c.arguments.Len() > 0 || c.halves.first != 0 }

// Replace puts whole arguments in place of the pieces. It returns false where they are longer
// than [dialects.MaxArguments].
func (c *Call) Replace(whole Text) bool {
	c.arguments, c.halves = strings.Builder{}, Halves{}
	c.arguments.WriteString(whole.String())
	return c.arguments.Len() <= dialects.MaxArguments
}

// Whole returns the call, to which nothing is added any more.
func (c *Call) Whole() tool.Call {
	c.arguments.WriteString(c.halves.End())
	kind := c.Type
	if kind == "" {
		kind = tool.FunctionCall
	}
	return tool.Call{ID: c.ID, Type: kind, Function: tool.Function{Name: c.Name, Arguments: c.arguments.String()}}
}

// Uncut returns the calls that an answer holds whole although it was cut. Of a function's call
// that shows in its arguments, which are JSON only when they are whole; the last call of a
// custom tool may always be the one that was cut.
func Uncut(calls []tool.Call) []tool.Call {
	last := len(calls) - 1
	whole := []tool.Call{}
	for i, call := range calls {
		cut := !json.Valid([]byte(call.Function.Arguments))
		if call.Type == tool.CustomCall {
			cut = i == last
		}
		if !cut {
			whole = append(whole, call)
		}
	}
	return whole
}

// WasCut returns whether a response with this reason may hold calls that are not whole.
func WasCut(reason tool.FinishReason) bool {
	return !slices.Contains([]tool.FinishReason{"", tool.FinishStop, tool.FinishToolCalls}, reason)
}

// FillIDs gives calls without an id one made from their position, "call_0", so that results can
// be matched. It is the same whenever the same calls are read.
func FillIDs(calls []tool.Call) {
	taken := make(map[string]bool, len(calls))
	for _, call := range calls {
		taken[call.ID] = true
	}
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = Free(taken, i)
		}
	}
}

// Free returns the id of the call at a position that has none, and adds it to those taken.
func Free(taken map[string]bool, position int) string {
	id := "call_" + strconv.Itoa(position)
	for taken[id] {
		id += "_"
	}
	taken[id] = true
	return id
}
