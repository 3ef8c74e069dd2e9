package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Tool is the output of "caisson inspect" for a tool.
type Tool struct {
	registry.Listing
	Format     json.RawMessage `json:"format,omitempty"` // of a custom tool's text, if the manifest has one
	Idempotent bool            `json:"idempotent"`
	Requires   []requirement   `json:"requires"`
	Module     toolModule      `json:"module"`  // empty if the client runs the tool
	Profile    string          `json:"profile"` // the profile that limits all tools
	Limits     callLimits      `json:"limits"`
	Reuse      reuse           `json:"reuse"`
	Isolation  *isolation      `json:"isolation"`  // null if there is no usable module
	Context    []string        `json:"context"`    // parameters that the host fills in
	Parameters json.RawMessage `json:"parameters"` // as shown to a model
	// ParameterAliases are other names for parameters, with the parameters' own.
	ParameterAliases map[string]string `json:"parameter_aliases"`
}

type reuse struct {
	Seconds float64 `json:"seconds"` // 0 if every call runs
	Reason  string  `json:"reason"`  // from the manifest or the command
}

// requirement is a setting or a directory without which the tool is unavailable.
type requirement struct {
	AnyOf []string `json:"any_of"` // the names of settings and the paths of directories, one of which is enough
	// Requested says whether the manifest requests a variable, a secret or a directory that is one of these. If not,
	// only a program that embeds Caisson can make the setting.
	Requested bool `json:"requested"`
}

type toolModule struct {
	Path        string                `json:"path"`
	SHA256      string                `json:"sha256"`
	Pinned      bool                  `json:"pinned"`
	Bytes       int                   `json:"bytes"`
	Imports     []string              `json:"imports"`
	Exports     []string              `json:"exports"`
	Libraries   []runtime.LibraryInfo `json:"libraries"`    // with which the module is linked
	MemoryBytes int64                 `json:"memory_bytes"` // initial memory of an instance
	Interpreter string                `json:"interpreter"`  // of a script, with its version; empty for a module
	// SeededGenerators are generators whose numbers may repeat in calls that resume from a snapshot.
	SeededGenerators []string `json:"seeded_generators"`
	// Unused are the permissions that the manifest requests and the module cannot use.
	Unused       []string `json:"unused_permissions"`
	SuccessCodes []int    `json:"success_codes"` // exit codes that are no failure
	// StderrPrivate means that models never read what the program writes to standard error.
	StderrPrivate bool   `json:"stderr_private"`
	Problem       string `json:"problem"` // why it cannot be used; empty if it can
}

type callLimits struct {
	TimeoutSeconds float64 `json:"timeout_seconds"`
	MemoryBytes    int64   `json:"memory_bytes"`
	OutputBytes    int64   `json:"output_bytes"`
	StderrBytes    int64   `json:"stderr_bytes"`
	OpenFiles      int     `json:"open_files"`
	DiskBytes      int64   `json:"disk_bytes"`
	HTTPCalls      int     `json:"http_calls"`
	HTTPBytes      int64   `json:"http_bytes"`
	Fuel           int64   `json:"fuel"` // instructions; 0 means no limit
}

type isolation struct {
	Resumed           bool    `json:"resumed"`             // calls resume where the started program first reads its input
	Reason            string  `json:"reason"`              // why they do not; empty if they do
	NoStart           bool    `json:"no_start"`            // whether there is nothing to start
	StartMilliseconds float64 `json:"start_milliseconds"`  // start-up time; 0 if unknown
	StartFuel         int64   `json:"start_fuel"`          // start-up instructions
	StartWouldGain    bool    `json:"start_would_gain"`    // whether "snapshot: start" would save each call the start-up
	NewInstanceReason string  `json:"new_instance_reason"` // why each call needs a new one; empty if instances are reset

	copied bool // calls resume after the functions that start a plug-in
}

