package caisson

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Status is the status of a host call. Every status other than 0 is an error for errors.Is.
type Status uint32

// The statuses.
const (
	statusOK    Status = 0
	Denied      Status = 1 // not requested in the manifest or not granted by the operator
	Invalid     Status = 2 // the request is invalid
	Limit       Status = 3 // the call has reached a limit
	Deadline    Status = 4 // timed out
	NotFound    Status = 5 // does not exist
	IO          Status = 6 // an I/O error
	Unavailable Status = 7 // the host does not provide this
)

// ErrOutside is the error of every function in a program that does not run inside Caisson.
var ErrOutside = errors.New("works only inside Caisson")

func (s Status) Error() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

var statusNames = [...]string{"ok", "denied", "invalid", "limit", "deadline", "not found", "io", "unavailable"}

// Error is a failed host call. It matches its Status in errors.Is.
type Error struct {
	Op     string // the host function: "caisson:net@1.request"
	Status Status
	// Message says what went wrong, if the status is Invalid, Deadline, IO or Unavailable, and for some limits.
	Message string
	// Denial is the host's receipt, if the status is Denied.
	Denial *Denial
	// LimitName and LimitValue are the limit that was reached, such as "http_calls" and 20, if the status is Limit.
	LimitName  string
	LimitValue int64
}

// Denial describes a denied request: its permission and value, the rule that denied it, and the rules that would
// allow it.
type Denial struct {
	Permission string `json:"permission"`
	Value      string `json:"value"`
	Rule       string `json:"rule"`
	Allow      Allow  `json:"allow"`
}

// Allow holds the missing rules that would allow a denied request, each a JSON object. A rule that
// exists already, or that should not be added, is nil. In a rule, null is in place of a value that only people
// can decide, such as the host directory of a mount.
type Allow struct {
	// Manifest belongs in the tool's manifest, under "permissions":
	// {"network":[{"host":"api.example.com"}]}; or at its top level: {"context":["project_id"]}.
	Manifest json.RawMessage `json:"manifest"`
	// Grant belongs in the operator's policy, as an element of "grants":
	// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. One without tools
	// belongs at the top level of the policy: {"context":{"project_id":{"from":"fixed","value":null}}}.
	Grant json.RawMessage `json:"grant"`
}

// UnmarshalJSON reads the two rules; null becomes nil.
func (a *Allow) UnmarshalJSON(data []byte) error {
	var wire struct{ Manifest, Grant *json.RawMessage }
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*a = Allow{}
	if wire.Manifest != nil {
		a.Manifest = *wire.Manifest
	}
	if wire.Grant != nil {
		a.Grant = *wire.Grant
	}
	return nil
}

// Error returns one sentence that a tool may pass on unchanged.
func (e *Error) Error() string {
	switch {
	case e.Denial != nil:
		return fmt.Sprintf("denied: %s %s: %s", e.Denial.Permission, e.Denial.Value, e.Denial.Rule)
	case e.Status == Limit && e.LimitName != "" && e.Message == "":
		return fmt.Sprintf("limit: %s is %d", e.LimitName, e.LimitValue)
	case e.Message != "":
		return e.Status.Error() + ": " + e.Message
	}
	return e.Status.Error()
}

// Unwrap returns the status.
func (e *Error) Unwrap() error { return e.Status }
