package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
)

const agentHelp = `An agent is a named set of tools. Caisson also stores settings for the program that runs
the agent, and does not use them itself. With --agent NAME, "caisson list --definitions",
"caisson mcp" and "caisson serve" offer only the agent's tools to the model, and every
command and server refuses calls of other tools. Agents are stored in the state folder, or
in the database of --ledger, which servers can share.

A tenant is a customer or team that shares Caisson with others. Each tenant has its own
agents. --tenant NAME selects the tenant. It also selects the tenant of the calls that
"caisson call", "batch" and "mcp" make, and "caisson serve" for callers without a token.
NAME may be any name. Without --tenant, agents and calls are those of the default tenant,
which has no name.`

const agentSetHelp = `Create an agent, or replace it. The tools are checked: a name that no tool has is an error,
and an alias becomes the tool's own name. Without TOOL, the agent gets those of the ten
default tools (such as thinking and knowledge_search) that are loaded. None of the ten needs
a key or an account at another service.

` + grantsHelp

const grantsHelp = `An agent has no permissions of its own, and a command that runs calls needs its own flags.
Flags that grant permissions or decide about approvals, such as --mount and --approve-tool,
are accepted here, but have no effect and are not stored.`

func newAgent(o options) *cobra.Command {
	return newGroup("agent", "choose which tools an agent may call", agentHelp, "list, show, set or remove",
		newAgentList(o), newAgentShow(o), newAgentSet(o), newAgentRemove(o))
}

func newAgentList(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "list", Short: "list the agents", Long: "List the names of the agents.", Args: positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error { return o.agentList(command.Context()) },
	}
	o.agentFolderFlag(command)
	o.outputFlags(command, "print one JSON array")
	return command
}

func newAgentShow(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "show NAME", Short: "show an agent",
		Long: "Show an agent's tools and settings. A hint names tools that are no longer loaded.\n\n" + grantsHelp,
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
		Args: positional(1, -1, "NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			if agent.MaxIterations == 0 {
				return usageError(command, "--max-iterations 0 asks the model never; want at least 1")
			}
			agent.Name, agent.AllowedTools = args[0], args[1:]
			return o.agentSet(command.Context(), agent)
		},
	}
	flags := command.Flags()
	flags.StringVar(&agent.Mode, "mode", "",
		"a setting for the program that runs the agent: the text `MODE`, such as smart-reasoning")
	flags.IntVar(&agent.MaxIterations, "max-iterations", 10, // as [agents.Store.Save]
		"a setting for the program: it may ask the model at most `N` times in one run")
	flags.BoolVar(&agent.Reflection, "reflection", false,
		"a setting for the program: the agent reviews its own work")
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
		RunE: func(command *cobra.Command, args []string) error {
			return o.withAgents(command.Context(), func(store *agents.Store) error {
				return store.Remove(command.Context(), o.tenant, args[0])
			})
		},
	}
	o.agentFolderFlag(command)
	command.ValidArgsFunction = o.completeAgents
	return command
}

