package pieces

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// Call assembles a call from its pieces. The zero value is ready.
type Call struct {
	ID, Type, Name string
	arguments      strings.Builder
	halves         Halves
}

// Add adds a piece of the arguments and returns the text that it completes.
func (c *Call) Add(piece Text) string {
	text := c.halves.Add(piece)
	c.arguments.WriteString(text)
	return text
}

// Len returns the length of the arguments so far, in bytes.
func (c *Call) Len() int { return c.arguments.Len() }

// Begun returns whether there are any arguments yet.
func (c *Call) Begun() bool { return c.Len() > 0 || c.halves.first != 0 }

// Replace replaces the pieces with the whole arguments.
func (c *Call) Replace(whole Text) {
	c.arguments, c.halves = strings.Builder{}, Halves{}
	c.arguments.WriteString(whole.String())
}

// Whole returns the call. Nothing may be added afterwards.
func (c *Call) Whole() tool.Call {
	c.arguments.WriteString(c.halves.End())
	return tool.Call{ID: c.ID, Type: cmp.Or(c.Type, tool.FunctionCall),
		Function: tool.Function{Name: c.Name, Arguments: c.arguments.String()}}
}

// Free returns an id for the call at a position, and adds it to those taken.
func Free(taken map[string]bool, position int) string {
	id := "call_" + strconv.Itoa(position)
	for taken[id] {
		id += "_"
	}
	taken[id] = true
	return id
}
