package tool

import (
	"encoding/json"
	"time"
)

// Action describes the output or the approval that a paused batch needs before one of its calls can continue.
type Action struct {
	Type ActionType `json:"type"`
	// CallID is the host's id of the call. It stays the same when the batch is resumed.
	CallID string `json:"call_id"`
	// Call is the call as the model wrote it, except that its id is CallID if the model gave none.
	Call Call   `json:"call"`
	Tool string `json:"tool"` // the registered name
	// Arguments are the validated arguments, with repairs and defaults but without context values.
	Arguments json.RawMessage `json:"arguments"`
	Hints     Hints           `json:"hints,omitzero"`
	// Reason says why the batch is paused, in one sentence for the person who approves or answers.
	Reason string `json:"reason"`
	// Fingerprint is a digest of everything an approval covers: the CallID and those of the calls before it; the tool's
	// module, manifest and permissions, and those of the tools that it may call; the complete arguments, tenant, user,
	// context values, files and the caller's requests to these tools. It is empty for [NeedsOutput].
	Fingerprint string `json:"fingerprint,omitempty"`
	// Decisions are the tool's permissions, for the person who approves; empty for [NeedsOutput].
	Decisions []Decision `json:"permissions,omitempty"`
	// Callees are the tools that the tool may call, directly or indirectly, by name; empty for [NeedsOutput].
	Callees []Callee `json:"callees,omitempty"`
}

// Callee is a tool that another one may call.
type Callee struct {
	Tool string `json:"tool"` // the registered name
	// Digest covers everything that determines what the tool's calls can do, so that a replaced tool has another one.
	Digest string `json:"digest"`
}

// ActionType says what an [Action] needs.
type ActionType string

// The types of actions.
const (
	// NeedsOutput: the client runs the tool and submits its result as an [Answer].
	NeedsOutput ActionType = "tool_output"
	// NeedsApproval: the call runs after an [Approval] allows it.
	NeedsApproval ActionType = "approval"
)

// Answer is the response to an action of type [NeedsOutput].
type Answer struct {
	// CallID is the action's CallID, or the provider's id of the call if only one action has it.
	CallID string `json:"tool_call_id"`
	Result Result `json:"result"`
}

// Approval is the response to an action of type [NeedsApproval].
type Approval struct {
	// CallID is the action's CallID, or the provider's id of the call if only one action has it.
	CallID  string `json:"call_id"`
	Approve bool   `json:"approve"`
	// Reason tells the model why the call was refused. If it is empty, the model is told only that the call was refused.
	Reason string `json:"reason,omitempty"`
	// Fingerprint is the action's fingerprint, which proves which action was reviewed. An approval needs it.
	// Keep it with the action that was shown to the reviewer. A fingerprint read from the stored batch proves
	// nothing, because anyone who can write there can replace it together with the arguments.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Scope says which other calls the approval covers. Empty: only this call.
	Scope ApprovalScope `json:"scope,omitempty"`
	// For is the time for which the approval is valid once it is given, with [ApproveFor]. A call that has
	// not started by then needs another approval.
	For time.Duration `json:"for_ns,omitempty"`
	// Until is when the approval expires, with [ApproveFor]. Stored approvals set it instead of For.
	Until time.Time `json:"until,omitzero"`
}

// ApprovalScope says which other calls an approval covers. They must do the same: their fingerprints
// may differ only in the ids of the call and of the calls before it.
type ApprovalScope string

// The scopes of an approval.
const (
	ApproveOnce    ApprovalScope = "once"
	ApproveSession ApprovalScope = "session" // until the session ends
	ApproveFor     ApprovalScope = "time"    // in the session, for a limited time
)
