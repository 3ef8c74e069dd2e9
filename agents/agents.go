// Package agents stores how agents are configured: a named set of tools that an agent may call, with the settings of
// its loop. Each tenant has its own agents.
//
//	store, err := agents.Open(ctx, stateDir, "")
//	agent := agents.Agent{Name: "researcher", AllowedTools: []string{"web_search", "fetch_page"}}
//	err = store.Save(ctx, "acme", agent, tools)
//	agent, unknown, err := store.Load(ctx, "acme", "researcher", tools)
//	session, err := host.NewSession(executor.SessionOptions{Tenant: "acme", Allowed: agent.AllowedTools})
package agents

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// The errors of this package, for errors.Is. Other errors come from the database or the operating system.
var (
	ErrInvalid  = errors.New("invalid agent")
	ErrNotFound = errors.New("there is no such agent")
	ErrDamaged  = errors.New("the stored agent is damaged")
)

// Error lists the problems of an agent that cannot be stored. It wraps [ErrInvalid].
type Error struct{ Problems []string }

// Error returns the problems in one line.
func (e *Error) Error() string { return ErrInvalid.Error() + ": " + strings.Join(e.Problems, "; ") }

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

// Agent is the configuration of one agent.
type Agent struct {
	// Name has 1 to 64 lower-case letters, digits, _ or -.
	Name string `json:"name"`
	// Mode is the agent's way of working, as the host names it, such as "smart-reasoning". Caisson only stores it.
	Mode string `json:"agent_mode"`
	// AllowedTools are the names of the tools that are offered to the model, and that it may call. Empty allows none.
	AllowedTools []string `json:"allowed_tools"`
	// MaxIterations bounds how often the host asks the model in one run. Caisson only stores it. [Store.Save] replaces
	// zero by 10.
	MaxIterations int `json:"max_iterations"`
	// Reflection says whether the agent reviews its own work. Caisson only stores it.
	Reflection bool `json:"reflection_enabled"`
}

// Bounds of an agent's settings. Its tools are also bounded by the tools that exist.
const (
	maxMode       = 64
	maxIterations = 10_000
	maxTools      = 10_000
)

var agentName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// toolSet is the tools that an agent may choose from, such as a [*registry.Registry].
type toolSet interface {
	// Get returns the tool with this name or alias.
	Get(name string) (registry.Entry, bool)
	// Nearest returns at most n registered names that resemble name.
	Nearest(name string, n int) []string
	// Replacement returns the name of the tool that replaces a retired one.
	Replacement(retired string) (name string, ok bool)
}

// check returns the agent with registered names, each once, in the given order. The error is an [*Error] with all
// problems.
func (a Agent) check(tools toolSet) (Agent, error) {
	var problems []string
	invalid := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	if !agentName.MatchString(a.Name) {
		invalid("the name %s is not 1 to 64 lower-case letters, digits, _ or -", shown(a.Name))
	}
	if !utf8.ValidString(a.Mode) || len(a.Mode) > maxMode || tool.Shown(a.Mode, maxMode) != a.Mode {
		invalid("agent_mode %s is not one line of at most %d bytes", tool.Shown(a.Mode, maxMode), maxMode)
	}
	if a.MaxIterations == 0 {
		a.MaxIterations = 10
	}
	if a.MaxIterations < 1 || a.MaxIterations > maxIterations {
		invalid("max_iterations %d is not from 1 to %d", a.MaxIterations, maxIterations)
	}
	if len(a.AllowedTools) > maxTools {
		invalid("%d tools are more than %d", len(a.AllowedTools), maxTools)
		return Agent{}, &Error{problems}
	}
	known, unknown := resolve(a.AllowedTools, tools, false)
	for _, name := range unknown {
		replacement, isRetired := tools.Replacement(name)
		near := tools.Nearest(name, 3)
		switch {
		case isRetired:
			invalid("the tool %s is retired; %s replaces it", shown(name), replacement)
		case strings.ContainsAny(name, "*?["):
			invalid("there is no tool %s; name each tool, without wildcards", shown(name))
		case len(near) > 0:
			invalid("there is no tool %s; did you mean %s?", shown(name), strings.Join(near, ", "))
		default:
			invalid("there is no tool %s", shown(name))
		}
	}
	if len(problems) > 0 {
		return Agent{}, &Error{problems}
	}
	a.AllowedTools = known
	return a, nil
}

// shown returns a name in the form that people see.
func shown(name string) string { return cmp.Or(tool.Shown(name, 64), `""`) }

// resolve returns the registered names of tools, each once, and the unknown names. A stored name was a tool's
// registered name: a tool that has it as an alias now is another one.
func resolve(names []string, tools toolSet, stored bool) (known, unknown []string) {
	known, seen := []string{}, map[string]bool{}
	for _, name := range names {
		entry, ok := tools.Get(name)
		switch {
		case !ok || stored && entry.Name != name:
			unknown = append(unknown, name)
		case !seen[entry.Name]:
			seen[entry.Name] = true
			known = append(known, entry.Name)
		}
	}
	return known, unknown
}

// DefaultAllowedTools returns the registered names of the tools that a new agent gets, in their order: those that work
// on the host's own data. Tools that need a setting from elsewhere, such as a search, are for each agent to
// choose. missing are those that are not among the tools.
func DefaultAllowedTools(tools toolSet) (allowed, missing []string) {
	return resolve([]string{
		"thinking", "todo_write", "knowledge_search", "grep_chunks", "list_knowledge_chunks",
		"query_knowledge_graph", "get_document_info", "database_query", "data_analysis", "data_schema",
	}, tools, false)
}
