package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/runtime"
)

// environment is what the command reads from and writes to.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	compiler       runtime.Compiler
	args           []string       // the command line, without the program
	exit           func(code int) // ends the process; nil where the command is not all of it
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	env.args = args
	root := newRoot(env)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	// The flag is missing where the command line never got as far as its parsing.
	quiet, _ := command.Flags().GetBool("quiet")
	return report(ctx, env, err, quiet)
}

const rootHelp = `Caisson runs untrusted tools for AI agents. A tool is a WebAssembly module with a
manifest. Each call runs in a fresh sandbox, bounded in time, memory and output, and
reaches only what the manifest asks for and the operator grants, by flags or by a policy
file (--config).

Exit codes:
  0    success
  1    the tool, or the host itself, failed
  2    usage, configuration or manifest error; also an unknown tool or wrong arguments
  3    denied by permissions
  4    a limit or the deadline was hit; also, a tool could not be stopped at its deadline,
       which is a bug in Caisson
  5    a batch waits for outputs or approvals ("caisson batch --resume" goes on with it)
  130  interrupted`

// newRoot returns the command line. It is built anew for each run, since the values of
// flags live in it.
func newRoot(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "caisson",
		Short:         "Run untrusted tools for AI agents",
		Long:          rootHelp,
		Version:       readVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(root, args[0])
			}
			root.SetOut(env.stderr)
			if err := root.Help(); err != nil {
				return err
			}
			return &failure{code: exitUsage}
		},
	}
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetVersionTemplate("caisson {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageError(command, err.Error())
	})
	root.AddCommand(newCall(env), newBatch(env), newList(env), newInspect(env), newExplain(env), newValidate(env), newBench(env), newVersion(env))
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "describe a command",
		Args:  positional(0, 1, "COMMAND"),
		RunE: func(help *cobra.Command, args []string) error {
			if len(args) == 0 {
				return help.Root().Help()
			}
			for _, command := range help.Root().Commands() {
				if command.Name() == args[0] {
					command.InitDefaultHelpFlag()
					return command.Help()
				}
			}
			return unknownCommand(help.Root(), args[0])
		},
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	if near := root.SuggestionsFor(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return usageError(root, text)
}

// usageError is a mistake in the command line itself.
func usageError(command *cobra.Command, text string) error {
	return &failure{exitUsage, []message{{text, []string{fmt.Sprintf("run %q", command.CommandPath()+" --help")}}}}
}

// positional checks the number of arguments. Names says what they are; a negative most
// is no bound.
func positional(least, most int, names string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError(command, fmt.Sprintf("%s needs %s", command.Name(), names))
		case most >= 0 && len(args) > most && most == 0:
			return usageError(command, fmt.Sprintf("%s takes no arguments, not %q", command.Name(), args[0]))
		case most >= 0 && len(args) > most:
			return usageError(command, fmt.Sprintf("%s takes %s; %q is too many", command.Name(), names, args[most]))
		}
		return nil
	}
}
