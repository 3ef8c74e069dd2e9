package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Entry describes a registered tool. It is a copy, so changing it does not change the registry.
type Entry struct {
	// Tool is the tool itself. Close does not wait for calls made through it instead of [Registry.Invoke].
	Tool     Tool
	Manifest *manifests.Manifest
	Name     string   // the registered name
	Aliases  []string // the aliases it holds, in its manifest's order
	Retired  []string // the names of former tools that it holds, in its manifest's order
	Source   string   // the source; "" for tools that a program adds
	// Shadowed holds the origins of the names that were rejected because of this tool, sorted.
	Shadowed []Origin
	// Registration distinguishes this tool from any other that has or had its name.
	Registration tool.Registration
}

// describe returns an entry. The caller must hold r.mu.
func (r *Registry) describe(e *entry) Entry {
	aliases, retired := r.names.heldNames(e)
	return Entry{
		Tool: e.tool, Manifest: e.manifest, Name: e.origin.Name, Source: e.origin.Source,
		Aliases: aliases, Retired: retired, Shadowed: r.names.shadowed(e), Registration: e.registration,
	}
}

// Get returns the tool with exactly this name or alias.
func (r *Registry) Get(name string) (Entry, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	held, ok := r.names.findTool(name)
	if !ok {
		return Entry{}, false
	}
	return r.describe(held.entry), true
}

// Replacement returns the name of the tool that replaces a former tool with exactly this name, if there is one.
func (r *Registry) Replacement(retired string) (name string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	held, ok := r.names.find(retired)
	if !ok || held.entry.tool == nil || !held.origin.Retired {
		return "", false
	}
	return held.entry.origin.Name, true
}

// List returns all tools sorted by name, including hidden and unavailable ones.
func (r *Registry) List() []Entry {
	r.mu.RLock()
	entries := r.names.entries()
	list := make([]Entry, len(entries))
	for i, e := range entries {
		list[i] = r.describe(e)
	}
	r.mu.RUnlock()
	return list
}

// offered returns the entries to offer to a model, sorted by name.
func (r *Registry) offered() []*entry {
	r.mu.RLock()
	entries := r.names.entries()
	r.mu.RUnlock()
	var offered []*entry
	for _, e := range entries {
		if (Entry{Tool: e.tool}).Unavailable() == "" {
			offered = append(offered, e)
		}
	}
	return offered
}

// noParameters is the schema of a tool that shows no parameters to a model.
const noParameters = `{"type":"object","properties":{}}`

// Definitions returns the tools as offered to a model, without unavailable ones. Hidden tools are
// included: they are hidden from people only. The definitions are sorted by name and byte-for-byte
// equal between calls, because prompt caches depend on it. The result is never nil.
func (r *Registry) Definitions() []tool.Definition {
	definitions := []tool.Definition{}
	for _, e := range r.offered() {
		definitions = append(definitions, define(e.origin.Name, e.manifest))
	}
	return definitions
}

func define(name string, m *manifests.Manifest) tool.Definition {
	d := tool.Definition{
		Name: name, Description: m.Description, Parameters: bytes.Clone(m.ModelParameters),
		Format: bytes.Clone(m.Format), Label: m.Label, Hints: hintsOf(m),
	}
	if len(d.Parameters) == 0 {
		d.Parameters = json.RawMessage(noParameters)
	}
	if m.Type != tool.FunctionCall {
		d.Type = string(m.Type)
	}
	if m.Result != nil {
		d.Result = bytes.Clone(m.Result.JSON())
	}
	return d
}

func hintsOf(m *manifests.Manifest) tool.Hints {
	return tool.Hints{ReadOnly: m.Behavior.ReadOnly, Idempotent: m.Behavior.Idempotent,
		Destructive: m.Behavior.Destructive}
}

// Duplicates returns every rejected name and alias, sorted by name, source and file.
func (r *Registry) Duplicates() []*DuplicateError {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.names.duplicates()
}

// Unavailable returns why the tool cannot be used now, or "" if it can. It asks the [Tool] if it has that method. If
// that panics, the tool cannot be used.
func (e Entry) Unavailable() (reason string) {
	a, ok := e.Tool.(interface{ Unavailable() string })
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

// Asks returns why calls of the tool must be approved, or "" if they need not be. It asks the
// [Tool] if it has that method. If that panics, all calls of the tool must be approved.
func (e Entry) Asks() string {
	g, ok := e.Tool.(approver)
	switch {
	case ok:
		var reason string
		if !isolate(func() { reason = g.Asks() }) {
			return "the tool failed when it was asked whether its calls must be approved"
		}
		return reason
	case e.Manifest != nil && e.Manifest.Behavior.Destructive:
		return "the tool says that it is destructive"
	}
	return ""
}

// isolate runs a tool's code apart, so that neither a panic nor runtime.Goexit ends the caller, and reports its return.
func isolate(do func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // returned stays false
		do()
		returned = true
	}()
	<-done
	return returned
}