func (o *options) agentList(ctx context.Context) error {
	var names []string
	err := o.withAgents(ctx, func(store *agents.Store) (err error) {
		names, err = store.Names(ctx, o.tenant)
		return err
	})
	if err != nil {
		return err
	}
	text := ""
	if len(names) == 0 {
		o.hint(`there are no agents; "` + o.repeatFlags("caisson agent set NAME TOOL…", agentFlagNames...) + `" creates one`)
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
	agent, err := h.agentNamed(ctx, name)
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
	store, err := h.agents(ctx)
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
	if err := store.Save(ctx, o.tenant, agent, h.registry); err != nil {
		return o.agentProblem(err)
	}
	saved, err := h.agentNamed(ctx, agent.Name)
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

func (o *options) agentFolderFlag(command *cobra.Command) {
	o.command = command
	o.stateFlag(command, "agents are stored in `DIR`")
	o.ledgerFlag(command, "agents are stored")
	o.tenantFlag(command, "the agents of the tenant `NAME`")
}

// agentFlag adds the flags for an agent. use says what --tenant does.
func (o *options) agentFlag(command *cobra.Command, use string) {
	command.Flags().Func("agent", "limit the tools to those of the agent `NAME`; see \"caisson agent --help\"",
		parsedInto(&o.agent, parseAgent))
	o.tenantFlag(command, use)
}

func (o *options) tenantFlag(command *cobra.Command, usage string) {
	command.Flags().Func("tenant", usage, parsedInto(&o.tenant, parseTenant))
}

// parseAgent checks an agent's name. An empty one must not mean no agent, which may call all tools.
func parseAgent(text string) (string, error) {
	if text == "" {
		return "", errors.New("want an agent's name; leave the flag out to use all tools")
	}
	return text, nil
}

const maxTenant = 256

// parseTenant refuses an empty name, which is more likely a script's empty variable than the tenant without a name.
func parseTenant(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("want a tenant's name; leave the flag out for the tenant that has none")
	case len(text) > maxTenant || terminal.EscapeLine(text) != text:
		return "", fmt.Errorf("want one line of at most %d bytes", maxTenant)
	}
	return text, nil
}

// withAgents opens the store of agents while work runs.
func (o *options) withAgents(ctx context.Context, work func(store *agents.Store) error) error {
	store, err := o.openAgents(ctx)
	if err != nil {
		return err
	}
	err = work(store)
	return o.agentProblem(cmp.Or(err, store.Close()))
}

func (o *options) openAgents(ctx context.Context) (*agents.Store, error) {
	state, url, err := o.storedIn(ledger.AgentKind)
	if err != nil {
		return nil, err
	}
	store, err := agents.Open(ctx, state, url)
	return store, o.agentProblem(err)
}

// agentFlagNames are the flags that say where an agent is.
var agentFlagNames = append([]string{"tenant"}, ledgerNames...)

func (o *options) agentProblem(err error) error {
	invalid, isInvalid := errors.AsType[*agents.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agents.ErrNotFound):
		return failed(exitUsage, err.Error(), terminal.ToRun(o.repeatFlags("caisson agent list", agentFlagNames...))+
			" to see which there are")
	case errors.Is(err, agents.ErrDamaged):
		return failed(exitUsage, err.Error(), `replace it with "caisson agent set", or remove it with "caisson agent remove"`)
	case isInvalid:
		return failedEach(invalid.Problems, terminal.ToRun("caisson agent set --help"))
	}
	return o.storeProblem(err)
}

// agents returns the store of agents, which is open until the host is closed. No tool may be able to write there: it
// could give its agent more tools.
func (h *host) agents(ctx context.Context) (_ *agents.Store, err error) {
	if h.stored == nil {
		if h.stored, err = h.options.openAgents(ctx); err != nil {
			return nil, err
		}
	}
	return h.stored, h.keepsStoreFromTools(ledger.AgentKind, "it could give its agent more tools")
}

func (h *host) agentNamed(ctx context.Context, name string) (agents.Agent, error) {
	store, err := h.agents(ctx)
	if err != nil {
		return agents.Agent{}, err
	}
	agent, unknown, err := store.Load(ctx, h.options.tenant, name, h.registry)
	if err != nil {
		return agents.Agent{}, h.options.agentProblem(err)
	}
	if len(unknown) > 0 && h.options.only == "" { // else only one manifest is loaded
		h.options.hint(fmt.Sprintf("the agent %s has tools that are not loaded: %s", name,
			strings.Join(h.describeRenamed(unknown), ", ")))
	}
	return agent, nil
}

// describeRenamed returns names that no tool has, each with its present meaning.
func (h *host) describeRenamed(names []string) []string {
	var all []string
	for _, name := range names {
		if entry, ok := h.registry.Get(name); ok {
			name += " (now another name of " + entry.Name + ")"
		} else if instead, ok := h.registry.Replacement(name); ok {
			name += " (retired; " + instead + " replaces it)"
		}
		all = append(all, name)
	}
	return all
}

// allowedTools returns the names of the chosen agent's tools, or nil if no agent is chosen.
func (h *host) allowedTools(ctx context.Context) ([]string, error) {
	if h.options.agent == "" {
		return nil, nil
	}
	agent, err := h.agentNamed(ctx, h.options.agent)
	return jsontext.List(agent.AllowedTools), err
}
