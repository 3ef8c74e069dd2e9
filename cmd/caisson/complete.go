package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
)

const completionHelp = `Print a script with which a shell completes commands, flags, the names of tools and their
parameters. Load it when the shell starts:

  bash        source <(caisson completion bash)
  zsh         source <(caisson completion zsh)
  fish        caisson completion fish | source
  powershell  caisson completion powershell | Out-String | Invoke-Expression

The script for bash needs version 4.4 or later. In zsh, compinit must have run before.
Completion executes no part of the command line: a word that contains a command, such as
$(date), stays text.`

//go:embed completion
var completionScripts embed.FS

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "print a script that completes commands in a shell",
		Long:      completionHelp,
		Args:      positional(1, 1, "the SHELL: "+strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(command *cobra.Command, args []string) error {
			if !slices.Contains(shells, args[0]) {
				return usageError(command,
					fmt.Sprintf("there is no script for %q; want one of %s", args[0], strings.Join(shells, ", ")))
			}
			if args[0] == "powershell" {
				return command.Root().GenPowerShellCompletionWithDesc(command.OutOrStdout())
			}
			script, err := completionScripts.ReadFile("completion/caisson." + args[0])
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(script)
			return err
		},
	}
}

// completion returns the words that a shell offers for the next one. It prints nothing else, since a person is typing.
type completion = func(command *cobra.Command, args []string, word string) ([]cobra.Completion,
	cobra.ShellCompDirective)

// opened loads the tools of the flags so far, without any output, and passes them to use. It returns nil if that fails.
func (o *options) opened(ctx context.Context, use func(h *host) []cobra.Completion) []cobra.Completion {
	silent := *o
	silent.stdout, silent.stderr, silent.quiet, silent.verbose = io.Discard, io.Discard, true, false
	h, err := silent.open(ctx, openMode{})
	if err != nil {
		return nil
	}
	defer func() { _ = h.close(ctx) }()
	return use(h)
}

// toolNames completes the names of tools, except those that are given already.
func (o *options) toolNames(ctx context.Context, given []string) []cobra.Completion {
	return o.opened(ctx, func(h *host) (names []cobra.Completion) {
		allowed, err := h.allowedTools(ctx)
		if err != nil {
			return nil
		}
		for _, t := range h.Catalogue(allowed).Tools {
			if t.Allowed && !t.Hidden && !slices.Contains(given, t.Name) {
				names = append(names, cobra.CompletionWithDesc(t.Name, terminal.EscapeLine(t.Label)))
			}
		}
		return names
	})
}

// completeCall completes the name of a tool, then its parameters as KEY=, and their values if the schema lists them.
func (o *options) completeCall(
	command *cobra.Command, args []string, word string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && strings.HasPrefix(word, "@"):
		return nil, cobra.ShellCompDirectiveDefault
	}
	name, _, isPair := strings.Cut(word, "=")
	words := o.opened(command.Context(), func(h *host) []cobra.Completion {
		entry, ok := h.registry.Get(args[0])
		switch {
		case !ok || entry.Manifest.Confirm() != nil:
			return nil
		case isPair:
			return valuesOf(command.Context(), entry.Manifest, name)
		}
		return parametersOf(entry.Manifest, args[1:])
	})
	switch {
	case !isPair:
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	case len(words) == 0: // it may be a file's name
		return nil, cobra.ShellCompDirectiveDefault
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// parametersOf completes the parameters that are not given yet, and can be.
func parametersOf(m *manifests.Manifest, given []string) (words []cobra.Completion) {
	var parameters struct {
		Properties map[string]struct{ Description string }
	}
	if json.Unmarshal(m.ModelParameters, &parameters) != nil {
		return nil
	}
	for name, p := range parameters.Properties {
		isGiven := slices.ContainsFunc(given, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
		parts := pairPattern.FindStringSubmatch(name + "=")
		if !isGiven && isPlain(name) && parts != nil && parts[1] == name {
			words = append(words, cobra.CompletionWithDesc(name+"=", terminal.EscapeLine(p.Description)))
		}
	}
	slices.Sort(words)
	return words
}

// isPlain reports whether a text can be a completion: it is one line without characters that change a terminal.
func isPlain(text string) bool {
	return terminal.EscapeLine(text) == text && strings.TrimSpace(text) == text
}

// valuesOf completes the values that a parameter's schema lists, as NAME=VALUE: those that a call takes as written.
func valuesOf(ctx context.Context, m *manifests.Manifest, name string) (words []cobra.Completion) {
	if m.Parameters == nil || slices.Contains(m.Context, name) {
		return nil
	}
	node := memberOf(m.Parameters.Structure(), name, map[*schema.Node]bool{})
	for _, value := range listedBy(node, map[*schema.Node]bool{}) {
		text := string(value)
		if quoted := ""; json.Unmarshal(value, &quoted) == nil {
			text = quoted
		}
		var probe schema.Probe
		if taken, err := valueOf(ctx, node, text); err == nil && isPlain(text) && probe.Fits(ctx, node, taken) {
			words = append(words, name+"="+text)
		}
	}
	return words
}

// listedBy returns the values that a schema lists. Each schema is looked at once.
func listedBy(n *schema.Node, seen map[*schema.Node]bool) []json.RawMessage {
	if n == nil || seen[n] {
		return nil
	}
	seen[n] = true
	values := n.Values()
	if n.Types == schema.Boolean && len(values) == 0 {
		values = []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	}
	for _, part := range partsOf(n) {
		values = append(values, listedBy(part, seen)...)
	}
	return values
}

func (o *options) completeAgents(
	command *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = o.withAgents(command.Context(), func(store *agents.Store) (err error) { // without any, it completes nothing
			names, err = store.Names(command.Context(), o.tenant)
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completes sets how the values of a command's flags are completed. Flags that the command does not have are ignored.
func (o *options) completes(command *cobra.Command) {
	names := func(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.toolNames(command.Context(), nil), cobra.ShellCompDirectiveNoFileComp
	}
	for flag, complete := range map[string]completion{
		"agent": func(command *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return o.completeAgents(command, nil, word)
		},
		"approve-tool": names, "allow-call": names, "ask": names,
		"profile": cobra.FixedCompletions([]cobra.Completion{"strict", "standard", "lenient"},
			cobra.ShellCompDirectiveNoFileComp),
		"definitions": cobra.FixedCompletions(dialects.Names(), cobra.ShellCompDirectiveNoFileComp),
		"dialect":     cobra.FixedCompletions(append(dialects.Names(), noDialect), cobra.ShellCompDirectiveNoFileComp),
		"state-dir":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"cache-dir":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"config": cobra.FixedCompletions([]cobra.Completion{"yaml", "yml", "json"},
			cobra.ShellCompDirectiveFilterFileExt),
	} {
		if command.Flags().Lookup(flag) != nil {
			_ = command.RegisterFlagCompletionFunc(flag, complete) // it fails for a flag that is not there or done
		}
	}
}