// errNoIdentity means that nothing determines what a call of the tool would do.
var errNoIdentity = errors.New("the tool has no identity")

// Identity returns a digest of everything that determines what a call of the tool can do. A
// tool with this method provides it. For any other tool it is a digest of the parts of the manifest that
// concern calls. A tool whose behavior can change under the same manifest must therefore have
// it. Identity may read files. It returns an error if the tool panics.
func (e Entry) Identity(ctx context.Context) (identity string, err error) {
	g, ok := e.Tool.(approver)
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

// described returns an identity derived only from the manifest.
func (e Entry) described() (string, error) {
	m := e.Manifest
	if m == nil {
		return "", errNoIdentity
	}
	content := struct {
		Name, Description, Version string
		Module                     modules.Module
		Arguments                  []string // the argv template, which is not JSON
		Parameters, Result         json.RawMessage
		Permissions                manifests.Permissions
		Limits                     manifests.Limits
		Context                    []string
		Behavior                   manifests.Behavior
		Execution                  manifests.Execution
		Type                       string
		Requires                   []string
	}{
		Name: m.Name, Description: m.Description, Version: m.Version, Module: m.Module, Permissions: m.Permissions,
		Limits:  m.Limits,
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
	return fmt.Sprintf("manifest:%x", sha256.Sum256(text)), nil
}

// Hints returns what the tool's author declares about it.
func (e Entry) Hints() tool.Hints {
	if e.Manifest == nil {
		return tool.Hints{}
	}
	return hintsOf(e.Manifest)
}

// Decisions returns the decisions on the permissions requested by a [Tool] with this method, and nil for
// any other. If the tool panics, the only decision says so.
func (e Entry) Decisions() (decisions []tool.Decision) {
	x, ok := e.Tool.(interface{ Decisions() []tool.Decision })
	if !ok {
		return nil
	}
	if !isolate(func() { decisions = x.Decisions() }) {
		return []tool.Decision{{Reason: "the tool failed when it was asked what it may do"}}
	}
	return decisions
}

// Tool is a tool in a registry. Its methods must be safe for concurrent use. A tool may also be a [SessionCloser], and
// may have some of these methods, which must return at once unless they take a context:
//
//   - Close(ctx) error frees what the tool holds. It is called once, after the last call has ended. Only a call that
//     outlasts the context of [Registry.Close] may still be running.
//   - Unavailable() string returns why the tool cannot be used now, for example because a required setting is missing,
//     or "" if it can. The reason is one line that people and models may read: no secrets and no host paths.
//   - Asks() string returns why calls must be approved, in one line that people and models may read, or "" if they need
//     not be. Calls of other tools must be approved if the manifest declares them destructive.
//   - Identity(ctx) (string, error), which a tool with Asks must have, returns a digest of everything that determines
//     what a call can do, to which approvals are bound: its module, its manifest and its effective permissions.
//   - Decisions() []tool.Decision explains the decisions on the permissions that the manifest requests, to help people
//     decide whether to approve calls. The caller may keep the list.
type Tool interface {
	// Manifest describes the tool. It is called once, when the tool is registered, so a tool cannot
	// change its name afterwards.
	Manifest() *manifests.Manifest
	// Invoke runs one call. The outcome's Result is always filled in. The error is nil if the tool ran to completion,
	// even if it reported failure. Otherwise it is a *tool.Error, and Result has the same kind and message.
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// SessionCloser is a [Tool] that keeps data of sessions, such as temporary tables.
type SessionCloser interface {
	// CloseSession frees what the tool keeps of a tenant's session that has ended, if anything. It is
	// called after the session's last call. A session that begins later may have the same id.
	CloseSession(ctx context.Context, tenant, session string) error
}

// approver is a [Tool] that says whether its calls must be approved.
type approver interface {
	Asks() string
	Identity(ctx context.Context) (string, error)
}

// closeTool closes a tool if it can be closed.
func closeTool(ctx context.Context, t Tool) error {
	if c, ok := t.(interface {
		Close(ctx context.Context) error
	}); ok {
		return c.Close(ctx)
	}
	return nil
}
