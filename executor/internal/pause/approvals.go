package pause

import (
	"errors"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caisson-run/caisson/tool"
)

// maxApprovals is the maximum number of approvals that a session keeps.
const maxApprovals = 1000

// Approvals are a session's approvals, by fingerprint; those of single calls also by call id. The oldest are evicted,
// and requested again when needed. It is safe for concurrent use.
type Approvals struct {
	held *lru.Cache[string, tool.Approval] // never asked with Get, so that the least recent is the oldest
}

// NewApprovals returns the approvals that a session begins with, which come from [Approvals.List].
func NewApprovals(given []tool.Approval) (*Approvals, error) {
	held, err := lru.New[string, tool.Approval](maxApprovals)
	if err != nil {
		return nil, err
	}
	approvals := &Approvals{held}
	for i, a := range given {
		if a.Scope == "" || !a.Approve || a.Fingerprint == "" || a.Scope == tool.ApproveOnce && a.CallID == "" {
			return nil, fmt.Errorf("approval %d is not one that Session.Approvals returned", i)
		}
		if err := checkScope(a); err != nil {
			return nil, fmt.Errorf("approval %d: %w", i, err)
		}
		approvals.Keep(a)
	}
	return approvals, nil
}

// Keep adds an approval without its reason, which is not needed again. One for a single call is kept until the
// call runs.
func (s *Approvals) Keep(approval tool.Approval) {
	approval.Reason = ""
	key := approval.Fingerprint
	if approval.Scope == tool.ApproveOnce {
		key = onceKey(approval.CallID, approval.Fingerprint)
	}
	s.held.Add(key, FromNow(approval))
}

// FromNow gives an approval that holds for a time the moment at which it expires.
func FromNow(approval tool.Approval) tool.Approval {
	if approval.Scope == tool.ApproveFor && approval.Until.IsZero() {
		approval.Until, approval.For = time.Now().Add(approval.For), 0
	}
	return approval
}

// Holds reports whether there is an approval with this key that has not expired.
func (s *Approvals) Holds(key string) bool {
	held, ok := s.held.Peek(key)
	return ok && (held.Scope != tool.ApproveFor || time.Now().Before(held.Until))
}

// Take removes the approval of a single call and returns it, to one caller only.
func (s *Approvals) Take(callID, fingerprint string) Permit {
	if key := onceKey(callID, fingerprint); s.Holds(key) && s.held.Remove(key) {
		return Permit{Fingerprint: fingerprint}
	}
	return Permit{}
}

// List returns the approvals that hold, oldest first. It is never nil.
func (s *Approvals) List() []tool.Approval {
	list := []tool.Approval{}
	for _, key := range s.held.Keys() {
		if held, ok := s.held.Peek(key); ok && s.Holds(key) {
			held.Until = held.Until.UTC().Round(0) // without this process's monotonic clock
			list = append(list, held)
		}
	}
	return list
}

// onceKey is the key for the approval of a single call.
func onceKey(callID, fingerprint string) string { return callID + " " + fingerprint }

// Permit is the approval of a single call. The zero value permits nothing.
type Permit struct {
	Fingerprint string
	Until       time.Time // zero: does not expire
}

// Holds reports whether the permit is for this fingerprint and has not expired.
func (p Permit) Holds(fingerprint string) bool {
	return p.Fingerprint != "" && p.Fingerprint == fingerprint && (p.Until.IsZero() || time.Now().Before(p.Until))
}

// checkScope checks the scope and the duration of an approval.
func checkScope(a tool.Approval) error {
	scopes := []tool.ApprovalScope{"", tool.ApproveOnce, tool.ApproveSession, tool.ApproveFor}
	switch {
	case !slices.Contains(scopes, a.Scope):
		return fmt.Errorf("there is no scope %q; want one of %q", tool.Shown(string(a.Scope), 32), scopes[1:])
	case a.Scope == tool.ApproveFor && (a.For <= 0) == a.Until.IsZero(), a.For < 0:
		return errors.New("an approval for a time needs either For, above 0, or Until")
	case a.Scope != tool.ApproveFor && (a.For != 0 || !a.Until.IsZero()):
		return fmt.Errorf("an approval with the scope %q has no time", a.Scope)
	}
	return nil
}
