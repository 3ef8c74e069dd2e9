package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Flags that a printed command repeats, so that it sees the same tools, with the same permissions.
var (
	sourceFlagNames = []string{"tools", "config"}
	toolFlagNames   = append([]string{"profile", "mount", "context", "allow-net", "allow-call", "secret", "ask", "approve-tool", "agent"}, sourceFlagNames...)
)

// again returns a command line with those flags of the present one that have the given names.
func (o *options) again(commandLine string, names ...string) string {
	if o.command == nil {
		return commandLine
	}
	words := flagsOf(o.command, o.args, func(name string) bool { return slices.Contains(names, name) })
	return strings.Join(append([]string{commandLine}, words...), " ")
}

// explainCommand returns the command that explains a call.
func (o *options) explainCommand(id string) string {
	command := "caisson explain " + id
	if o.stateDir != nil {
		command += " --state-dir " + quoted(*o.stateDir)
	}
	return command
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
		alone := flag.NoOptDefVal != ""
		if !given && !alone && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch {
		case !wanted(name):
		case alone && given:
			words = append(words, "--"+name+"="+quoted(value))
		case alone:
			words = append(words, "--"+name)
		default:
			words = append(words, "--"+name, quoted(value))
		}
	}
	return words
}
