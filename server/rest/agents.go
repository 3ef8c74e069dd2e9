package rest

import (
	"errors"
	"net/http"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
)

// storedAgent is an agent with the names in it of tools that there are no longer.
type storedAgent struct {
	agents.Agent
	UnknownTools []string `json:"unknown_tools"`
}

// agentList is what a settings page needs to offer agents and to make a new one.
type agentList struct {
	Names []string `json:"names"`
	// DefaultAllowedTools are those that a new agent gets, and MissingTools those of them that there are not.
	DefaultAllowedTools []string `json:"default_allowed_tools"`
	MissingTools        []string `json:"missing_tools"`
}

func (x *exchange) listAgents() (reply, error) {
	list := agentList{Names: []string{}}
	if x.api.options.Agents != nil {
		names, err := x.api.options.Agents.Names(x.request.Context(), x.caller.Tenant)
		if err != nil {
			return reply{}, err
		}
		list.Names = append(list.Names, names...)
	}
	list.DefaultAllowedTools, list.MissingTools = agents.DefaultAllowedTools(x.api.host.Registry())
	list.MissingTools = append([]string{}, list.MissingTools...)
	return answer(http.StatusOK, list)
}

func (x *exchange) getAgent() (reply, error) {
	found, unknown, err := x.loadAgent(x.request.PathValue("agent"))
	if err != nil {
		return reply{}, err
	}
	found.AllowedTools = append([]string{}, found.AllowedTools...)
	return answer(http.StatusOK, storedAgent{found, append([]string{}, unknown...)})
}

// limited refuses a caller who may call only the tools of an agent: it could give itself more.
func (x *exchange) limited() error {
	if x.caller.Agent == "" {
		return nil
	}
	return refuse(http.StatusForbidden, "who may call only the tools of an agent cannot change agents")
}

func (x *exchange) putAgent() (reply, error) {
	if err := x.limited(); err != nil {
		return reply{}, err
	}
	agent := agents.Agent{Name: x.request.PathValue("agent")}
	err := x.decode(decode.Members{
		"name": func(v jsontext.Value) error {
			switch {
			case v.Kind() != jsontext.String:
				return decode.Wrong(v, "must be a string")
			case v.String() != agent.Name:
				return refuseValue(http.StatusUnprocessableEntity, v.Path(), "must be that in the path")
			}
			return nil
		},
		"agent_mode": decode.Text(&agent.Mode), "allowed_tools": decode.Texts(&agent.AllowedTools, maxNames),
		"max_iterations":     decode.Integer(&agent.MaxIterations, 1_000_000),
		"reflection_enabled": decode.Bool(&agent.Reflection),
	})
	if err != nil {
		return reply{}, err
	}
	if x.api.options.Agents == nil {
		return reply{}, refuse(http.StatusUnprocessableEntity, "this server stores no agents")
	}
	err = x.api.options.Agents.Save(x.request.Context(), x.caller.Tenant, agent, x.api.host.Registry())
	if errors.Is(err, agents.ErrInvalid) {
		return reply{}, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	if err != nil {
		return reply{}, err
	}
	return x.getAgent()
}

// maxNames bounds lists of names; agents check the rest.
const maxNames = 100_000

func (x *exchange) deleteAgent() (reply, error) {
	if err := x.limited(); err != nil {
		return reply{}, err
	}
	if x.api.options.Agents == nil {
		return reply{}, refuse(http.StatusNotFound, "this server has no agents")
	}
	err := x.api.options.Agents.Remove(x.request.Context(), x.caller.Tenant, x.request.PathValue("agent"))
	if errors.Is(err, agents.ErrNotFound) {
		return reply{}, refuse(http.StatusNotFound, "the tenant has no such agent; /v1/agents lists them")
	}
	return reply{status: http.StatusNoContent}, err
}
