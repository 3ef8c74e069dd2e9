package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
)

const inspectHelp = `Show a tool's manifest, module, limits and permissions: for each permission, what the tool
requests, what it gets with the given flags and policy, and what would allow the rest.

No call is made. The program is started in the sandbox, without arguments, files or network,
and stopped when it first reads its input. This shows how long starting takes, and whether
calls can resume a snapshot taken at that read, or must start the program anew.

NAME is the name or alias of a loaded tool; FILE is a manifest, or a module. For a module,
the command shows whether it is a WASI command, an Extism plug-in or neither, and prints a
manifest to start from. An argument that contains a dot or a path separator is a file.`

func newInspect(o options) *cobra.Command {
	var onlyManifest bool
	command := &cobra.Command{
		Use:   "inspect NAME|FILE",
		Short: "show what a tool is and what it may do",
		Long:  inspectHelp,
		Example: "  caisson inspect file_read --mount /project=./workspace --context project_id=demo\n  caisson inspect " +
			"wasm-tools/calculator/tool.yaml --json",
		Args: positional(1, 1, "a tool's NAME, or the FILE of a manifest or a module"),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case isPath(args[0]) && check.IsMissing(args[0]):
				return failed(exitUsage, terminal.Quote(args[0])+": no such file or directory",
					"write the path of a manifest or a module, or the name of a tool, which has no dot and no separator")
			case isModule(args[0]):
				return o.inspectModule(args[0], onlyManifest)
			case onlyManifest:
				return failed(exitUsage, "--manifest is for a module, and "+terminal.Quote(args[0])+" is none",
					"name a file that ends in .wasm")
			}
			return o.inspect(command.Context(), args[0])
		},
	}
	command.Flags().BoolVar(&onlyManifest, "manifest", false, "if FILE is a module: print only a manifest to start from")
	o.toolFlags(command)
	o.agentFlag(command, "with --agent: use the agents of the tenant `NAME`")
	o.stateFlag(command, "with --agent: agents are stored in `DIR`")
	o.ledgerFlag(command, "with --agent: agents are stored")
	o.limitFlags(command)
	o.compileFlags(command)
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command)
	command.ValidArgsFunction = func(command *cobra.Command, args []string, _ string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveDefault
	}
	o.completes(command)
	return command
}

// unreadableFix says what to name instead of a path that is not a file, or cannot be read.
func unreadableFix(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return namedIn(path)
	}
	return "name a manifest or a module that can be read"
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
	h, err := o.open(ctx, openMode{starts: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	found, err := h.find(ctx, name, o.newProgress())
	if err != nil {
		return err
	}
	err = o.show(found, found.Text(h.operator.file()))
	h.noteUnapplied()
	if i, interprets := interpreter.Recognise(found.Module.SHA256); interprets && found.Module.Interpreter == "" {
		h.options.hint("this module is " + i.Name +
			": a script of its own, with module: {script: …}, starts once for all calls; docs/languages has a page about it")
	}
	if err == nil && found.Module.Problem != "" {
		return failed(exitUsage, found.Module.Problem)
	}
	return err
}

func (h *host) find(ctx context.Context, name string, p *progress) (view.Tool, error) {
	entry, ok := h.registry.Get(name)
	if !ok {
		return view.Tool{}, h.noSuchTool(name)
	}
	t, ok := entry.Tool.(*runtime.Tool)
	if !ok {
		return view.Tool{}, fmt.Errorf("%s is not a tool of the runtime", entry.Name)
	}
	m := entry.Manifest
	listing, _ := h.registry.Listing(name)
	allowed, err := h.allowedTools(ctx)
	if err != nil {
		return view.Tool{}, err
	}
	listing.Allowed = allowed == nil || slices.Contains(allowed, listing.Name)
	if h.options.only != "" { // whether the tools that it calls are loaded is not known then
		listing.Permissions = jsontext.List(t.Decisions())
	}
	found := view.NewTool(listing, m, t.Limits(), h.operator.profile.Name, reuseFor)
	info, err := runtime.InspectModule(m)
	found.AddModule(m.Module, info, err)
	if found.Module.Problem != "" || m.Execution == manifests.ExecutionClient || h.lacksInterpreter(m) {
		return found, nil
	}
	var kept runtime.Isolation
	p.during("starting "+entry.Name, func() { kept, err = t.Isolation(ctx) })
	switch {
	case errors.Is(err, runtime.ErrModule), errors.Is(err, runtime.ErrDigest):
		found.Module.Problem = err.Error() // found only when the module is compiled
	case errors.Is(err, runtime.ErrRunaway):
		return view.Tool{}, h.runaways.failure()
	case err != nil:
		return view.Tool{}, err
	default:
		found.AddIsolation(kept)
	}
	return found, nil
}

// noSuchTool returns the error for a name that no tool has: it was retired or kept out, or is misspelt.
func (h *host) noSuchTool(name string) error {
	if instead, ok := h.registry.Replacement(name); ok {
		return failed(exitUsage, fmt.Sprintf("the tool %q is retired; %s replaces it", name, instead),
			terminal.ToRun(h.options.repeatFlags("caisson inspect "+instead, toolFlagNames...))+" to see it")
	}
	for _, d := range h.registry.Duplicates() {
		if d.Name == name {
			return failed(exitUsage, view.KeptOut(d), terminal.ToRun("caisson inspect "+terminal.Quote(d.Dropped.File))+
				" to see what was kept out")
		}
	}
	text := fmt.Sprintf("there is no tool %q", name)
	if near := h.registry.Nearest(name, 3); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return failed(exitUsage, text, h.whereTools())
}

func (o *options) inspectModule(path string, onlyManifest bool) error {
	found, err := runtime.RecogniseFile(path)
	if err != nil {
		if text, fix, ok := check.Advice(err); ok {
			return failed(exitUsage, text, fix)
		}
		return failed(exitUsage, err.Error(), "name a WebAssembly module that can be read")
	}
	shown := view.NewModule(path, found)
	what, fix := shown.Lacks()
	switch {
	case o.json:
		return o.printJSON(shown)
	case onlyManifest && what != "":
		return failed(exitUsage, path+" "+what, fix)
	case onlyManifest:
		if len(found.Needed) > 0 {
			o.hint(
				"the module imports functions that need permissions, and the manifest requests examples of them: replace them by " +
					"what the module really uses")
		}
		return o.print(shown.Manifest)
	}
	return o.print(shown.Text())
}

// pluginNamed returns the name of the one tool in a manifest of Extism.
func pluginNamed(file string) (string, error) {
	translated, err := extism.Load(file)
	if err != nil {
		return "", &failure{exitUsage, messagesOf(err)}
	}
	var names []string
	for _, m := range translated.Manifests {
		names = append(names, m.Name)
	}
	if len(names) > 1 {
		return "", failed(exitUsage, file+" makes several tools: "+strings.Join(names, ", "),
			"name one of them, and write --tools "+terminal.Quote(file))
	}
	return names[0], nil
}
