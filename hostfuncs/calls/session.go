package calls

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/tool"
)

// Session makes the calls of one guest. Guests are single-threaded, so a Session is not safe for concurrent use.
type Session struct {
	permission *Permission
	make       func(ctx context.Context, call tool.Call) (tool.Record, error)
	now        func() time.Time
	// Journal has the calls, allowed or not, and the receipts of those that were denied.
	Journal journal.Journal
}

// Open returns the session of one guest, whose calls are made by a function such as that of [tool.Host]. If it is nil,
// an allowed call fails with [hostfuncs.ErrUnavailable].
func (p *Permission) Open(
	call func(ctx context.Context, call tool.Call) (tool.Record, error), now func() time.Time,
) *Session {
	return &Session{permission: p, make: call, now: now}
}

// Call calls a tool with arguments, the text of a JSON object. The name may be any text. The record holds the outcome
// of the call, reduced to what the guest may see. If the call was not made, the error is an [*hostfuncs.Error].
func (s *Session) Call(ctx context.Context, name, arguments string) (tool.Record, error) {
	noted := tool.HostCall{Kind: "tools.call", Target: tool.Shown(name, maxShown), Bytes: int64(len(arguments)),
		Began: s.now(), Status: string(tool.Internal)}
	entry, count := s.Journal.Begin(noted)
	defer func() { // runs after a panic too
		noted.Duration = s.now().Sub(noted.Began)
		s.Journal.Change(entry, func(call *tool.HostCall) { *call = noted })
	}()
	if denial := s.permission.check(name); denial != nil {
		noted.Status = string(tool.Denied)
		s.Journal.Deny(*denial, nil)
		return tool.Record{}, &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrDenied, Message: denial.Rule, Denial: denial}
	}
	noted.Allowed = true
	if s.make == nil {
		noted.Status = "unavailable"
		const message = "nothing here lets tools call tools"
		return tool.Record{}, &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrUnavailable, Message: message}
	}
	call := tool.Call{Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
	record, err := s.make(ctx, call)
	if err != nil {
		failure, status := notMade(err, count-1)
		noted.Status = status
		return tool.Record{}, failure
	}
	noted.Bytes += int64(record.Result.Size())
	if noted.Status = "ok"; !record.Result.Success {
		noted.Status = string(cmp.Or(record.Result.Kind, tool.ToolFailed))
	}
	return shown(record, call), nil
}

// shown returns the parts of a record that the guest may see, with the call as the guest wrote it.
// The record has no duration: even its number of digits would change the fuel that reading it
// takes, and equal calls must take equal fuel.
func shown(record tool.Record, call tool.Call) tool.Record {
	return tool.Record{
		Call: call, CallID: record.CallID, Parent: record.Parent, Result: record.Result, Skipped: record.Skipped,
		Cached: record.Cached,
		Cuts:   record.Cuts, Denials: record.Denials,
	}
}

// notMade returns the error for a call that could not be made, and its status for the record.
func notMade(err error, before int64) (failure *hostfuncs.Error, status string) {
	failure = &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrHost, Message: "the call could not be made", Cause: err}
	var known *tool.Error
	if !errors.As(err, &known) {
		return failure, string(tool.Internal)
	}
	switch known.Kind {
	case tool.Busy:
		failure.Kind, failure.Limit, failure.Value = hostfuncs.ErrLimit, "tool_calls", before
	case tool.Deadline:
		failure.Kind = hostfuncs.ErrDeadline
	case tool.Internal:
		return failure, string(known.Kind)
	default:
		failure.Kind = hostfuncs.ErrUnavailable
	}
	if known.Message != "" {
		failure.Message = known.Message
	}
	return failure, string(known.Kind)
}
