package executor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// call is one call on its way to its record.
type call struct {
	batch  *batch
	record tool.Record
	// tool is the registered name, or what was asked for if there is no such tool.
	tool       string
	entry      registry.Entry // the zero value if there is no such tool
	invocation tool.Invocation
	readOnly   bool
	refused    bool  // the record is complete but for its events
	ended      bool  // the record is complete, and everybody was told
	final      bool  // it succeeded, and its output may be shown to the user as it is
	wait       *wait // what it needs from outside before it can end; nil for nothing
	cause      error // what the operator should see besides the record; may be nil
	began      time.Time
	// question is what the call asks; nil where it is run in any case.
	question *answers.Question[key]
	source   *call // the call of the same batch whose result this one shares; nil for none

	parent *call // the call that made this one; nil where a model did
	depth  int
	made   *atomic.Int64 // calls made by the outermost caller and all below it
	// unkept is set where a call that this one made failed for a reason that may be gone the
	// next time: the answer says nothing of it then.
	unkept atomic.Bool

	mu        sync.Mutex
	cancelled bool
	stop      context.CancelFunc // nil until the call is taken up

	nest    nest
	answers chan answer // of the tool, or why nobody waits for it any more; nil until it is invoked
	// whole is the record's result before parts of it were cut. It goes as soon as no duplicate needs it.
	whole  tool.Result
	shared bool // result, cuts and whole are the source's
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

// cancel ends the call, or has it end as soon as it is taken up.
func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = true
	if c.stop != nil {
		c.stop()
	}
}

// isCancelled reports whether the call is to end, though it has not been taken up.
func (c *call) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// take returns the context of a call that is taken up now.
func (c *call) take(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	if c.cancelled {
		stop()
	}
	return ctx, stop
}
