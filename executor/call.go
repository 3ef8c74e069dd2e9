package executor

import (
	"fmt"

	"github.com/caisson-run/caisson/tool"
)

// call is one call on its way to its record.
type call struct {
	record tool.Record
	// tool is the registered name, or what was asked for if there is no such tool.
	tool       string
	invocation tool.Invocation
	readOnly   bool
	refused    bool  // the record is complete but for its events
	cause      error // what the operator should see besides the record; may be nil
}

// refuse completes the record of a call that is not run.
func (c *call) refuse(kind tool.Kind, message string, denials ...tool.Denial) {
	c.refused = true
	c.record.Skipped = true
	c.record.Denials = denials
	c.record.Result = tool.Result{Error: message, Kind: kind}
}

// fail completes the record of a call with a failure of the host. The reader gets the
// call's id and nothing else; the log has the cause under the same id.
func (c *call) fail(cause error) {
	c.cause = cause
	c.record.Result = tool.Result{Error: fmt.Sprintf("internal error (id %s)", c.record.CallID), Kind: tool.Internal}
}
