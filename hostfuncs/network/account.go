package network

import (
	"fmt"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/tool"
)

// admit counts a request that begins now and gives it its place in the record.
func (s *Session) admit(now time.Time) (journal.Entry, *Error) {
	entry, count := s.journal.Begin(tool.HostCall{Kind: "network.request", Began: now, Status: "unfinished"})
	if count > int64(s.limits.Calls) {
		return entry, limit("http_calls", int64(s.limits.Calls), fmt.Sprintf("the call may make %d requests", s.limits.Calls))
	}
	return entry, nil
}

// record writes how a request ended.
func (s *Session) record(entry journal.Entry, call tool.HostCall) {
	call.Kind = "network.request"
	s.journal.Change(entry, func(listed *tool.HostCall) { *listed = call })
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
