package executor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Resolver finds tools and runs them. A [*registry.Registry] is one. It must be safe for
// concurrent use. One that wraps a registry should also have the registry's
// method Replacement and be a [registry.SessionCloser]: without the first, calls of retired tools are not told
// what to call instead, and without the second, no tool is told that a session has ended.
type Resolver interface {
	// Get returns the tool with exactly this name or alias.
	Get(name string) (registry.Entry, bool)
	// Nearest returns at most n registered names that resemble name.
	Nearest(name string, n int) []string
	// Invoke runs one call of a tool by its registered name; see [registry.Tool].
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// Recorder keeps the outcome of calls, as a ledger does. It must be safe for concurrent use.
type Recorder interface {
	// Record is called once for each call when it has ended, whether a model or a tool made it, and
	// also for refused calls. The batch does not end before Record returns. ctx outlives the batch. An
	// error changes nothing else; a sample of them is logged, under the calls' ids. The entry must not be modified.
	Record(ctx context.Context, entry Entry) error
}

// Ledger keeps calls durably, so that none which may have had an effect is lost. It must be safe for concurrent use.
type Ledger interface {
	// Intend is called before a call that is not read-only reaches its tool, with the record as it is then. If it fails,
	// the call is not run, and its kind is [tool.Busy].
	Intend(ctx context.Context, entry Entry) error
	// Record keeps a call that has ended. After an error, the record says that it was not kept. If the call was run and
	// is not read-only, its kind is [tool.UnknownOutcome].
	Recorder
}

// Entry is a call that has ended, or, for [Ledger].Intend, one that is about to run.
type Entry struct {
	Record tool.Record
	// Whole is the result before any part of it was cut.
	Whole          tool.Result
	Tool           string // the registered name, or the requested one if the tool is unknown
	Brought        bool   // the caller's request brought the tool, and its name ([Batch].Client)
	Batch, Session string
	Tenant, User   string
	Began          time.Time
	Intended       bool // Intend was called, whether or not it failed
	// Cause is the host's error if the kind of the record's result is [tool.Internal], and empty otherwise. It is only
	// for the operator, since it may contain paths and addresses; the record has only an id in its place.
	Cause string
	// Inputs are those of the call's [tool.Outcome].
	Inputs json.RawMessage
}
