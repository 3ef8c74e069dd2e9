package network

import (
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

const maxDenials = 32 // receipts kept of one session

// admit counts a request that begins now and gives it its place in the record, or -1 where
// that is full.
func (s *Session) admit(now time.Time) (slot int, failed *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	slot = -1
	if len(s.hostCalls) < tool.MaxHostCalls {
		slot = len(s.hostCalls)
		s.hostCalls = append(s.hostCalls, tool.HostCall{Kind: "network.request", Began: now, Status: "unfinished"})
	}
	if s.calls > int64(s.limits.Calls) {
		return slot, limit("http_calls", int64(s.limits.Calls), fmt.Sprintf("the call may make %d requests", s.limits.Calls))
	}
	return slot, nil
}

// record writes how a request ended.
func (s *Session) record(slot int, call tool.HostCall) {
	if slot < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Kind = "network.request"
	s.hostCalls[slot] = call
}

// enter counts an exchange among those that Close cancels and waits for.
func (s *Session) enter(e *exchange) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return unavailable("the call is over", errSessionClosed)
	}
	s.running[e] = struct{}{}
	s.wait.Add(1)
	return nil
}

func (s *Session) leave(e *exchange) {
	s.mu.Lock()
	delete(s.running, e)
	s.mu.Unlock()
	s.wait.Done()
}

// take reserves up to so many bytes, and returns how many.
func (s *Session) take(wanted int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted := min(int64(wanted), s.bytesLeft)
	s.bytesLeft -= granted
	return int(granted)
}

// takeAll reserves so many bytes or none.
func (s *Session) takeAll(wanted int) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(wanted) > s.bytesLeft {
		return s.tooManyBytes()
	}
	s.bytesLeft -= int64(wanted)
	return nil
}

// giveBack returns what was reserved for a request that is not sent.
func (s *Session) giveBack(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesLeft += int64(bytes)
}

func (s *Session) tooManyBytes() *Error {
	return limit("http_bytes", int64(s.limits.Bytes), fmt.Sprintf("the call may send and receive %s", s.limits.Bytes))
}

// addDenial keeps each receipt once, the most recent last: it is the likeliest cause of what
// the guest does next. When there are too many, the last gives way and the first stay, so
// that a flood of refusals cannot hide how it began.
func (s *Session) addDenial(denial tool.Denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denials = slices.DeleteFunc(s.denials, func(d tool.Denial) bool { return d.Value == denial.Value && d.Rule == denial.Rule })
	if len(s.denials) == maxDenials {
		s.denials = s.denials[:maxDenials-1]
	}
	s.denials = append(s.denials, denial)
}
