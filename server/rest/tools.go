package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// catalogue is what a settings page shows. It names no files and folders of the host.
type catalogue struct {
	Tools      []listing   `json:"tools"`
	Duplicates []duplicate `json:"duplicates"`
	Problems   []kept      `json:"problems"`
}

// listing is a tool of the catalogue without the places where it and others were found.
type listing struct {
	registry.Listing
	Source   bool     `json:"source,omitempty"` // these three hide those of the Listing; never set
	File     bool     `json:"file,omitempty"`
	Shadowed []string `json:"shadowed"` // the names that it kept others from having
}

// duplicate is a name that was kept out.
type duplicate struct {
	Name   string `json:"name"`
	KeptBy string `json:"kept_by"` // the tool or other name that holds it
	Reason string `json:"reason"`
}

// kept says why tools are missing.
type kept struct {
	Names    []string          `json:"names"` // that a broken manifest claims, or the source that was not loaded
	Problems []manifestMistake `json:"problems"`
}

// manifestMistake is one thing that is wrong with a manifest. The operator's log has all of it.
type manifestMistake struct {
	Line int          `json:"line"`
	Path string       `json:"path"`
	Kind mistake.Kind `json:"kind"`
}

func listed(l registry.Listing) listing {
	shown := listing{Listing: l, Shadowed: []string{}}
	for _, origin := range l.Shadowed {
		shown.Shadowed = append(shown.Shadowed, origin.Name)
	}
	return shown
}

func (x *exchange) listTools() (reply, error) {
	names, err := x.allowedByQuery()
	if err != nil {
		return reply{}, err
	}
	found := x.api.host.Catalogue(names)
	shown := catalogue{Tools: []listing{}, Duplicates: []duplicate{}, Problems: problemsOf(x.api.host.Problems())}
	for _, l := range found.Tools {
		shown.Tools = append(shown.Tools, listed(l))
	}
	for _, d := range found.Duplicates {
		shown.Duplicates = append(shown.Duplicates, duplicate{d.Name, d.Kept.Name, d.Reason})
	}
	return answer(http.StatusOK, shown)
}

// allowedByQuery returns the names of the tools that the agent of the query may call, or nil for all.
func (x *exchange) allowedByQuery() ([]string, error) { return x.allowed(x.query.Get("agent")) }

// problemsOf returns what kept tools from being loaded, except duplicates, without its places on the host.
func problemsOf(errs []error) []kept {
	all := []kept{}
	for _, err := range errs {
		if errors.Is(err, registry.ErrDuplicate) {
			continue // the catalogue has a list of these
		}
		shown := kept{Names: []string{}, Problems: []manifestMistake{}}
		var broken *manifests.Error
		var notLoaded *registry.Error
		switch {
		case errors.As(err, &broken):
			shown.Names = append(shown.Names, broken.Names...)
			for _, p := range broken.Problems {
				shown.Problems = append(shown.Problems, manifestMistake{p.Line, p.Path, p.Kind})
			}
		case errors.As(err, &notLoaded):
			shown.Names = append(shown.Names, path.Base(notLoaded.Name))
		}
		all = append(all, shown)
	}
	return all
}

func (x *exchange) getTool() (reply, error) {
	names, err := x.allowedByQuery()
	if err != nil {
		return reply{}, err
	}
	found, ok := x.api.host.Registry().Listing(x.request.PathValue("name"))
	if !ok {
		if instead, retired := x.api.host.Registry().Replacement(x.request.PathValue("name")); retired {
			return reply{}, refuse(http.StatusNotFound, "the tool is retired; %s replaces it", instead)
		}
		return reply{}, refuse(http.StatusNotFound, "there is no such tool; /v1/tools lists them")
	}
	found.Allowed = names == nil || slices.Contains(names, found.Name) // an agent's names are registered ones
	return answer(http.StatusOK, listed(found))
}

// definitions are tools in a provider's form.
type definitions struct {
	Dialect     string             `json:"dialect"`
	Definitions json.RawMessage    `json:"definitions"`
	Findings    []dialects.Finding `json:"findings"`
}

func (x *exchange) getDefinitions() (reply, error) {
	dialect, err := dialectNamed(x.query.Get("dialect"), http.StatusBadRequest)
	if err != nil {
		return reply{}, err
	}
	strict, err := boolean(x.query, "strict")
	if err != nil {
		return reply{}, err
	}
	return x.definitions(dialect, strict, x.query.Get("agent"), nil)
}

// definitions writes the tools that an agent may call, and others that the client runs, by name.
func (x *exchange) definitions(
	dialect dialects.Dialect, strict bool, agent string, more []tool.Definition,
) (reply, error) {
	names, err := x.allowed(agent)
	if err != nil {
		return reply{}, err
	}
	for i := range more {
		if len(more[i].Parameters) == 0 {
			more[i].Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
	}
	all := append(x.api.host.Catalogue(names).Definitions(), more...)
	slices.SortStableFunc(all, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	written, findings, err := dialect.Definitions(all, dialects.DefinitionOptions{Strict: strict})
	var wrong *dialects.Error
	if errors.As(err, &wrong) && len(more) > 0 { // those of the registry were checked when they were loaded
		return reply{}, refuse(http.StatusUnprocessableEntity, "tools: %s", wrong)
	}
	if err != nil {
		return reply{}, err
	}
	return answer(http.StatusOK, definitions{dialect.Name(), written, orEmpty(findings)})
}

// dialectNamed returns a dialect, or a refusal.
func dialectNamed(name string, status int) (dialects.Dialect, error) {
	dialect, err := known.ByName(name)
	if err != nil {
		return nil, refuse(status, "dialect: it must be openai, responses, anthropic, gemini or mcp")
	}
	return dialect, nil
}

// allowed returns the names of the tools that an agent of the caller's tenant may call, or those of the caller without
// an agent.
func (x *exchange) allowed(agent string) ([]string, error) {
	if agent == "" {
		return x.api.options.Sessions.Allowed(x.request.Context(), x.caller)
	}
	found, _, err := x.loadAgent(agent)
	if err != nil {
		return nil, err
	}
	return append([]string{}, found.AllowedTools...), nil // empty allows none, nil would allow all
}

func (x *exchange) loadAgent(name string) (found agents.Agent, unknown []string, err error) {
	if x.api.options.Agents == nil {
		return found, nil, refuse(http.StatusNotFound, "this server has no agents")
	}
	found, unknown, err = x.api.options.Agents.Load(x.request.Context(), x.caller.Tenant, name, x.api.host.Registry())
	if errors.Is(err, agents.ErrNotFound) {
		return found, nil, refuse(http.StatusNotFound, "the tenant has no such agent; /v1/agents lists them")
	}
	return found, unknown, err
}