// NewTool describes a tool with its limits under a profile. reused is the time for which its answers are reused if its
// manifest does not set one. [Tool.AddModule] and [Tool.AddIsolation] complete the description.
func NewTool(
	listing registry.Listing, m *manifests.Manifest, l runtime.Limits, profile string, reused time.Duration,
) Tool {
	t := Tool{
		Listing: listing, Format: m.Format, Idempotent: m.Behavior.Idempotent, Requires: requirementsOf(m), Profile: profile,
		Limits: callLimits{
			TimeoutSeconds: l.Timeout.Seconds(), MemoryBytes: int64(l.Memory), OutputBytes: int64(l.Output),
			StderrBytes: int64(l.Stderr), OpenFiles: l.OpenFiles, DiskBytes: int64(l.DiskBytes),
			HTTPCalls: l.HTTPCalls, HTTPBytes: int64(l.HTTPBytes), Fuel: l.Fuel,
		},
		Reuse: reuseOf(m.Behavior, reused), Context: jsontext.List(m.Context),
		Parameters: m.ModelParameters, ParameterAliases: map[string]string{},
	}
	for _, alias := range m.ParameterAliases {
		t.ParameterAliases[alias.Name] = alias.Parameter
	}
	return t
}

func requirementsOf(m *manifests.Manifest) []requirement {
	requested := slices.Clone(m.Permissions.Env)
	for _, secret := range m.Permissions.Secrets {
		requested = append(requested, secret.Name)
	}
	for _, files := range m.Permissions.Files {
		requested = append(requested, files.Path.String())
	}
	all := []requirement{}
	for _, required := range m.Requires {
		names := strings.Split(required, "|")
		isRequested := func(name string) bool { return slices.Contains(requested, name) }
		all = append(all, requirement{names, slices.ContainsFunc(names, isRequested)})
	}
	return all
}

// reuseOf returns how long the answers of a tool are reused. usual applies if its manifest does not say.
func reuseOf(b manifests.Behavior, usual time.Duration) reuse {
	switch {
	case !b.ReadOnly:
		return reuse{0, "it is not read_only"}
	case b.Cache == manifests.CacheOff:
		return reuse{0, "the manifest says cache: off"}
	case b.Cache > 0:
		return reuse{b.Cache.Seconds(), "the manifest says so"}
	}
	return reuse{usual.Seconds(), "it is read_only, and the manifest does not set cache"}
}

// AddModule adds the tool's module as its manifest describes it, with the facts read from the file. err is the reason
// why it cannot be used.
func (t *Tool) AddModule(m modules.Module, info runtime.ModuleInfo, err error) {
	t.Module = toolModule{
		Path: m.Path, SHA256: info.SHA256, Pinned: m.SHA256 != "", Bytes: info.Bytes,
		Imports: jsontext.List(slices.Compact(info.Imports)), Exports: jsontext.List(info.Exports),
		Libraries:   jsontext.List(info.Libraries),
		MemoryBytes: info.MemoryBytes, Interpreter: info.Interpreter,
		SeededGenerators: jsontext.List(info.SeededGenerators), Unused: jsontext.List(info.Unused),
		SuccessCodes: slices.Concat([]int{0}, m.SuccessCodes), StderrPrivate: m.Stderr == modules.StderrPrivate,
	}
	if err != nil {
		t.Module.Problem = err.Error()
	}
}

// AddIsolation adds how calls are isolated.
func (t *Tool) AddIsolation(found runtime.Isolation) {
	t.Isolation = &isolation{
		Resumed: found.Resumed, copied: found.Copied, Reason: found.Reason, NoStart: found.NoStart,
		StartMilliseconds: float64(found.StartTime.Microseconds()) / 1000, StartFuel: found.StartFuel,
		StartWouldGain: found.Gain, NewInstanceReason: found.NewInstances,
	}
}

func texts[T any](elements []T, text func(T) string) (all []string) {
	for _, element := range elements {
		all = append(all, text(element))
	}
	return all
}

