package registry

import (
	"cmp"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Catalogue shows tools to people who choose among them, as a settings page does. It is made from the same entries as
// the definitions for a model, so each tool in it exists, and the two agree. Get one from [Registry.Catalogue].
type Catalogue struct {
	Tools      []Listing         `json:"tools"`      // sorted by name, hidden and unavailable ones included
	Duplicates []*DuplicateError `json:"duplicates"` // the names that were kept out
}

// Listing describes one tool of a [Catalogue].
type Listing struct {
	Name  string `json:"name"`
	Label string `json:"label"` // may be empty
	// Summary is for people: the manifest's, or the Description if it has none.
	Summary     string   `json:"summary"`
	Description string   `json:"description"` // for models
	Version     string   `json:"version"`
	Category    string   `json:"category"`
	Source      string   `json:"source"` // "" for tools that a program adds
	File        string   `json:"file"`
	Aliases     []string `json:"aliases"`
	Retired     []string `json:"retired"` // the names of former tools that this one replaces
	// Allowed says whether the agent may call it; without an agent, all tools are allowed.
	Allowed bool `json:"allowed"`
	// Unavailable says why it cannot be used now; empty if it can.
	Unavailable string                `json:"unavailable"`
	Type        string                `json:"type"`      // how calls are written: function, custom or local_shell
	Execution   manifests.Execution   `json:"execution"` // who runs it: sandbox, client or host, which no sandbox confines
	ReadOnly    bool                  `json:"read_only"`
	Destructive bool                  `json:"destructive"`
	Asks        string                `json:"asks"`  // why calls require approval; empty if they do not
	Final       bool                  `json:"final"` // the output may be shown to the user unchanged
	Hidden      bool                  `json:"hidden"`
	Deprecated  *manifests.Deprecated `json:"deprecated"` // null if neither the tool nor an alias is deprecated
	// Permissions are the decisions on the tool's requests: the part that it gets, and the rules that would allow the
	// rest.
	Permissions []tool.Decision `json:"permissions"`
	Shadowed    []Origin        `json:"shadowed"` // the names that were rejected because of this tool
	definition  tool.Definition
}

// Catalogue returns all tools for people, and which of them an agent may call. allowed names the
// agent's tools, by name or alias; nil allows all.
func (r *Registry) Catalogue(allowed []string) Catalogue {
	c := Catalogue{Tools: []Listing{}, Duplicates: []*DuplicateError{}}
	has := map[string]bool{}
	for _, name := range allowed {
		if e, ok := r.Get(name); ok {
			has[e.Name] = true
		}
	}
	for _, e := range r.List() {
		l := r.listing(e)
		l.Allowed = allowed == nil || has[l.Name]
		c.Tools = append(c.Tools, l)
	}
	c.Duplicates = append(c.Duplicates, r.Duplicates()...)
	return c
}

// Listing returns the tool with exactly this name or alias as a [Catalogue] shows it.
func (r *Registry) Listing(name string) (Listing, bool) {
	e, ok := r.Get(name)
	if !ok {
		return Listing{}, false
	}
	return r.listing(e), true
}

// Definitions returns the tools as offered to the model of the agent; see [Registry.Definitions].
func (c Catalogue) Definitions() []tool.Definition {
	definitions := []tool.Definition{}
	for _, l := range c.Tools {
		if l.Allowed && l.Unavailable == "" {
			definitions = append(definitions, l.definition)
		}
	}
	return definitions
}

func (r *Registry) listing(e Entry) Listing {
	m := e.Manifest
	return Listing{
		Name: e.Name, Label: m.Label, Summary: cmp.Or(m.Summary, m.Description), Description: m.Description,
		Version: m.Version, Category: m.Category, Source: e.Source, File: m.File,
		Aliases: jsontext.List(e.Aliases), Retired: jsontext.List(e.Retired), Allowed: true, Unavailable: e.Unavailable(),
		Type: cmp.Or(m.Type, tool.FunctionCall), Execution: m.Execution, ReadOnly: m.Behavior.ReadOnly,
		Destructive: m.Behavior.Destructive,
		Asks:        e.Asks(), Final: m.Behavior.Final, Hidden: m.Behavior.Hidden, Deprecated: m.Deprecated,
		Permissions: jsontext.List(r.decisions(e)), Shadowed: jsontext.List(e.Shadowed), definition: define(e.Name, m),
	}
}

// decisions returns the decisions on a tool's permissions. That to call a tool has no effect unless it is loaded.
func (r *Registry) decisions(e Entry) []tool.Decision {
	decisions := e.Decisions()
	for i := range decisions {
		d := &decisions[i]
		if d.Permission != "tools" || d.Effective == "" {
			continue
		}
		if _, loaded := r.Get(d.Requested); !loaded {
			d.Effective, d.Reason = "", "no tool of that name is loaded"
		}
	}
	return decisions
}
