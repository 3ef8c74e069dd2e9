package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

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

// Asks returns why calls of the tool must be approved, or "" where they need not be. It asks the tool
// if that is [Guarded]; one that panics then has all of its calls approved.
func (e Entry) Asks() (reason string) {
	g, ok := e.Tool.(Guarded)
	if !ok {
		if e.Manifest != nil && e.Manifest.Behavior.Destructive {
			return "the tool says that it is destructive"
		}
		return ""
	}
	if !apart(func() { reason = g.Asks() }) {
		return "the tool failed when it was asked whether its calls must be approved"
	}
	return reason
}

// apart runs a tool's code on a goroutine of its own, so that neither a panic nor a runtime.Goexit in
// it ends its caller. It reports whether the code returned.
func apart(do func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // that it did not return says enough
		do()
		returned = true
	}()
	<-done
	return returned
}

// errNoIdentity means that nothing tells what a call of a tool would do.
var errNoIdentity = errors.New("the tool has no identity")

// Identity returns a digest of all that decides what a call of the tool can do, as the tool has it
// that is [Guarded]. That of any other is of what its manifest says of calls: programs that change
// what such a tool does under the same manifest make it Guarded. It may read files, and fails as ctx
// does; a tool that panics makes an error.
func (e Entry) Identity(ctx context.Context) (identity string, err error) {
	g, ok := e.Tool.(Guarded)
	if !ok {
		return e.described()
	}
	defer func() {
		if value := recover(); value != nil {
			identity, err = "", fmt.Errorf("panic: %v", value)
		}
	}()
	identity, err = g.Identity(ctx)
	if err == nil && identity == "" {
		err = errNoIdentity
	}
	return identity, err
}

// described is the identity of a tool that says no more than its manifest does.
func (e Entry) described() (string, error) {
	m := e.Manifest
	if m == nil {
		return "", errNoIdentity
	}
	content := struct {
		Name, Description, Version string
		Module                     manifests.Module
		Arguments                  []string // the argv template, which is no JSON
		Parameters, Result         json.RawMessage
		Permissions                manifests.Permissions
		Limits                     manifests.Limits
		Context                    []string
		Behavior                   manifests.Behavior
		Execution                  manifests.Execution
		Type                       manifests.Type
		Requires                   []string
	}{
		Name: m.Name, Description: m.Description, Version: m.Version, Module: m.Module, Permissions: m.Permissions, Limits: m.Limits,
		Context: m.Context, Behavior: m.Behavior, Execution: m.Execution, Type: m.Type, Requires: m.Requires,
	}
	for _, template := range m.Module.Args {
		content.Arguments = append(content.Arguments, template.String())
	}
	if m.Parameters != nil {
		content.Parameters = m.Parameters.JSON()
	}
	if m.Result != nil {
		content.Result = m.Result.JSON()
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("identity of %s: %w", m.Name, err)
	}
	digest := sha256.Sum256(text)
	return "manifest:" + hex.EncodeToString(digest[:]), nil
}

// Hints returns what the tool's author says of it.
func (e Entry) Hints() tool.Hints {
	if e.Manifest == nil {
		return tool.Hints{}
	}
	return hintsOf(e.Manifest)
}

// Decisions returns what became of the permissions that the tool asks for, of one that is
// [Explained]; nil of any other. One that panics is said to have failed.
func (e Entry) Decisions() (decisions []tool.Decision) {
	x, ok := e.Tool.(Explained)
	if !ok {
		return nil
	}
	if !apart(func() { decisions = x.Decisions() }) {
		return []tool.Decision{{Reason: "the tool failed when it was asked what it may do"}}
	}
	return decisions
}

// Tool is what a registry holds. Its methods must be safe for concurrent use.
//
// A tool may also be a [Closer], be [Guarded] or [Explained], and have an [Availability].
type Tool interface {
	// Manifest describes the tool. It is asked for once, when the tool is registered,
	// so a tool cannot change its name afterwards.
	Manifest() *manifests.Manifest
	// Invoke runs one call. The outcome's Result is always filled in. The error is
	// nil when the tool ran to an end of its own, also when it reported failure. It is
	// a *tool.Error otherwise, and Result then carries the same kind and message.
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// Closer is a [Tool] that holds resources. Close is called once, after the last call
// has ended. The only exception is a call that outlasts the context of
// [Registry.Close]: it may then still be running.
type Closer interface {
	Close(ctx context.Context) error
}

// Availability is a [Tool] that cannot always be used, for example because a setting
// that it requires is missing.
type Availability interface {
	// Unavailable returns why the tool cannot be used now, or "" if it can. The reason
	// is one line that people and models may read: no secret, no path of the host.
	// It must return at once.
	Unavailable() string
}

// Guarded is a [Tool] that says whether its calls must be approved, and what an approval is bound
// to. Of one that is not Guarded, calls must be approved if its manifest says that it is destructive.
type Guarded interface {
	// Asks says why calls must be approved, in one line that people and models may read; "" where
	// they need not be. It must return at once.
	Asks() string
	// Identity returns a digest of all that decides what a call of the tool can do: its module, its
	// manifest and its effective permissions. It may have to read the module.
	Identity(ctx context.Context) (string, error)
}

// Explained is a [Tool] that says what became of the permissions that its manifest asks for, for
// whoever approves of its calls.
type Explained interface {
	// Decisions returns a list that the caller may keep. It must return at once.
	Decisions() []tool.Decision
}

// unavailable returns why a tool cannot be used, or "". A tool that panics when it is asked
// must not take with it whoever lists the tools.
func unavailable(t Tool) (reason string) {
	a, ok := t.(Availability)
	if !ok {
		return ""
	}
	defer func() {
		if recover() != nil {
			reason = "it failed when it was asked whether it can be used"
		}
	}()
	return a.Unavailable()
}

// closeTool closes a tool that can be closed.
func closeTool(ctx context.Context, t Tool) error {
	if c, ok := t.(Closer); ok {
		return c.Close(ctx)
	}
	return nil
}
