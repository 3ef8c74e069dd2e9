package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/runtime/interpreters"
)

const inspectHelp = `Show a tool's manifest, module, limits and permissions: for each permission, what the tool
requests, what it gets with the given flags and policy, and what would allow the rest.

No call is made. The program is started in the sandbox, without arguments, files or
network, and stopped when it first reads its input. This shows how long starting takes,
and whether calls can resume a snapshot taken there or must start the program afresh.

NAME is the name or alias of a loaded tool; FILE is a manifest, or a module. For a module,
the command shows whether it is a WASI command, an Extism plug-in or neither, and prints a
manifest to start from. An argument that contains a dot or a path separator is a file.`

func newInspect(o options) *cobra.Command {
	var onlyManifest bool
	command := &cobra.Command{
		Use:     "inspect NAME|FILE",
		Short:   "show what a tool is and what it may do",
		Long:    inspectHelp,
		Example: "  caisson inspect file_read --mount /project=./workspace --context project_id=demo\n  caisson inspect wasm-tools/calculator/tool.yaml --json",
		Args:    positional(1, 1, "a tool's NAME, or the FILE of a manifest or a module"),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case isPath(args[0]) && isMissing(args[0]):
				return failed(exitUsage, quoted(args[0])+": no such file or directory", "write the path of a manifest or a module, or the name of a tool, which has no dot and no separator")
			case isModule(args[0]):
				return o.inspectModule(args[0], onlyManifest)
			case onlyManifest:
				return failed(exitUsage, "--manifest is for a module, and "+quoted(args[0])+" is none", "name a file that ends in .wasm")
			}
			return o.inspect(command.Context(), args[0])
		},
	}
	command.Flags().BoolVar(&onlyManifest, "manifest", false, "of a module: print only a manifest to start from")
	o.toolFlags(command)
	o.agentFlag(command)
	o.stateFlag(command, "with --agent: where agents are stored, `DIR`")
	o.limitFlags(command)
	o.compileFlags(command)
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command)
	command.ValidArgsFunction = func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveDefault
	}
	o.completes(command)
	return command
}

// inspected is what inspect prints as JSON.
type inspected struct {
	registry.Listing
	Format     json.RawMessage `json:"format,omitempty"` // of a custom tool's text, if the manifest has one
	Idempotent bool            `json:"idempotent"`
	Requires   []requirement   `json:"requires"`
	Module     module          `json:"module"`  // empty if the client runs the tool
	Profile    string          `json:"profile"` // the profile that limits all tools
	Limits     callLimits      `json:"limits"`
	Reuse      reuse           `json:"reuse"`
	Isolation  *isolation      `json:"isolation"`  // null if there is no usable module
	Context    []string        `json:"context"`    // parameters that the host fills in
	Parameters json.RawMessage `json:"parameters"` // as shown to a model
	// ParameterAliases are other names for parameters, with the parameters' own.
	ParameterAliases map[string]string `json:"parameter_aliases"`
}

// reuse says whether and how long the answer to a call is reused for identical calls.
type reuse struct {
	Seconds float64 `json:"seconds"` // 0 if every call runs
	Reason  string  `json:"reason"`  // from the manifest or the command
}

func reuseOf(b manifests.Behavior) reuse {
	switch {
	case !b.ReadOnly:
		return reuse{0, "it is not read_only"}
	case b.Cache == manifests.CacheOff:
		return reuse{0, "the manifest says cache: off"}
	case b.Cache > 0:
		return reuse{b.Cache.Seconds(), "the manifest says so"}
	}
	return reuse{reuseFor.Seconds(), "it is read_only, and the manifest does not set cache"}
}

// requirement is a setting or a directory without which the tool is unavailable.
type requirement struct {
	AnyOf []string `json:"any_of"` // the names of settings and the paths of directories, one of which is enough
	// Requested says whether the manifest requests a variable, a secret or a directory that is one of these. If not, only
	// a program that embeds Caisson can make the setting.
	Requested bool `json:"requested"`
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
		all = append(all, requirement{names, slices.ContainsFunc(names, func(name string) bool { return slices.Contains(requested, name) })})
	}
	return all
}

func (r requirement) line() string {
	line := strings.Join(r.AnyOf, " or ")
	if !r.Requested {
		line += ", which only a program that embeds Caisson can set: the manifest requests no variable or secret of this name"
	}
	return line
}

