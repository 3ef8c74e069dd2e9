package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

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
