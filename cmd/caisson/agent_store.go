package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
)

func (o *options) agentFolderFlag(command *cobra.Command) {
	o.command = command
	o.stateFlag(command, "agents are stored in `DIR`")
	o.tenantFlag(command, "the agents of the tenant `NAME`")
}

func (o *options) agentFlag(command *cobra.Command) {
	command.Flags().Func("agent", "limit the tools to those of the agent `NAME`; see \"caisson agent --help\"",
		parsedInto(&o.agent, parseAgent))
	o.tenantFlag(command, "make calls for the tenant `NAME`; --agent then names one of this tenant's agents")
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

// parseTenant checks a tenant's name. An empty one is more likely an empty variable of a script than the tenant without
// a name.
func parseTenant(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("want a tenant's name; leave the flag out for the tenant that has none")
	case len(text) > maxTenant || terminal.EscapeLine(text) != text:
		return "", fmt.Errorf("want one line of at most %d bytes", maxTenant)
	}
	return text, nil
}

func (o *options) agents() (agents.Store, error) {
	dir, err := o.stateFolderOf("agents")
	return agents.In(dir), err
}

func (o *options) agentProblem(err error) error {
	invalid, isInvalid := errors.AsType[*agents.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agents.ErrNotFound):
		return failed(exitUsage, err.Error(), terminal.ToRun(o.repeatFlags("caisson agent list", "state-dir", "tenant"))+
			" to see which there are")
	case errors.Is(err, agents.ErrDamaged):
		return failed(exitUsage, err.Error(), `replace it with "caisson agent set", or remove it with "caisson agent remove"`)
	case isInvalid:
		return failedEach(invalid.Problems, terminal.ToRun("caisson agent set --help"))
	}
	return failed(exitFailed, err.Error(), "name another folder with --state-dir DIR")
}

// agents returns the store of agents. No tool may be able to write there: it could give its agent more tools.
func (h *host) agents() (agents.Store, error) {
	dir, err := h.options.stateFolderOf("agents")
	if err != nil {
		return agents.Store{}, err
	}
	return agents.In(dir), h.keepsFromTools(dir, "agents are", "it could give its agent more tools")
}

func (h *host) agentNamed(name string) (agents.Agent, error) {
	store, err := h.agents()
	if err != nil {
		return agents.Agent{}, err
	}
	agent, unknown, err := store.Load(h.options.tenant, name, h.registry)
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
func (h *host) allowedTools() ([]string, error) {
	if h.options.agent == "" {
		return nil, nil
	}
	agent, err := h.agentNamed(h.options.agent)
	return view.List(agent.AllowedTools), err
}
