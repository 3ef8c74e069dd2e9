package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

type batch struct {
	executor *Executor
	session  *Session
	id       string
	allowed  *allowed
	parallel int
	share    int // bytes of each result that go to the model
	details  int // bytes of each record's log, denials and host calls
	files    []tool.File
	trace    string
	requests map[string]request        // by registered name
	stream   *Stream                   // nil: no subscriber
	stop     context.CancelFunc        // ends its time
	brought  map[string]registry.Entry // the caller's own tools, by name
	// repairers are those of the caller's own tools, while their calls are planned, and checks is the work of that.
	repairers map[string]*repair.Repairer
	checks    schema.Budget
	revision  int       // how often the batch has paused before
	order     callOrder // of the calls that a model made; only used while they are planned, one after the other

	mu     sync.Mutex
	totals tool.Totals
}

// allows reports whether the agent could call the tool with this registered name when the batch began.
func (b *batch) allows(name string) bool { return b.allowed.began.allows(name) }

type call struct {
	batch  *batch
	record tool.Record
	phase  phase
	// tool is the registered name, or the requested one if the tool is unknown.
	tool       string
	entry      registry.Entry // the zero value if the tool is unknown
	brought    bool           // the tool is one that the caller has brought
	asked      bool           // plan was called
	invocation tool.Invocation
	readOnly   bool
	final      bool  // it succeeded, and its output may be shown to the user unchanged
	wait       *need // nil if it needs nothing from outside
	cause      error // for the operator; may be nil
	inputs     json.RawMessage
	began      time.Time
	// question is the call's question to the cache; nil if the call always runs.
	question *answers.Question[resultKey]
	source   *call // the identical call of the batch whose result this one shares; may be nil

	intended  bool  // the ledger was told that it would run
	submitted bool  // the client has run the call and submitted its output
	parent    *call // the call that made this one; nil if a model did
	depth     int
	made      atomic.Int64 // calls below this one, if it is the outermost caller
	// uncacheable is set if the result must not be cached, for example after a nested call that failed for a transient
	// reason.
	uncacheable atomic.Bool

	mu        sync.Mutex
	cancelled bool
	stop      context.CancelFunc // nil until the call starts

	nested nestedCalls
	answer chan returned[tool.Outcome] // from the tool, or from Abandon; nil until the tool is invoked
	queued time.Duration               // before it was admitted
	// whole is the record's result before parts of it were cut. It is freed when no duplicate needs it.
	whole tool.Result
}

// phase is a call's progress. One goroutine at a time changes it: the one that schedules the batch, or the one
// that runs the call.
type phase int

const (
	phasePlanned   phase = iota // it can run when its turn comes
	phaseWaiting                // it needs an output or an approval
	phaseAnnounced              // likewise, and that was reported
	phaseAnswered               // the client has run it
	phaseRefused                // it is not run, and its record is complete but not reported
	phaseEnded                  // its record is complete and reported
)

// need is the output or approval that a call needs. One goroutine at a time uses it, as with the phase.
type need struct {
	action   tool.Action
	answer   *tool.Result // the client's, once it is submitted
	approved pause.Permit
	before   string // the digest of the calls before it
	effect   effect // to be approved; the zero value for an output
}

// waits reports whether the call needs an output or an approval before it can run or end.
func (c *call) waits() bool { return c.phase == phaseWaiting || c.phase == phaseAnnounced }

// refuse completes the record of a call that is not run.
func (c *call) refuse(kind tool.Kind, message string, denials ...tool.Denial) {
	c.phase = phaseRefused
	c.record.Skipped = true
	c.record.Denials = denials
	c.record.Result = tool.Result{Error: message, Kind: kind}
}

// fail completes the record with a failure of the host. The reader sees only the call's id, under which it is logged.
func (c *call) fail(cause error) {
	c.cause = cause
	c.record.Result = tool.Result{Error: fmt.Sprintf("internal error (id %s)", c.record.CallID), Kind: tool.Internal}
}

// refuseFailed completes the record of a call that is not run because the host failed.
func (c *call) refuseFailed(cause error) {
	c.refuse(tool.Internal, "")
	c.fail(cause)
}

func (c *call) deny(permission, rule string, allow tool.Allow) {
	c.refuse(tool.Denied, rule, tool.Denial{Permission: permission, Value: tool.Shown(c.record.Function.Name, maxShown),
		Rule: rule, Allow: allow})
}

const maxShown = 128 // bytes of a name that a receipt shows

// cancel stops the call, or has it stop as soon as it starts.
func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = true
	if c.stop != nil {
		c.stop()
	}
}

func (c *call) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

func (c *call) start(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	if c.cancelled {
		stop()
	}
	return ctx, stop
}

// ended returns why a context has ended, or nil. A passed deadline counts even if the context's timer is late.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// notStarted explains why a call was not started, given how its context ended.
func notStarted(err error) (tool.Kind, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return tool.Deadline, "the deadline passed before the call started"
	}
	return tool.Cancelled, "the call was cancelled before it started"
}

// isTooLate refuses a call whose time has ended: checking long arguments takes a while.
func (c *call) isTooLate(ctx context.Context) bool {
	err := ended(ctx)
	if err != nil {
		c.refuse(notStarted(err))
	}
	return err != nil
}

// availabilityPermission is the permission in the denial of a call whose tool is unavailable.
const availabilityPermission = "availability"
