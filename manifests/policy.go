package manifests

// PolicyV1 is the value of a policy's schema key.
const PolicyV1 = "caisson-config/v1"

// Policy is what an operator says about tools, in a file such as caisson.yaml. Get one from
// [LoadPolicy]; the zero value says nothing.
type Policy struct {
	// File is where the policy was read from, as it was named.
	File string
	// Tools are folders and manifests to load, in order of precedence. Paths, here and
	// below, are relative to the working directory: those of the file were joined to its
	// folder.
	Tools []string
	// Profile is the name of the profile that bounds all tools; empty: standard.
	Profile string
	// Profiles are those that the policy defines, in its order, complete: what they extend
	// has been filled in.
	Profiles []Profile
	Context  []ContextSource
	Grants   []Grant
	Deny     []PolicyDeny
	// Ask beats Approve: calls of a tool that both name wait for approval.
	Ask     []PolicyAsk
	Approve []PolicyApproval
}

// Profile is a ceiling over all tools.
type Profile struct {
	Name string
	// Limits are the most that a call may have. A zero field is the runtime's own ceiling.
	Limits    Limits
	NoNetwork bool
	NoWrites  bool
}

// ContextOrigin says who may set a context value.
type ContextOrigin string

// The origins of context values.
const (
	FromToken   ContextOrigin = "token"   // a claim of the caller's token
	FromFlag    ContextOrigin = "flag"    // the command line that starts the host
	FromSession ContextOrigin = "session" // the session's own
	Fixed       ContextOrigin = "fixed"   // the policy itself
)

// ContextSource says where one context value comes from.
type ContextSource struct {
	Origin string // where that is written
	Name   string
	From   ContextOrigin
	Value  string // for Fixed
}

// PolicyDeny takes something away from the tools that it names; from all, if it names none.
type PolicyDeny struct {
	Tools []string
	Deny
}
