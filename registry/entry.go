package registry

import (
	"bytes"
	"crypto/rand"
	"encoding/json"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Entry is a tool as a registry knows it. It is a copy: changing it changes nothing.
type Entry struct {
	// Tool is the tool itself. Calls that are made through it, and not through
	// [Registry.Invoke], are not waited for by Close.
	Tool     Tool
	Manifest *manifests.Manifest
	Name     string // the registered name
	// Alias is the alias by which the tool was looked up; "" where it was its name.
	Alias   string
	Aliases []string // the aliases that it holds, in its manifest's order
	Source  string   // where it comes from; "" for tools that a program adds
	// Unavailable is why the tool cannot be used now; "" where it can.
	Unavailable string
	// Shadowed holds the names that this tool keeps out, sorted.
	Shadowed []Origin
	// Registration tells this tool from any other that has or had its name.
	Registration tool.Registration
}

func newRegistration() (r tool.Registration) {
	_, _ = rand.Read(r[:]) // does not fail
	return r
}

// describe returns an entry without what the tool itself must be asked for. The caller
// holds the lock.
func (r *Registry) describe(e *entry) Entry {
	return Entry{
		Tool: e.tool, Manifest: e.manifest, Name: e.origin.Name, Source: e.origin.Source,
		Aliases: r.names.aliases(e), Shadowed: r.names.shadowed(e), Registration: e.registration,
	}
}

// Get returns the tool with exactly this name or alias.
func (r *Registry) Get(name string) (Entry, bool) {
	r.mu.RLock()
	held, ok := r.names.find(name)
	if !ok {
		r.mu.RUnlock()
		return Entry{}, false
	}
	found := r.describe(held.entry)
	r.mu.RUnlock()
	if held.origin.Alias {
		found.Alias = name
	}
	found.Unavailable = unavailable(found.Tool)
	return found, true
}

// List returns all tools sorted by name, with hidden and unavailable ones.
func (r *Registry) List() []Entry {
	r.mu.RLock()
	entries := r.names.entries()
	list := make([]Entry, len(entries))
	for i, e := range entries {
		list[i] = r.describe(e)
	}
	r.mu.RUnlock()
	for i := range list {
		list[i].Unavailable = unavailable(list[i].Tool)
	}
	return list
}

// offered returns the tools that a model may be told about, sorted by name.
func (r *Registry) offered() []*entry {
	r.mu.RLock()
	entries := r.names.entries()
	r.mu.RUnlock()
	var offered []*entry
	for _, e := range entries {
		if !e.manifest.Behavior.Hidden && unavailable(e.tool) == "" {
			offered = append(offered, e)
		}
	}
	return offered
}

// noParameters is the schema of a tool that shows a model no parameters.
const noParameters = `{"type":"object","properties":{}}`

// Definitions returns the tools as they are offered to a model, without those that are
// hidden or unavailable. They are sorted by name and equal byte for byte between calls,
// because prompt caches depend on it. It is never nil.
func (r *Registry) Definitions() []tool.Definition {
	definitions := []tool.Definition{}
	for _, e := range r.offered() {
		parameters := json.RawMessage(bytes.Clone(e.manifest.ModelParameters))
		if len(parameters) == 0 {
			parameters = json.RawMessage(noParameters)
		}
		definitions = append(definitions, define(e, parameters))
	}
	return definitions
}

func define(e *entry, parameters json.RawMessage) tool.Definition {
	m := e.manifest
	d := tool.Definition{
		Name: e.origin.Name, Description: m.Description, Parameters: parameters,
		Format: bytes.Clone(m.Format), Label: m.Label, Hints: hintsOf(m),
	}
	if m.Type != manifests.FunctionTool {
		d.Type = string(m.Type)
	}
	if m.Result != nil {
		d.Result = bytes.Clone(m.Result.JSON())
	}
	return d
}

func hintsOf(m *manifests.Manifest) tool.Hints {
	return tool.Hints{ReadOnly: m.Behavior.ReadOnly, Idempotent: m.Behavior.Idempotent, Destructive: m.Behavior.Destructive}
}

// Duplicates reports every name and alias that was kept out, sorted by name, source and
// file.
func (r *Registry) Duplicates() []*DuplicateError {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.names.duplicates()
}
