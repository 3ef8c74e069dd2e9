package manifests

import (
	"encoding/json"
	"time"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/schema"
)

// SchemaV1 is the required value of a manifest's schema key.
const SchemaV1 = "caisson/v1"

// Manifest describes one tool. Get one from [Load] or [Parse], which check all of it and fill in the defaults.
type Manifest struct {
	// File is the path that was given for the manifest. Module paths are relative to its directory.
	File string

	Name  string
	Label string
	// Summary describes the tool to people who choose tools; Description is for models.
	Summary     string
	Description string
	Version     string
	Category    string
	Module      modules.Module
	// Parameters validates complete arguments, with the values of both the model and the host. It
	// allows context values that the manifest's schema does not declare.
	Parameters *schema.Schema
	// ModelParameters is the schema shown to a model: the manifest's schema without the properties
	// of context values. It is compact JSON in the manifest's key order.
	ModelParameters json.RawMessage `json:",omitempty"`
	// Result validates Result.data. It is nil if the manifest has no such schema.
	Result      *schema.Schema
	Permissions Permissions
	Limits      Limits
	// Context names the parameters that the host fills in, in the manifest's order.
	Context   []string
	Behavior  Behavior
	Execution Execution
	// Type says how calls of the tool are written: [tool.FunctionCall], which is the default, [tool.CustomCall] or
	// [tool.LocalShellCall]. Providers have special forms for some types.
	Type string
	// Format restricts the text of a custom tool; see [tool.Definition]. Nil allows any text.
	Format json.RawMessage `json:",omitempty"`
	// Requires lists what the tool cannot be called without: settings, and directories such as "/data" that it requests
	// and the operator has to grant. An entry such as "A|B" requires any one of its parts.
	Requires []string
	Aliases  []string
	// Retired are names of former tools that this one replaces. Calls by them fail and are told its name.
	Retired []string
	// ParameterAliases are other names that callers may use for parameters, in the manifest's order.
	// Models are not told of them.
	ParameterAliases []ParameterAlias
	Deprecated       *Deprecated // nil if neither the tool nor an alias is deprecated
	Tests            []Test

	// places are those of the keys in the source, such as "limits.memory".
	places places
	// origin is that of [ParseTranslated], or nil. An [Index] records no such manifest: it parses files.
	origin func(path string) Place
	// restored is set if the manifest comes from an [Index] and was not parsed.
	restored *restored
}

// Line returns the line of a key in File, such as "permissions.network". If the file does not have
// the key, it returns the line of the nearest enclosing key, or 0 if there is none.
func (m *Manifest) Line(path string) int {
	if m.origin != nil {
		return m.origin(path).Line
	}
	if m.restored != nil && !isRecorded(path) {
		return m.restored.position(path).line
	}
	return m.places.near(path).line
}

// Problem returns a problem at a key in File, or else at the nearest enclosing key.
func (m *Manifest) Problem(path string, kind mistake.Kind, message, fix string) Problem {
	if m.origin != nil {
		at := m.origin(path)
		return problemAt(m.File, position{at.Line, at.Column}, at.Key, kind, message, fix)
	}
	if m.restored != nil {
		return problemAt(m.File, m.restored.position(path), path, kind, message, fix)
	}
	return problemAt(m.File, m.places.near(path), path, kind, message, fix)
}

// ParameterAlias is another name for a parameter, such as one that it had before.
type ParameterAlias struct {
	Name, Parameter string
	// Values translate values. Any other value is passed unchanged.
	Values []AliasValue
}

// AliasValue translates one value that is written under a [ParameterAlias].
type AliasValue struct {
	Written string          // the text of a string, or the JSON of another value
	Means   json.RawMessage `json:",omitempty"` // the parameter's value
}

// Limits are the limits that the tool requests. A zero field means the runtime's default.
type Limits struct {
	Timeout   time.Duration
	Memory    Bytes
	Output    Bytes
	Stderr    Bytes
	OpenFiles int
	// DiskBytes is the maximum that one call may add to its directories.
	DiskBytes Bytes
	HTTPCalls int
	HTTPBytes Bytes
	Fuel      int64
}

// Behavior tells the executor how a tool may be scheduled and shown.
type Behavior struct {
	// ReadOnly means that a call changes nothing that any call can see. Calls of read-only tools run concurrently, and an
	// answer may be reused for an identical call. A call of any other tool runs exclusively and ends that reuse.
	ReadOnly    bool
	Idempotent  bool
	Destructive bool
	// Cache is the time for which the answer to a call of a ReadOnly tool may be reused. Zero means the executor's
	// default, 5 minutes. [CacheOff] disables reuse.
	Cache time.Duration
	Final bool
	// Hidden keeps a tool's calls out of streams, and the tool out of lists for people. The model is
	// offered it all the same.
	Hidden   bool
	Snapshot Snapshot
	// Profile is the parameter that names a profile by which a call is bounded as well; empty if there is none.
	Profile string
}

// CacheOff is the Cache of a tool whose answers are never reused: "cache: off". It is negative.
const CacheOff time.Duration = -1

// Snapshot says whether calls may start from a snapshot of the started program.
type Snapshot string

// Snapshot modes.
const (
	SnapshotAuto  Snapshot = "auto"
	SnapshotOff   Snapshot = "off"
	SnapshotStart Snapshot = "start"
)

// Execution says who runs the tool.
type Execution string

// Ways of execution.
const (
	ExecutionSandbox Execution = "sandbox"
	ExecutionClient  Execution = "client"
	// ExecutionHost is a Go function in the host's process, which no sandbox confines. Manifests in
	// files cannot ask for it; see [ParseFunction].
	ExecutionHost Execution = "host"
)

// Deprecated describes why a tool, or one of its aliases, is deprecated and what replaces it.
type Deprecated struct {
	Since   string `json:"since"`
	Use     string `json:"use"`
	Message string `json:"message"`
	Alias   string `json:"alias,omitempty"` // if set, only calls by this alias are deprecated
}

// DeprecatedAs returns why calls by this name, the tool's own or an alias, are deprecated, or nil.
func (m *Manifest) DeprecatedAs(name string) *Deprecated {
	if m.Deprecated == nil || m.Deprecated.Alias != "" && m.Deprecated.Alias != name {
		return nil
	}
	return m.Deprecated
}

// Test is one example call and its expected result.
type Test struct {
	Name      string
	Arguments json.RawMessage   `json:",omitempty"` // a JSON object as written; {} if absent
	Context   map[string]string // context values that the host sets
	Files     map[string]string // contents by guest path, written before the call
	Expect    Expect
}

// Expect is what a test expects. Absent fields are not checked.
type Expect struct {
	Success *bool
	Kind    string            // the failure's kind
	Output  *string           // Result.output, exactly
	Error   string            // a substring of Result.error
	Data    json.RawMessage   `json:",omitempty"` // Result.data, as JSON values
	Files   map[string]string // contents by guest path, after the call
}
