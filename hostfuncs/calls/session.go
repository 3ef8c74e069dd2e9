package calls

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// Maker makes a call, as [tool.Host] has it.
type Maker func(ctx context.Context, call tool.Call) (tool.Record, error)

// Session is what one guest calls. It serves that guest, which is single-threaded, and is not
// safe for concurrent use.
type Session struct {
	permission *Permission
	maker      Maker
	now        func() time.Time
	calls      []tool.HostCall
	count      int64
	denials    []tool.Denial
}

// Open returns the calls of one guest. A nil maker makes none: what is allowed is unavailable.
func (p *Permission) Open(maker Maker, now func() time.Time) *Session {
	return &Session{permission: p, maker: maker, now: now}
}

// Call calls a tool, which may have any name, with a JSON object as text. Whatever became of
// the call is in the record, as the guest may see it. The error, an [*Error], is for a call
// that was not made.
func (s *Session) Call(ctx context.Context, name, arguments string) (tool.Record, error) {
	noted := tool.HostCall{Kind: "tools.call", Target: tool.Shown(name, maxShown), Bytes: int64(len(arguments)), Began: s.now(), Status: string(tool.Internal)}
	before := s.count
	s.count++
	defer func() { // also after a panic
		noted.Duration = s.now().Sub(noted.Began)
		if len(s.calls) < tool.MaxHostCalls {
			s.calls = append(s.calls, noted)
		}
	}()
	if denial := s.permission.Check(name); denial != nil {
		noted.Status = string(tool.Denied)
		s.deny(*denial)
		return tool.Record{}, &Error{Op: "call", Kind: ErrDenied, Message: denial.Rule, Denial: denial}
	}
	noted.Allowed = true
	if s.maker == nil {
		noted.Status = "unavailable"
		return tool.Record{}, &Error{Op: "call", Kind: ErrUnavailable, Message: "nothing here lets tools call tools"}
	}
	call := tool.Call{Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
	record, err := s.maker(ctx, call)
	if err != nil {
		failure, status := notMade(err, before)
		noted.Status = status
		return tool.Record{}, failure
	}
	noted.Bytes += int64(record.Result.Size())
	if noted.Status = "ok"; !record.Result.Success {
		noted.Status = string(cmp.Or(record.Result.Kind, tool.ToolFailed))
	}
	return shown(record, call), nil
}

// shown is a record as the guest may see it. The call is what the guest itself wrote. How long
// the other tool took is not in it, not even as digits more or less to read: equal calls take
// equal fuel.
func shown(record tool.Record, call tool.Call) tool.Record {
	return tool.Record{
		Call: call, CallID: record.CallID, Parent: record.Parent, Result: record.Result, Skipped: record.Skipped, Cached: record.Cached,
		Cuts: record.Cuts, Denials: record.Denials,
	}
}

const maxDenials = 32 // receipts kept of one session

// deny keeps each receipt once, the most recent last: it is the likeliest cause of what the
// guest does next. When there are too many, the last gives way and the first stay, so that a
// flood of refusals cannot hide how it began.
func (s *Session) deny(denial tool.Denial) {
	s.denials = slices.DeleteFunc(s.denials, func(d tool.Denial) bool { return d.Value == denial.Value && d.Rule == denial.Rule })
	if len(s.denials) == maxDenials {
		s.denials = s.denials[:maxDenials-1]
	}
	s.denials = append(s.denials, denial)
}

// Denials returns the receipts.
func (s *Session) Denials() []tool.Denial { return slices.Clone(s.denials) }

// HostCalls returns the first [tool.MaxHostCalls] calls, in order.
func (s *Session) HostCalls() []tool.HostCall { return slices.Clone(s.calls) }

// Count returns how many calls there were, allowed or not.
func (s *Session) Count() int64 { return s.count }
