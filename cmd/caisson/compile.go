package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

const compileHelp = `Compile the modules of tools into the cache folder, so that calls need not compile them.

You can put the cache folder into a container image. Commands that run tools use the folder
of --cache-dir, even if they cannot write to it. The folder must belong to root or to the
user who runs the command, and other users must not be able to write to it. If a read-only
cache folder has no code for a module, each command that calls the tool compiles the module,
and does not store the code. Compiled code works only with this version of Caisson and this
kind of processor. "caisson compile" itself fails if it cannot add code to the folder.

SOURCE is a folder or a manifest, as for --tools.`

func newCompile(o options) *cobra.Command {
	command := &cobra.Command{
		Use:   "compile [SOURCE…]",
		Short: "compile modules ahead of time",
		Long:  compileHelp,
		Example: "  caisson compile wasm-tools\n  caisson compile --cache-dir /opt/caisson --config caisson.yaml && chmod " +
			"-R go+rX /opt/caisson",
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			o.tools = append(o.tools, args...)
			return o.compile(command.Context())
		},
	}
	o.sourceFlags(command)
	o.configFlags(command)
	o.compileFlags(command)
	command.Flags().Lookup("cache-dir").Usage = "store compiled code in `DIR` (default: in the user's cache folder)"
	o.outputFlags(command, "print one JSON object")
	return command
}

type compiled struct {
	Folder string         `json:"folder"`
	Tools  []compiledTool `json:"tools"`
}

type compiledTool struct {
	Name    string `json:"name"`
	Problem string `json:"problem"` // the reason why its module was not compiled; empty if it was
}

func (o *options) compile(ctx context.Context) (err error) {
	folder := o.compiledIn()
	if folder == "" {
		return failed(exitUsage, "there is no cache folder to compile into", "name one with --cache-dir DIR")
	}
	h, err := o.open(ctx, openMode{starts: true, fills: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	done := compiled{Folder: folder, Tools: []compiledTool{}}
	var problems failure
	progress := o.newProgress()
	for _, entry := range h.registry.List() {
		t, ok := entry.Tool.(*runtime.Tool)
		if !ok || entry.Manifest.Execution == manifests.ExecutionClient {
			continue
		}
		if h.lacksInterpreter(entry.Manifest) {
			o.hint(entry.Name + " is left out: " + t.Unavailable())
			continue
		}
		prepared := compiledTool{Name: entry.Name}
		progress.during("compiling "+entry.Name, func() { err = t.Prepare(ctx) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			prepared.Problem = err.Error()
			wrong := messageFor(err)
			wrong.text = entry.Name + ": " + wrong.text
			problems.messages = append(problems.messages, wrong)
			problems.code = exitFailed
			if errors.Is(err, runtime.ErrModule) || errors.Is(err, runtime.ErrDigest) {
				problems.code = exitUsage
			}
		}
		done.Tools = append(done.Tools, prepared)
	}
	if err := o.show(done, terminal.Count(len(done.Tools)-len(problems.messages), "tool")+" compiled into "+folder+
		"\n"); err != nil {
		return err
	}
	if len(problems.messages) > 0 {
		return &problems
	}
	if len(h.registry.List()) == 0 {
		o.hint(h.whereTools())
	}
	return nil
}
