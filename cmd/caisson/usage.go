package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/internal/terminal"
)

const callName = "call"

func unknownCommand(parent *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", strings.TrimPrefix(parent.CommandPath()+" "+name, "caisson "))
	near := parent.SuggestionsFor(name) // those that begin so
	if len(near) == 0 {
		var names []string
		for _, command := range parent.Commands() {
			names = append(names, command.Name())
		}
		near = append(near, spelling.Nearest(name, names))
	}
	if near[0] != "" {
		return usageError(parent, text+"; did you mean "+strings.Join(near, ", ")+"?")
	}
	failure := usageError(parent, text)
	if !parent.HasParent() {
		return failure.withHints(`to run a tool, write "caisson call NAME"`)
	}
	return failure
}

// newGroup returns a command that only groups subcommands, whose names it lists.
func newGroup(name, short, long, names string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(group *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(group, args[0])
			}
			return usageError(group, name+" needs a command: "+names)
		},
	}
	group.AddCommand(commands...)
	return group
}

func usageError(command *cobra.Command, text string) *failure {
	return &failure{exitUsage, []message{{text, []string{terminal.ToRun(command.CommandPath() + " --help")}}}}
}

// positional checks the number of arguments. names describes them. A negative limit means unlimited.
func positional(minimum, limit int, names string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < minimum:
			return usageError(command, fmt.Sprintf("%s needs %s", command.Name(), names))
		case limit == 0 && len(args) > 0:
			return usageError(command, fmt.Sprintf("%s takes no arguments, not %q", command.Name(), args[0]))
		case limit > 0 && len(args) > limit:
			return usageError(command, fmt.Sprintf("%s takes %s; %q is too many", command.Name(), names, args[limit]))
		}
		return nil
	}
}

// flagFailure returns the failure for a flag that a command does not have, or whose value is wrong.
func flagFailure(command *cobra.Command, err error) error {
	if secret, ok := errors.AsType[secretError](err); ok {
		return usageError(command, "--secret: "+string(secret))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(command, unknown)
	}
	text := err.Error()
	if lacking, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		flag := lacking.GetFlag()
		value, _ := pflag.UnquoteUsage(flag)
		text = fmt.Sprintf("--%s needs a value: --%s %s", flag.Name, flag.Name, value)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		want := ""
		switch wrong.GetFlag().Value.Type() {
		case "bool":
			want = "want true or false after the =, or the flag alone, which means true"
		case "int", "int64":
			want = "want a whole number"
		}
		if want != "" {
			text = fmt.Sprintf("invalid argument %q for \"--%s\" flag: %s", wrong.GetValue(), wrong.GetFlag().Name, want)
		}
	}
	return usageError(command, text)
}

// unknownFlag returns the failure for an unknown flag: which may be meant, or where it belongs.
func unknownFlag(command *cobra.Command, unknown *pflag.NotExistError) *failure {
	name, text := unknown.GetSpecifiedName(), ""
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name, _, _ = strings.Cut(group, "=")
		text = "unknown flag: -" + name
	} else {
		text = "unknown flag: --" + name
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	if near := spelling.Nearest(name, names); near != "" {
		text += "; did you mean --" + near + "?"
		return usageError(command, text)
	}
	failure := usageError(command, text)
	switch {
	case command.Name() == callName:
		return failure.withHints("the arguments of the tool have no dashes; write them as KEY=VALUE words, such as " + name +
			"=VALUE")
	case !command.HasParent():
		return failure.withHints(`flags follow the command, as in "caisson list --tools DIR"`)
	}
	return failure
}

// isPath reports whether a word is a path: names of tools have no such characters.
func isPath(word string) bool { return strings.ContainsAny(word, `./\`) }

// namedIn returns the hint to name a tool instead of the file or folder that contains it.
func namedIn(source string) string {
	return "write the name of a tool, and where it is with --tools " + terminal.Quote(source) + "; " +
		terminal.ToRun("caisson list --tools "+terminal.Quote(source)) + " to see the names"
}

// isModule reports whether a path names a module rather than a manifest.
func isModule(path string) bool { return strings.EqualFold(filepath.Ext(path), ".wasm") }

// Flags that a printed command repeats, so that it sees the same tools, with the same permissions.
var (
	sourceFlagNames = []string{"tools", "config"}
	toolFlagNames   = append([]string{"profile", "mount", "context", "allow-net", "allow-call", "secret", "ask",
		"approve-tool", "agent"}, sourceFlagNames...)
)

// repeatFlags returns a command line with those flags of the present command that have the given names.
func (o *options) repeatFlags(commandLine string, names ...string) string {
	if o.command == nil {
		return commandLine
	}
	words := flagsOf(o.command, o.args, func(name string) bool { return slices.Contains(names, name) })
	return strings.Join(append([]string{commandLine}, words...), " ")
}

// ofOneRun are the flags that are not repeated when a batch is resumed.
var ofOneRun = []string{"dialect", "state", "resume", "approve", "refuse"}

// flagsOf returns those flags of a command line whose names are wanted, quoted for a shell. The command
// has parsed the line, so each flag is known and has its value.
func flagsOf(command *cobra.Command, args []string, wanted func(name string) bool) []string {
	_, rest, err := command.Root().Find(args)
	if err != nil {
		return nil
	}
	var words []string
	for len(rest) > 0 && rest[0] != "--" {
		text, isFlag := strings.CutPrefix(rest[0], "--")
		rest = rest[1:]
		name, value, given := strings.Cut(text, "=")
		flag := command.Flags().Lookup(name)
		if !isFlag || flag == nil {
			continue
		}
		valueOptional := flag.NoOptDefVal != ""
		if !given && !valueOptional && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch {
		case !wanted(name):
		case valueOptional && given:
			words = append(words, "--"+name+"="+terminal.Quote(value))
		case valueOptional:
			words = append(words, "--"+name)
		default:
			words = append(words, "--"+name, terminal.Quote(value))
		}
	}
	return words
}
