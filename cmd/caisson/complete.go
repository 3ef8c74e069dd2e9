package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/registry"
)

const completionHelp = `Print a script with which a shell completes commands, flags, the names of tools and their
parameters. Load it when the shell starts:

  bash        source <(caisson completion bash)
  zsh         source <(caisson completion zsh)
  fish        caisson completion fish | source
  powershell  caisson completion powershell | Out-String | Invoke-Expression

In bash this takes the package bash-completion; in zsh, compinit must have run before.`

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "print a script that completes commands in a shell",
		Long:      completionHelp,
		Args:      positional(1, 1, "the SHELL: "+strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(command *cobra.Command, args []string) error {
			root, out := command.Root(), command.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usageError(command, fmt.Sprintf("there is no script for %q; want one of %s", args[0], strings.Join(shells, ", ")))
		},
	}
}

// completion returns the words that a shell offers for the next one. It says nothing else: a person is typing.
type completion = func(command *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective)

// opened loads the tools of the flags so far, without a word, and shows them to use.
func (o *options) opened(ctx context.Context, use func(h *host) []cobra.Completion) []cobra.Completion {
	silent := *o
	silent.stdout, silent.stderr, silent.quiet, silent.verbose = io.Discard, io.Discard, true, false
	h, err := silent.open(ctx, opening{})
	if err != nil {
		return nil
	}
	defer func() { _ = h.close(ctx) }()
	return use(h)
}

// toolNames completes the names of tools, as far as they are not given yet.
func (o *options) toolNames(ctx context.Context, given []string) []cobra.Completion {
	return o.opened(ctx, func(h *host) (names []cobra.Completion) {
		allowed, err := h.allowedTools()
		if err != nil {
			return nil
		}
		for _, t := range h.Catalogue(allowed).Tools {
			if t.Allowed && !t.Hidden && !slices.Contains(given, t.Name) {
				names = append(names, cobra.CompletionWithDesc(t.Name, sanitiseLine(t.Label)))
			}
		}
		return names
	})
}

// completeCall completes the name of a tool, then its parameters as KEY=.
func (o *options) completeCall(command *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && strings.HasPrefix(word, "@"), strings.Contains(word, "="):
		return nil, cobra.ShellCompDirectiveDefault
	}
	return o.opened(command.Context(), func(h *host) []cobra.Completion {
		entry, ok := h.registry.Get(args[0])
		if !ok {
			return nil
		}
		return parametersOf(entry, args[1:])
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// parametersOf completes the parameters that are not given yet.
func parametersOf(entry registry.Entry, given []string) (words []cobra.Completion) {
	var parameters struct {
		Properties map[string]struct{ Description string }
	}
	if json.Unmarshal(entry.Manifest.ModelParameters, &parameters) != nil {
		return nil
	}
	for name, p := range parameters.Properties {
		if !slices.ContainsFunc(given, func(pair string) bool { return strings.HasPrefix(pair, name+"=") }) {
			words = append(words, cobra.CompletionWithDesc(sanitiseLine(name)+"=", sanitiseLine(p.Description)))
		}
	}
	slices.Sort(words)
	return words
}

// completeAgents completes the name of an agent.
func (o *options) completeAgents(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	store, err := o.agents()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := store.Names("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completes sets how the values of a command's flags are completed. Flags that the command does not have are ignored.
func (o *options) completes(command *cobra.Command) {
	for flag, complete := range map[string]completion{
		"agent": func(command *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return o.completeAgents(command, nil, word)
		},
		"approve-tool": func(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveNoFileComp
		},
		"profile":     cobra.FixedCompletions([]cobra.Completion{"strict", "standard", "lenient"}, cobra.ShellCompDirectiveNoFileComp),
		"definitions": cobra.FixedCompletions(dialects.Names(), cobra.ShellCompDirectiveNoFileComp),
		"dialect":     cobra.FixedCompletions(append(dialects.Names(), noDialect), cobra.ShellCompDirectiveNoFileComp),
		"state-dir":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"cache-dir":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"config":      cobra.FixedCompletions([]cobra.Completion{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt),
	} {
		if command.Flags().Lookup(flag) != nil {
			_ = command.RegisterFlagCompletionFunc(flag, complete) // it fails for a flag that is not there or done
		}
	}
}
