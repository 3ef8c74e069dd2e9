package tool

import (
	"encoding/json"
	"time"
)

// Action is what a batch waits for before one of its calls can go on.
type Action struct {
	Type ActionType `json:"type"`
	// CallID is our own id of the call, which is the same before and after the wait.
	CallID string `json:"call_id"`
	// Call is as the model wrote it, but for the id, which is never empty: it is CallID where the
	// model gave none.
	Call Call   `json:"call"`
	Tool string `json:"tool"` // the registered name
	// Arguments are those that were checked: repaired and with defaults, without context values.
	Arguments json.RawMessage `json:"arguments"`
	Hints     Hints           `json:"hints,omitzero"`
	// Reason says why the batch waits, in one sentence for whoever approves or answers.
	Reason string `json:"reason"`
	// Fingerprint is a digest of what an approval is for: this call, by CallID; the tool's module, its
	// manifest and what it is permitted, and the same of the tools that it may call; the complete
	// arguments, on whose behalf the call is made (tenant and user), the context values and the files
	// that the host has for it. It is empty for an output.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Decisions are what the tool may do, for whoever approves; empty for an output.
	Decisions []Decision `json:"permissions,omitempty"`
	// Callees are the tools that the tool may call, and those that these may, by name; empty for an
	// output.
	Callees []Callee `json:"callees,omitempty"`
}

// Callee is a tool that another one may call.
type Callee struct {
	Tool string `json:"tool"` // the registered name
	// Digest is one of all that decides what the tool's calls can do, so that it tells the tool from
	// what replaces it.
	Digest string `json:"digest"`
}

// ActionType says what is waited for.
type ActionType string

// The types of actions.
const (
	// NeedsOutput: the client runs the tool, and submits what came of it as an [Answer].
	NeedsOutput ActionType = "tool_output"
	// NeedsApproval: the call is run once it has been allowed by an [Approval].
	NeedsApproval ActionType = "approval"
)

// Answer answers an action of the type [NeedsOutput].
type Answer struct {
	// CallID is the action's CallID, or the provider's id of the call where one action alone has it.
	CallID string `json:"tool_call_id"`
	Result Result `json:"result"`
}

// Approval answers an action of the type [NeedsApproval].
type Approval struct {
	// CallID is the action's CallID, or the provider's id of the call where one action alone has it.
	CallID  string `json:"call_id"`
	Approve bool   `json:"approve"`
	// Reason is what the model is told of a refusal. Empty: that it was refused.
	Reason string `json:"reason,omitempty"`
	// Fingerprint is that of the action, which proves what was looked at. It is needed to approve. Keep
	// it with what was shown: one that is read from where the batch is kept proves nothing, since
	// whoever can write there can exchange it together with the arguments.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Scope is for what else the approval holds. Empty: for this call alone.
	Scope ApprovalScope `json:"scope,omitempty"`
	// For is for how long it holds, with [ApproveFor], from when it is given. A call that has not
	// begun by then waits for another approval.
	For time.Duration `json:"for_ns,omitempty"`
	// Until is when it ends, with [ApproveFor], in place of For: for approvals that are kept.
	Until time.Time `json:"until,omitzero"`
}

// ApprovalScope says for what else than the call an approval holds: always for calls alone that do the
// same, whose fingerprints differ by the call's id and nothing else.
type ApprovalScope string

// The scopes of an approval.
const (
	ApproveOnce    ApprovalScope = "once"
	ApproveSession ApprovalScope = "session" // as long as the session
	ApproveFor     ApprovalScope = "time"    // in the session, for so long
)
