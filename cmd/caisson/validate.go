package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/runtime"
)

const validateHelp = `Check manifests, their modules, and policies, and report every problem. PATH is a
manifest, a manifest of Extism, a policy such as caisson.yaml, or a folder. Folders are
searched recursively for manifests, and for a caisson.yaml at the top. Modules are read
but never run. A policy's rules are compared with the tools that it loads and with the
manifests that are checked in the same command. A rule that applies to none of these
causes a warning. There is also a warning if every call of a tool would fail, for example
because a granted directory is missing, and if a manifest in the policy's tool folders
cannot be read.

The exit code is 2 if there are problems and 0 if there are none. The cause of a warning
may be intended. So warnings do not change the exit code, unless --strict is given.`

func newValidate(o options) *cobra.Command {
	v := validation{options: &o}
	command := &cobra.Command{
		Use:     "validate PATH…",
		Short:   "check manifests, modules and policies",
		Long:    validateHelp,
		Example: "  caisson validate wasm-tools caisson.yaml\n  caisson validate tool.yaml --format json",
		Args:    positional(1, -1, "the PATH of a manifest, a policy or a folder"),
		RunE: func(command *cobra.Command, args []string) error {
			return v.run(command.Context(), args)
		},
	}
	command.Flags().StringVar(&v.format, "format", "", "print `FORMAT`: text or json (default text)")
	command.Flags().BoolVar(&v.strict, "strict", false, "exit with 2 if there are warnings, too")
	command.Flags().BoolVar(&v.noModule, "no-module", false, "do not read the modules")
	o.outputFlags(command, "the same as --format json")
	command.Flags().Lookup("quiet").Usage = "print problems and warnings only: no summary"
	return command
}

type validation struct {
	options  *options
	format   string
	noModule bool
	strict   bool
}

func (v *validation) run(ctx context.Context, paths []string) error {
	if v.options.json {
		v.format = cmp.Or(v.format, "json")
	}
	if v.format = cmp.Or(v.format, "text"); v.format != "text" && v.format != "json" {
		return failed(exitUsage, fmt.Sprintf("--format %q: there is no such format", v.format), "text and json are supported")
	}
	if v.options.json && v.format == "text" {
		return failed(exitUsage, "--json and --format text cannot be used together")
	}
	report, err := check.Run(ctx, paths, check.Options{Strict: v.strict, SkipModules: v.noModule, SkipFlag: "--no-module",
		Folders: v.options.folders()})
	if err != nil {
		return err
	}
	if v.format == "json" {
		err = v.options.printJSON(report)
	} else {
		err = v.options.print(view.Report(report, v.options.quiet))
	}
	if err == nil && !report.Valid {
		return &failure{code: exitUsage}
	}
	return err
}

// folders returns the default folders for records and for compiled code.
func (o *options) folders() (folders []check.Folder) {
	if state, err := o.stateFolder(); state != "" && err == nil {
		folders = append(folders, check.Folder{Dir: ledger.In(state), Use: "records of calls are kept in " + state,
			Flag: "--state-dir"})
	}
	if cache, err := runtime.DefaultCacheDir(); err == nil {
		folders = append(folders, check.Folder{Dir: cache, Use: "compiled code is kept in " + cache, Flag: "--cache-dir"})
	}
	return folders
}
