package manifests

import (
	"encoding/json"
	"time"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// SchemaV1 is the value of a manifest's schema key.
const SchemaV1 = "caisson/v1"

// Manifest describes one tool. Get one from [Load] or [Parse]: defaults are filled in
// and everything in it has been checked.
type Manifest struct {
	// File is where the manifest was read from, as it was named. Module paths are
	// relative to its folder.
	File string

	Name        string
	Label       string
	Description string
	Version     string
	Category    string
	Module      Module
	// Parameters checks complete arguments: the model's and the host's together.
	// Context values that the manifest's schema does not mention are allowed.
	Parameters *schema.Schema
	// ModelParameters is what a model is shown: the schema of the manifest without
	// the context's properties. It is compact JSON with the manifest's key order.
	ModelParameters json.RawMessage
	// Result checks Result.data; nil where the manifest has no such schema.
	Result      *schema.Schema
	Permissions Permissions
	Limits      Limits
	// Context names the parameters that the host fills in, in the manifest's order.
	Context   []string
	Behavior  Behavior
	Execution Execution
	Type      Type // FunctionTool where the manifest does not say
	// Format bounds the free text of a custom tool; see [tool.Definition]. Nil: any text.
	Format json.RawMessage
	// Requires are settings without which the tool cannot be called. An entry such as
	// "A|B" is content with any one of its settings.
	Requires   []string
	Aliases    []string
	Deprecated *Deprecated // nil where the tool is not deprecated
	Tests      []Test

	// lines maps the path of every key in the source ("limits.memory") to its line.
	lines map[string]int
}

// Line returns the line in File on which a key stands, such as "permissions.network",
// or the line of the nearest enclosing key that the file has, or 0 if there is none.
func (m *Manifest) Line(path string) int { return lineOf(m.lines, path) }

// TextParameter returns the name of the parameter that takes the text of a [CustomTool]; "" of
// other tools.
func (m *Manifest) TextParameter() string {
	if m.Type != CustomTool {
		return ""
	}
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(m.ModelParameters, &shown) != nil || len(shown.Properties) != 1 {
		return ""
	}
	for name := range shown.Properties {
		return name
	}
	return ""
}

// Module says which module runs the tool, and how it takes its input.
type Module struct {
	Path   string // a file, relative to the manifest, or an OCI reference ("oci://…")
	SHA256 string // 64 lower-case hex digits; empty for no pin
	ABI    ABI
	Entry  string // extism: the exported function
	// Args is the argv template; nil for none. The program's name is not in it.
	Args   []ArgTemplate
	Stdin  Stdin
	Stdout Stdout
}

// ABI is a guest contract. The zero value leaves it to detection.
type ABI string

// The guest contracts.
const (
	ABIDetect ABI = ""
	ABIWASI   ABI = "wasi"
	ABIExtism ABI = "extism"
)

// Stdin says what a program reads: the arguments object, one argument, or nothing.
type Stdin struct {
	Mode  StdinMode
	Param string // for StdinParam
}

// StdinMode is what kind of thing stands on a guest's standard input.
type StdinMode string

// The forms of standard input.
const (
	StdinArguments StdinMode = "arguments"
	StdinParam     StdinMode = "param"
	StdinNone      StdinMode = "none"
)

// Stdout says how what a program prints becomes a result.
type Stdout string

// The ways of reading a program's output.
const (
	StdoutAuto   Stdout = "auto"
	StdoutResult Stdout = "result"
	StdoutJSON   Stdout = "json"
	StdoutText   Stdout = "text"
)

// Limits are what the tool says it needs. A zero field was not given: the runtime's
// default applies.
type Limits struct {
	Memory    Bytes
	Timeout   time.Duration
	Fuel      int64
	Output    Bytes
	Stderr    Bytes
	HTTPCalls int
	HTTPBytes Bytes
	OpenFiles int
	// DiskBytes is how much one call may add to its directories.
	DiskBytes Bytes
}

// Behavior tells the executor how a tool may be scheduled and shown.
type Behavior struct {
	// ReadOnly: a call changes nothing that any call could see. Calls of such tools run beside
	// each other, and where one asks what another has asked its answer may be given again; a
	// call of any other tool is run alone, and ends that.
	ReadOnly    bool
	Idempotent  bool
	Destructive bool
	// Cache is how long the answer to a call may be given again, of a tool that is ReadOnly.
	// Zero leaves it to the executor, which takes 5 minutes; [CacheOff] has each call run.
	Cache    time.Duration
	Final    bool
	Hidden   bool
	Snapshot Snapshot
}

// CacheOff is the Cache of a tool each call of which is run: "cache: off". It is negative.
const CacheOff time.Duration = -1

// Snapshot says whether calls may resume from the started program.
type Snapshot string

// The snapshot modes.
const (
	SnapshotAuto  Snapshot = "auto"
	SnapshotOff   Snapshot = "off"
	SnapshotStart Snapshot = "start"
)

// Execution says who runs the tool.
type Execution string

// The ways of execution.
const (
	Sandbox Execution = "sandbox"
	Client  Execution = "client"
)

// Type says how calls of a tool are written. Providers have special forms for some; see
// [tool.CustomCall] and [tool.LocalShellCall].
type Type string

// The types of tools.
const (
	FunctionTool   Type = tool.FunctionCall
	CustomTool     Type = tool.CustomCall
	LocalShellTool Type = tool.LocalShellCall
)

// Deprecated marks a tool that has a successor or is going away.
type Deprecated struct {
	Since   string
	Use     string
	Message string
}

// Test is one example call and what is expected of it.
type Test struct {
	Name      string
	Arguments json.RawMessage   // a JSON object as written; {} where not given
	Context   map[string]string // values the host sets
	Files     map[string]string // contents by guest path, written before the call
	Expect    Expect
}

// Expect is what a test expects. Absent fields expect nothing.
type Expect struct {
	Success *bool
	Kind    string            // the failure's kind
	Output  *string           // Result.output, to the letter
	Error   string            // a part of Result.error
	Data    json.RawMessage   // Result.data, as JSON values
	Files   map[string]string // contents by guest path, after the call
}
