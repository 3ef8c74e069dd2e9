package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/terminal"
)

const agentHelp = `An agent is a named set of tools. Caisson also stores settings for the program that runs
the agent, and does not use them itself. With --agent NAME, "caisson list --definitions",
"caisson mcp" and "caisson serve" offer only the agent's tools to the model, and no command
or server runs others. Agents are stored in the state folder, in files that only the
current user can read.

Each tenant has its own agents. --tenant NAME selects the tenant, also for the calls of
"caisson call" and "caisson batch". NAME may be any name. Without --tenant, agents and calls
are those of the default tenant, which has no name.`

const agentSetHelp = `Create an agent, or replace it. The tools are checked: a name that no tool has is an
error, and an alias becomes the tool's own name. Without TOOL, the agent gets those of ten
default tools that are loaded. They need no keys or accounts of other services.`

func newAgent(o options) *cobra.Command {
	return newGroup("agent", "choose which tools an agent may call", agentHelp, "list, show, set or remove",
		newAgentList(o), newAgentShow(o), newAgentSet(o), newAgentRemove(o))
}

func newAgentList(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "list", Short: "list the agents", Long: "List the names of the agents.", Args: positional(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return o.agentList() },
	}
	o.agentFolderFlag(command)
	o.outputFlags(command, "print one JSON array")
	return command
}

func newAgentShow(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "show NAME", Short: "show an agent",
		Long: "Show an agent's tools and settings. A hint names tools that are no longer loaded.",
		Args: positional(1, 1, "NAME"),
		RunE: func(command *cobra.Command, args []string) error { return o.agentShow(command.Context(), args[0]) },
	}
	o.toolFlags(command)
	o.agentFolderFlag(command)
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command, "agent") // it is named by the argument
	command.ValidArgsFunction = o.completeAgents
	o.completes(command)
	return command
}

func newAgentSet(o options) *cobra.Command {
	var agent agents.Agent
	command := &cobra.Command{
		Use: "set NAME [TOOL…]", Short: "create or replace an agent", Long: agentSetHelp,
		Example: "  caisson agent set researcher web_search fetch_page calculator\n  caisson list --agent researcher " +
			"--definitions openai",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(command, "set needs NAME")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if agent.MaxIterations == 0 {
				return usageError(command, "--max-iterations 0 asks the model never; want at least 1")
			}
			agent.Name, agent.AllowedTools = args[0], args[1:]
			return o.agentSet(command.Context(), agent)
		},
	}
	flags := command.Flags()
	flags.StringVar(&agent.Mode, "mode", "", "store `MODE` for the program that runs the agent, such as smart-reasoning")
	flags.IntVar(&agent.MaxIterations, "max-iterations", agents.DefaultIterations,
		"store that the program may ask the model `N` times in one run")
	flags.BoolVar(&agent.Reflection, "reflection", false, "store that the agent reviews its own work")
	o.toolFlags(command)
	o.agentFolderFlag(command)
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command, "agent") // it is named by the argument
	command.ValidArgsFunction = func(command *cobra.Command, args []string, word string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if len(args) == 0 {
			return o.completeAgents(command, args, word)
		}
		return o.toolNames(command.Context(), args[1:]), cobra.ShellCompDirectiveNoFileComp
	}
	o.completes(command)
	return command
}

func newAgentRemove(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "remove NAME", Short: "remove an agent", Long: "Remove an agent.", Args: positional(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := o.agents()
			if err != nil {
				return err
			}
			return o.agentProblem(store.Remove(o.tenant, args[0]))
		},
	}
	o.agentFolderFlag(command)
	command.ValidArgsFunction = o.completeAgents
	return command
}

func (o *options) agentList() error {
	store, err := o.agents()
	if err != nil {
		return err
	}
	names, err := store.Names(o.tenant)
	if err != nil {
		return o.agentProblem(err)
	}
	text := ""
	if len(names) == 0 {
		o.hint(`there are no agents; "` + o.repeatFlags("caisson agent set NAME TOOL…", "state-dir", "tenant") +
			`" creates one`)
	}
	for _, name := range names {
		text += name + "\n"
	}
	return o.show(names, text)
}

func (o *options) agentShow(ctx context.Context, name string) (err error) {
	h, err := o.open(ctx, openMode{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	agent, err := h.agentNamed(name)
	if err != nil {
		return err
	}
	return o.show(agent, agentText(agent))
}

func (o *options) agentSet(ctx context.Context, agent agents.Agent) (err error) {
	h, err := o.open(ctx, openMode{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	store, err := h.agents()
	if err != nil {
		return err
	}
	if len(agent.AllowedTools) == 0 {
		var missing []string
		agent.AllowedTools, missing = agents.DefaultAllowedTools(h.registry)
		if len(agent.AllowedTools) == 0 {
			return failed(exitUsage, "none of the default tools is loaded: "+strings.Join(missing, ", "),
				"name the agent's tools: caisson agent set "+terminal.Quote(agent.Name)+" TOOL…")
		}
		if len(missing) > 0 {
			o.hint("of the default tools, these are not loaded: " + strings.Join(missing, ", "))
		}
	}
	if err := store.Save(o.tenant, agent, h.registry); err != nil {
		return o.agentProblem(err)
	}
	saved, err := h.agentNamed(agent.Name)
	if err != nil {
		return err
	}
	return o.show(saved, agentText(saved))
}

func agentText(a agents.Agent) string {
	var b strings.Builder
	b.WriteString(a.Name + "\n")
	terminal.Field(&b, "tools", a.AllowedTools...)
	if len(a.AllowedTools) == 0 {
		terminal.Field(&b, "tools", "none")
	}
	if a.Mode != "" {
		terminal.Field(&b, "mode", a.Mode)
	}
	terminal.Field(&b, "iterations", fmt.Sprintf("at most %d", a.MaxIterations))
	if a.Reflection {
		terminal.Field(&b, "reflection", "yes")
	}
	return b.String()
}
