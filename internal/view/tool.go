package view

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
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