type module struct {
	Path        string                `json:"path"`
	SHA256      string                `json:"sha256"`
	Pinned      bool                  `json:"pinned"`
	Bytes       int                   `json:"bytes"`
	Imports     []string              `json:"imports"`
	Exports     []string              `json:"exports"`
	Libraries   []runtime.LibraryInfo `json:"libraries"`    // with which the module is linked
	MemoryBytes int64                 `json:"memory_bytes"` // initial memory of an instance
	Interpreter string                `json:"interpreter"`  // of a script, with its version; empty for a module
	// SeededGenerators are generators whose numbers may repeat in calls that resume from a
	// snapshot.
	SeededGenerators []string `json:"seeded_generators"`
	// Unused are the permissions that the manifest requests and the module cannot use.
	Unused       []string `json:"unused_permissions"`
	SuccessCodes []int    `json:"success_codes"` // exit codes that are no failure
	// StderrPrivate means that models never read what the program writes to standard error.
	StderrPrivate bool   `json:"stderr_private"`
	Problem       string `json:"problem"` // why it cannot be used; empty if it can
}

// callLimits are the effective limits of each call.
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

// isPath reports whether a word is a path: names of tools have no such characters.
func isPath(word string) bool { return strings.ContainsAny(word, `./\`) }

// unreadableFix says what to name instead of a path that is not a file, or cannot be read.
func unreadableFix(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return namedIn(path)
	}
	return "name a manifest or a module that can be read"
}

// namedIn says how to name a tool instead of the file or folder that it is in.
func namedIn(source string) string {
	return "write the name of a tool, and where it is with --tools " + quoted(source) + "; " + toRun("caisson list --tools "+quoted(source)) + " to see the names"
}

func (o *options) inspect(ctx context.Context, name string) (err error) {
	if isPath(name) {
		if extism.IsManifest(name) {
			tool, err := pluginNamed(name)
			if err != nil {
				return err
			}
			o.only, name = name, tool
		} else {
			m, err := manifests.Load(name)
			if errors.Is(err, manifests.ErrFile) {
				return failed(exitUsage, err.Error(), unreadableFix(name))
			}
			if err != nil {
				return &failure{exitUsage, messagesOf(err)}
			}
			o.only, name = name, m.Name
		}
	}
	h, err := o.open(ctx, opening{starts: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	found, err := h.find(ctx, name, o.newProgress())
	if err != nil {
		return err
	}
	err = o.show(found, found.text(h.operator.file()))
	h.noteUnapplied()
	if i, interprets := interpreters.Recognise(found.Module.SHA256); interprets && found.Module.Interpreter == "" {
		h.options.hint("this module is " + i.Name + ": a script of its own, with module: {script: …}, starts once for all calls; docs/languages has a page about it")
	}
	if err == nil && found.Module.Problem != "" {
		return failed(exitUsage, found.Module.Problem)
	}
	return err
}

func (h *host) find(ctx context.Context, name string, p *progress) (inspected, error) {
	entry, ok := h.registry.Get(name)
	if !ok {
		return inspected{}, h.noSuchTool(name)
	}
	t, ok := entry.Tool.(*runtime.Tool)
	if !ok {
		return inspected{}, fmt.Errorf("%s is not a tool of the runtime", entry.Name)
	}
	m, l := entry.Manifest, t.Limits()
	listing, _ := h.registry.Listing(name)
	allowed, err := h.allowedTools()
	if err != nil {
		return inspected{}, err
	}
	listing.Allowed = allowed == nil || slices.Contains(allowed, listing.Name)
	if h.options.only != "" { // whether the tools that it calls are loaded is not known then
		listing.Permissions = list(t.Decisions())
	}
	found := inspected{
		Listing: listing, Format: m.Format, Idempotent: m.Behavior.Idempotent, Requires: requirementsOf(m),
		Module: moduleOf(m), Profile: h.operator.profile.Name,
		Limits: callLimits{
			TimeoutSeconds: l.Timeout.Seconds(), MemoryBytes: int64(l.Memory), OutputBytes: int64(l.Output),
			StderrBytes: int64(l.Stderr), OpenFiles: l.OpenFiles, DiskBytes: int64(l.DiskBytes),
			HTTPCalls: l.HTTPCalls, HTTPBytes: int64(l.HTTPBytes), Fuel: l.Fuel,
		},
		Reuse: reuseOf(m.Behavior), Context: list(m.Context), Parameters: m.ModelParameters, ParameterAliases: map[string]string{},
	}
	for _, alias := range m.ParameterAliases {
		found.ParameterAliases[alias.Name] = alias.Parameter
	}
	if found.Module.Problem != "" || m.Execution == manifests.ExecutionClient || h.lacksInterpreter(m) {
		return found, nil
	}
	var kept isolation
	p.during("starting "+entry.Name, func() { kept, err = isolationOf(ctx, t) })
	switch {
	case errors.Is(err, runtime.ErrModule), errors.Is(err, runtime.ErrDigest):
		found.Module.Problem = err.Error() // found only when the module is compiled
	case errors.Is(err, runtime.ErrRunaway):
		return inspected{}, h.runaways.failure()
	case err != nil:
		return inspected{}, err
	default:
		found.Isolation = &kept
	}
	return found, nil
}

// noSuchTool says what became of a name that no tool has: it was retired or kept out, or is misspelt.
func (h *host) noSuchTool(name string) error {
	if instead, ok := h.registry.Replacement(name); ok {
		return failed(exitUsage, fmt.Sprintf("the tool %q is retired; %s replaces it", name, instead), toRun(h.options.again("caisson inspect "+instead, toolFlagNames...))+" to see it")
	}
	for _, d := range h.registry.Duplicates() {
		if d.Name == name {
			return failed(exitUsage, keptOut(d), toRun("caisson inspect "+quoted(d.Dropped.File))+" to see what was kept out")
		}
	}
	text := fmt.Sprintf("there is no tool %q", name)
	if near := h.registry.Nearest(name, 3); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return failed(exitUsage, text, h.whereTools())
}

func moduleOf(m *manifests.Manifest) module {
	info, err := runtime.InspectModule(m)
	described := module{
		Path: m.Module.Path, SHA256: info.SHA256, Pinned: m.Module.SHA256 != "", Bytes: info.Bytes,
		Imports: list(slices.Compact(info.Imports)), Exports: list(info.Exports), Libraries: list(info.Libraries), MemoryBytes: info.MemoryBytes, Interpreter: info.Interpreter,
		SeededGenerators: list(info.SeededGenerators), Unused: list(info.Unused),
		SuccessCodes: slices.Concat([]int{0}, m.Module.SuccessCodes), StderrPrivate: m.Module.Stderr == manifests.StderrPrivate,
	}
	if err != nil {
		described.Problem = err.Error()
	}
	return described
}

// isolation describes how calls are isolated, as inspect prints it.
type isolation struct {
	Resumed           bool    `json:"resumed"`             // calls resume where the started program first reads its input
	Reason            string  `json:"reason"`              // why they do not; empty if they do
	NoStart           bool    `json:"no_start"`            // whether there is nothing to start
	StartMilliseconds float64 `json:"start_milliseconds"`  // start-up time; 0 if unknown
	StartFuel         int64   `json:"start_fuel"`          // start-up instructions
	StartWouldGain    bool    `json:"start_would_gain"`    // whether "snapshot: start" would save each call the start-up
	NewInstanceReason string  `json:"new_instance_reason"` // why each call needs a new instance; empty if instances are reset

	copied bool // calls resume behind what starts a plug-in
}

func isolationOf(ctx context.Context, t *runtime.Tool) (isolation, error) {
	found, err := t.Isolation(ctx)
	return isolation{
		Resumed: found.Resumed, copied: found.Copied, Reason: found.Reason, NoStart: found.NoStart,
		StartMilliseconds: float64(found.StartTime.Microseconds()) / 1000, StartFuel: found.StartFuel,
		StartWouldGain: found.Gain, NewInstanceReason: found.NewInstances,
	}, err
}

func (i *isolation) lines() []string {
	if i == nil {
		return []string{"fresh for every call"}
	}
	cost := fmt.Sprintf("%s and %d instructions", time.Duration(i.StartMilliseconds*float64(time.Millisecond)).Round(10*time.Microsecond), i.StartFuel)
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