// Text describes the tool for people. policy is the file name of the operator's policy, or of the one to create.
func (t Tool) Text(policy string) string {
	var b strings.Builder
	title := t.Name
	if t.Label != "" {
		title += ": " + t.Label
	}
	b.WriteString(terminal.EscapeLine(title) + "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(t.Description), "\n") {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("\n")
	if t.Summary != t.Description {
		terminal.Field(&b, "for people", t.Summary)
	}
	terminal.Field(&b, "manifest", t.File)
	for _, f := range [...]struct{ name, text string }{
		{"version", t.Version}, {"category", t.Category}, {"notes", t.behaviour()},
		{"deprecated", cmp.Or(t.Deprecated, &manifests.Deprecated{}).Message},
	} {
		if f.text != "" {
			terminal.Field(&b, f.name, f.text)
		}
	}
	terminal.Field(&b, "requires", texts(t.Requires, requirement.line)...)
	terminal.Field(&b, "keeps out", texts(t.Shadowed, registry.Origin.String)...)
	terminal.Field(&b, "approval", t.approval())
	if t.Execution == manifests.ExecutionClient {
		terminal.Field(&b, "run by",
			"the client: \"caisson batch\" prints the calls, and accepts their outputs with --resume")
	} else {
		terminal.Field(&b, "module", t.Module.lines()...)
		terminal.Field(&b, "profile", t.Profile)
		terminal.Field(&b, "limits", t.Limits.lines()...)
		terminal.Field(&b, "answers", t.Reuse.line())
		terminal.Field(&b, "isolation", t.Isolation.lines()...)
		terminal.Field(&b, "permissions", decisionLines(t.Permissions, t.File, policy)...)
	}
	if len(t.Format) > 0 {
		terminal.Field(&b, "format", "of its text:")
		b.WriteString(indented(t.Format))
	}
	terminal.Field(&b, "parameters", "as a model sees them:")
	b.WriteString(indented(t.Parameters))
	aliases := slices.Sorted(maps.Keys(t.ParameterAliases))
	terminal.Field(&b, "also taken",
		texts(aliases, func(alias string) string { return alias + " for " + t.ParameterAliases[alias] })...)
	return b.String()
}

// approval says whether calls require approval, and why.
func (t Tool) approval() string {
	switch {
	case t.Execution == manifests.ExecutionClient:
		return "not needed: the client sees each call before it runs it"
	case t.Asks != "":
		return "required: " + t.Asks
	case t.Destructive && !slices.ContainsFunc(t.Permissions, func(d tool.Decision) bool { return d.Effective != "" }) &&
		len(t.Permissions) > 0:
		return "not needed: the tool gets none of the permissions that it asks for, so its calls can destroy nothing"
	case t.Destructive:
		return "not needed, although the tool is destructive: the operator has approved it"
	}
	return "not needed"
}

func (t Tool) behaviour() string {
	notes := notesOn(t.Listing)
	if t.Idempotent {
		notes = append(notes, "idempotent")
	}
	if t.Destructive {
		notes = append(notes, "destructive")
	}
	return strings.Join(notes, "; ")
}

func (m toolModule) lines() []string {
	if m.Problem != "" {
		return []string{m.Path, "cannot be used, see below"}
	}
	pin := "not pinned by the manifest"
	if m.Pinned {
		pin = "pinned by the manifest"
	}
	lines := []string{
		fmt.Sprintf("%s, %d bytes", m.Path, m.Bytes),
		fmt.Sprintf("sha256 %s, %s", m.SHA256, pin),
		"starts with " + manifests.Bytes(m.MemoryBytes).String() + " of memory",
		importLine(m.Imports),
	}
	if len(m.Libraries) > 0 {
		lines[0] += " with its libraries"
		lines[1] = fmt.Sprintf("sha256 %s of all of it, %s", m.SHA256, pin)
		for _, l := range m.Libraries {
			line := fmt.Sprintf("its library %s is %s, %d bytes, sha256 %s", l.Name, l.Path, l.Bytes, l.SHA256)
			if l.Unused {
				line += ", and nothing imports from it"
			}
			lines = append(lines, line)
		}
	}
	if m.Interpreter != "" {
		lines = []string{
			fmt.Sprintf("%s, %d bytes with its packages and its driver, run by %s", m.Path, m.Bytes, m.Interpreter),
			fmt.Sprintf("sha256 %s of all of it, %s", m.SHA256, pin),
		}
	}
	if len(m.SuccessCodes) > 1 {
		lines = append(lines, "succeeds with exit codes "+strings.Trim(fmt.Sprint(m.SuccessCodes), "[]"))
	}
	if m.StderrPrivate {
		lines = append(lines, "keeps its standard error from models")
	}
	if len(m.SeededGenerators) > 0 {
		lines = append(lines, "links "+strings.Join(m.SeededGenerators, ", ")+", which a snapshot may repeat")
	}
	if len(m.Unused) > 0 {
		lines = append(lines, "has no import to use "+strings.Join(m.Unused, ", "))
	}
	return lines
}

func (r requirement) line() string {
	line := strings.Join(r.AnyOf, " or ")
	if !r.Requested {
		line += ", which only a program that embeds Caisson can set: the manifest requests no variable or secret of this name"
	}
	return line
}

// line says how long the answer to a call may be reused.
func (r reuse) line() string {
	if r.Seconds == 0 {
		return "every call runs: " + r.Reason
	}
	return fmt.Sprintf("reused for %s for identical calls, until a call may have changed something: %s",
		time.Duration(r.Seconds*float64(time.Second)), r.Reason)
}

func importLine(imports []string) string {
	if len(imports) == 0 {
		return "imports nothing"
	}
	line, last := "imports", ""
	for _, name := range imports {
		module, function, _ := strings.Cut(name, ".")
		if module != last {
			line += " " + module + ":"
			last = module
		}
		line += " " + function
	}
	return line
}

func (l callLimits) lines() []string {
	timeout := time.Duration(l.TimeoutSeconds * float64(time.Second))
	lines := []string{
		fmt.Sprintf("timeout %s, memory %s, output %s, log %s", timeout, manifests.Bytes(l.MemoryBytes),
			manifests.Bytes(l.OutputBytes), manifests.Bytes(l.StderrBytes)),
		fmt.Sprintf("open files %d, disk %s, requests %d with %s", l.OpenFiles, manifests.Bytes(l.DiskBytes), l.HTTPCalls,
			manifests.Bytes(l.HTTPBytes)),
	}
	if l.Fuel > 0 {
		lines = append(lines, fmt.Sprintf("fuel %d instructions", l.Fuel))
	}
	return lines
}

func (i *isolation) lines() []string {
	if i == nil {
		return []string{"fresh for every call"}
	}
	cost := fmt.Sprintf("%s and %d instructions",
		time.Duration(i.StartMilliseconds*float64(time.Millisecond)).Round(10*time.Microsecond), i.StartFuel)
	lines := []string{"fresh for every call: each starts the program again", "reason: " + i.Reason}
	switch {
	case i.NoStart && i.NewInstanceReason == "":
		lines = []string{"fresh for every call: memory and globals are set back to what the module begins with", i.Reason}
	case i.NoStart:
		lines = []string{"fresh for every call: " + i.Reason}
	case i.Resumed:
		lines = []string{
			"fresh for every call: each resumes the program where it first reads its input",
			"each call saves the start-up, " + cost,
		}
		if i.copied {
			lines[0] = "fresh for every call: each gets a copy of the memory that starting the plug-in has left"
		}
	case i.StartWouldGain:
		lines = append(lines, "snapshot: start in the manifest would save each call the start-up, "+cost)
	}
	if i.NewInstanceReason != "" {
		lines = append(lines, "each call has a new instance: "+i.NewInstanceReason)
	}
	return lines
}

// decisionLines describes the decisions on permissions. file has the manifest, and policy is as in text.
func decisionLines(decisions []tool.Decision, file, policy string) []string {
	if len(decisions) == 0 {
		return []string{"none requested"}
	}
	var lines []string
	for _, d := range decisions {
		lines = append(lines, fmt.Sprintf("%s: requests %s", d.Permission, d.Requested),
			"  granted: "+cmp.Or(d.Granted, "nothing"),
			"  gets: "+cmp.Or(d.Effective, "nothing"))
		if !strings.HasPrefix(d.Reason, "granted") {
			lines = append(lines, "  because: "+d.Reason)
		}
		for _, hint := range RemedyOf(d.Allow, file).Hints("the manifest", policy) {
			lines = append(lines, "  "+hint)
		}
	}
	return lines
}

func indented(document json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, document, "  ", "  "); err != nil {
		return "  " + string(document) + "\n"
	}
	return "  " + b.String() + "\n"
}
