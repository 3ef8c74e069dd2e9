package caisson

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Status is how the host answers a call. Every status but 0 is an error, for errors.Is.
type Status uint32

// The statuses.
const (
	statusOK    Status = 0
	Denied      Status = 1 // the manifest does not ask for it, or the operator does not grant it
	Invalid     Status = 2 // the request makes no sense
	Limit       Status = 3 // the call has had as much as it may
	Deadline    Status = 4 // there was no answer in time
	NotFound    Status = 5 // there is no such thing
	IO          Status = 6 // something failed on the way
	Unavailable Status = 7 // the host has nothing that could answer
)

// ErrOutside is what every function fails with in a program that does not run inside Caisson.
var ErrOutside = errors.New("works only inside Caisson")

func (s Status) Error() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

var statusNames = [...]string{"ok", "denied", "invalid", "limit", "deadline", "not found", "io", "unavailable"}

// Error is a call that the host did not answer with success. It matches its Status in errors.Is.
type Error struct {
	Op     string // the function of the host: "caisson:net@1.request"
	Status Status
	// Message says what went wrong, where the status is Invalid, Deadline, IO or Unavailable, and
	// for some limits.
	Message string
	// Denial is the host's receipt, where the status is Denied.
	Denial *Denial
	// LimitName and LimitValue are the limit that was reached, where the status is Limit, such
	// as "http_calls" and 20.
	LimitName  string
	LimitValue int64
}

// Denial says what was refused, why, and what would allow it.
type Denial struct {
	Permission string `json:"permission"`
	Value      string `json:"value"`
	Rule       string `json:"rule"`
	Allow      Allow  `json:"allow"`
}

// Allow holds the rules that are missing for a refused request, each a JSON object. A rule that
// is there already, or that nobody should add, is nil. In a rule, null stands for what only
// people can say, such as the host directory of a mount.
type Allow struct {
	// Manifest is missing in the tool's manifest, below "permissions":
	// {"network":[{"host":"api.example.com"}]}; or beside that: {"context":["project_id"]}.
	Manifest json.RawMessage `json:"manifest"`
	// Grant is missing in the operator's policy, as an element of "grants":
	// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. One without tools is a key of
	// the policy: {"context":{"project_id":{"from":"fixed","value":null}}}.
	Grant json.RawMessage `json:"grant"`
}

// UnmarshalJSON reads the two rules, of which null is nil.
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

// Error says what happened in one sentence, which a tool may pass on as it is.
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
