// Package unapplied finds statements in policies that have no effect on the loaded tools, such as a
// grant for a tool that is not loaded. The author of such a statement relies on a false assumption.
package unapplied

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/redact"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// Finding is a statement in a policy that has no effect. It may be intended.
type Finding struct {
	Key    string // in its policy: "grants[0].files[1]"
	Origin string // where the policy says that it is written: "caisson.yaml:14"
	Text   string // the statement without an effect, and the reason
	Fix    string // what to do about it
}

// In returns the statements in policies that have no effect on the tools under a profile, policy by
// policy. Without tools, it returns only grants that give nothing to any tool. The function near
// returns similar names of tools. In reads the tools' modules if statements are bound to modules.
func In(
	policies []*manifests.Policy, profile manifests.Profile, tools []*manifests.Manifest, near func(name string) []string,
) []Finding {
	a := &applied{policies: policies, profile: profile, tools: tools, near: near}
	for _, policy := range policies {
		a.asks = append(a.asks, policy.Ask...)
	}
	for _, policy := range policies {
		a.policy(policy)
	}
	return a.found
}

// Unnamed returns a finding for the first of asks that matches none of the tools, if any.
func Unnamed(asks []manifests.PolicyAsk, tools []*manifests.Manifest, near func(name string) []string) (Finding, bool) {
	a := &applied{tools: tools, near: near}
	for i, ask := range asks {
		if len(a.matching(ask.Tool)) == 0 {
			a.unnamed(fmt.Sprintf("ask[%d]", i), ask.Origin, ask.Tool)
			return a.found[0], true
		}
	}
	return Finding{}, false
}

type applied struct {
	policies []*manifests.Policy
	profile  manifests.Profile
	tools    []*manifests.Manifest
	near     func(name string) []string
	asks     []manifests.PolicyAsk // of all policies
	found    []Finding
}

func (a *applied) policy(policy *manifests.Policy) {
	for _, source := range policy.Context {
		if s := (manifests.Deny{Context: source.Name}).Element(); len(a.tools) > 0 &&
			!slices.ContainsFunc(a.tools, s.Concerns) {
			a.add("context."+source.Name, source.Origin, "no tool asks for "+s.About, s.Fix)
		}
	}
	for i, grant := range policy.Grants {
		at := fmt.Sprintf("grants[%d]", i)
		switch {
		case len(grant.Elements()) == 0:
			a.add(at, grant.Origin, "the grant gives nothing",
				"add what its tools should get, such as files or network, or remove the grant")
		case len(a.tools) > 0:
			a.grant(at, grant)
		}
	}
	if len(a.tools) == 0 {
		return
	}
	for i, deny := range policy.Deny {
		a.deny(fmt.Sprintf("deny[%d]", i), deny)
	}
	for i, ask := range policy.Ask {
		a.ask(fmt.Sprintf("ask[%d]", i), ask)
	}
	for i, named := range policy.RecordInputs {
		a.recording(fmt.Sprintf("record_inputs[%d]", i), named)
	}
	for i, approval := range policy.Approve {
		a.approval(fmt.Sprintf("approve[%d]", i), approval)
	}
	for i, redaction := range policy.Redact {
		a.redaction(fmt.Sprintf("redact[%d]", i), redaction)
	}
}

func (a *applied) add(path, origin, text, fix string) {
	a.found = append(a.found, Finding{path, origin, text, fix})
}

// unnamed adds a finding for a name or a glob that matches no tool.
func (a *applied) unnamed(path, origin, pattern string) {
	a.add(path, origin, fmt.Sprintf("there is no tool %q here", pattern), a.fixFor(pattern))
}

// elsewhere adds a finding for a statement whose tools come from other sources than its own.
func (a *applied) elsewhere(at, origin, source string) {
	a.add(at+".source", origin, "none of its tools was loaded from the source "+source,
		"correct source, which starts at the policy's folder, or remove it")
}

func (a *applied) grant(at string, grant manifests.Grant) {
	named := a.named(at, grant.Origin, grant.Tools)
	if len(named) == 0 {
		return
	}
	alone := manifests.Policy{Grants: []manifests.Grant{grant}}
	var given []manifests.Element
	var receivers []*manifests.Manifest
	for _, m := range named {
		if elements := alone.For(m.Name, m.File).Elements(); len(elements) > 0 {
			given, receivers = elements, append(receivers, m)
		}
	}
	if len(receivers) == 0 {
		a.elsewhere(at, grant.Origin, grant.Source)
		return
	}
	a.elements(at+".", given, receivers)
	for i, network := range grant.Network {
		a.requests(fmt.Sprintf("%s.network[%d]", at, i), network, grant.Origin, receivers)
	}
	for i, files := range grant.Files {
		a.placeholders(fmt.Sprintf("%s.files[%d]", at, i), files, grant.Origin, receivers)
	}
	for i, secret := range grant.Secrets {
		a.secret(fmt.Sprintf("%s.secrets[%d]", at, i), secret, grant.Origin, receivers)
	}
}

// deny checks one denial of a policy. A denial without effect gives a false sense of security.
func (a *applied) deny(at string, deny manifests.PolicyDeny) {
	concerned := a.tools
	switch {
	case len(deny.Tools) > 0:
		concerned = a.named(at, deny.Origin, deny.Tools)
	case deny.Network != nil:
		return // a denial for all tools also guards against future grants
	}
	s := deny.Element()
	if len(concerned) == 0 || slices.ContainsFunc(concerned, s.Concerns) {
		return
	}
	text, fix := "none of its tools asks for "+s.About, s.Fix
	if s.Tool != "" {
		text, fix = a.uncalled("none of its tools", s.Tool, concerned)
	}
	a.add(at, deny.Origin, "it has no effect, because "+text, fix)
}

// named returns the tools that match a list of names and globs, and adds findings for those that match none.
func (a *applied) named(at, origin string, patterns []string) []*manifests.Manifest {
	var all []*manifests.Manifest
	for i, pattern := range patterns {
		matching := a.matching(pattern)
		if len(matching) == 0 {
			a.unnamed(fmt.Sprintf("%s.tools[%d]", at, i), origin, pattern)
		}
		for _, m := range matching {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// matching returns the tools whose names match a pattern.
func (a *applied) matching(pattern string) []*manifests.Manifest {
	return slices.DeleteFunc(slices.Clone(a.tools), func(m *manifests.Manifest) bool { return !matches(pattern, m) })
}

func matches(pattern string, m *manifests.Manifest) bool {
	ok, err := path.Match(pattern, m.Name)
	return ok && err == nil
}

// fixFor returns the fix for a name or a glob that matches no tool.
func (a *applied) fixFor(pattern string) string {
	if near := a.near(pattern); len(near) > 0 && !strings.ContainsAny(pattern, `*?[\`) {
		return "did you mean " + strings.Join(near, ", ") + "?"
	}
	return "load the tool, or correct the name"
}

func (a *applied) elements(at string, given []manifests.Element, receivers []*manifests.Manifest) {
	for _, s := range given {
		asking := slices.DeleteFunc(slices.Clone(receivers), func(m *manifests.Manifest) bool { return !s.Concerns(m) })
		switch {
		case s.Tool != "" && (len(asking) == 0 || a.tool(s.Tool) == nil):
			text, fix := a.uncalled("no tool that it applies to", s.Tool, receivers)
			a.add(at+s.Key, s.Origin, text, fix)
		case len(asking) == 0:
			a.add(at+s.Key, s.Origin, "no tool that it applies to asks for "+s.About, s.Fix)
		case s.SHA256 != "" &&
			!slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return isModule(m, s.SHA256) }):
			a.add(at+s.Key, s.Origin, fmt.Sprintf("no tool that asks for %s has the module with sha256 %s", s.About, s.SHA256),
				fixDigest)
		}
	}
}

const fixDigest = "find out who changed the module; if the change is wanted, write the digest that caisson inspect " +
	"shows"

func isModule(m *manifests.Manifest, digest string) bool { return digestOf(m) == digest }

// digestOf returns the digest of a tool's module, or "" if it cannot be read.
func digestOf(m *manifests.Manifest) string {
	info, _ := runtime.InspectModule(m) // an error does not matter if the digest is set
	return info.SHA256
}

// shownAsked is the maximum number of names of requested tools that a text lists.
const shownAsked = 5

// uncalled says why granting or denying the call of a name has no effect: the likeliest mistake first.
func (a *applied) uncalled(subject, name string, callers []*manifests.Manifest) (text, fix string) {
	called := a.tool(name)
	if called == nil {
		return fmt.Sprintf("there is no tool %q here to call", name), a.fixFor(name)
	}
	asked := askedBy(callers)
	// A permission applies to one name, not to the tool's other names.
	for _, other := range asked {
		if a.tool(other) != called {
			continue
		}
		relation := fmt.Sprintf("it is an alias of %s", called.Name)
		if name == called.Name {
			relation = fmt.Sprintf("it has the alias %s", other)
		}
		return fmt.Sprintf("%s asks to call %s: %s, and the manifest asks for %s", subject, name, relation, other),
			"write " + other
	}
	text = fmt.Sprintf("%s asks to call %s", subject, name)
	if more := len(asked) - shownAsked; more > 0 {
		asked = append(asked[:shownAsked], fmt.Sprintf("and %d more", more))
	}
	if len(asked) > 0 {
		text += fmt.Sprintf(" (they ask for: %s)", strings.Join(asked, ", "))
	}
	return text, "write a name that a manifest has under permissions.tools, or remove it"
}

func (a *applied) tool(name string) *manifests.Manifest {
	at := slices.IndexFunc(a.tools, func(m *manifests.Manifest) bool { return m.Name == name })
	if at < 0 {
		at = slices.IndexFunc(a.tools, func(m *manifests.Manifest) bool { return slices.Contains(m.Aliases, name) })
	}
	if at < 0 {
		return nil
	}
	return a.tools[at]
}

func askedBy(callers []*manifests.Manifest) []string {
	var names []string
	for _, m := range callers {
		for _, name := range m.Permissions.Tools {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (a *applied) ask(at string, ask manifests.PolicyAsk) {
	named := a.matching(ask.Tool)
	switch {
	case len(named) == 0:
		a.unnamed(at, ask.Origin, ask.Tool)
	case !slices.ContainsFunc(named, runsHere):
		a.add(at, ask.Origin, "it has no effect, because the client runs these tools and sees each call first", "remove it")
	}
}

func (a *applied) recording(at string, named manifests.PolicyAsk) {
	matched := a.matching(named.Tool)
	switch {
	case len(matched) == 0:
		a.unnamed(at, named.Origin, named.Tool)
	case !slices.ContainsFunc(matched, runsHere):
		a.add(at, named.Origin, "it has no effect, because the client runs these tools", "remove it")
	}
}

func runsHere(m *manifests.Manifest) bool { return m.Execution != manifests.ExecutionClient }

func (a *applied) approval(at string, approval manifests.PolicyApproval) {
	alone := manifests.Policy{Approve: []manifests.PolicyApproval{approval}}
	named := a.named(at, approval.Origin, approval.Tools)
	if len(named) == 0 {
		return
	}
	given := slices.DeleteFunc(named,
		func(m *manifests.Manifest) bool { return len(alone.For(m.Name, m.File).Approved) == 0 })
	if len(given) == 0 {
		a.elsewhere(at, approval.Origin, approval.Source)
		return
	}
	asksAlways := func(m *manifests.Manifest) bool {
		return slices.ContainsFunc(a.asks, func(ask manifests.PolicyAsk) bool { return matches(ask.Tool, m) })
	}
	asking := slices.DeleteFunc(given, func(m *manifests.Manifest) bool { return !m.Behavior.Destructive || !runsHere(m) })
	switch {
	case len(asking) == 0:
		a.add(at, approval.Origin, "it has no effect, because none of its tools is both destructive and run here",
			"remove it")
	case approval.SHA256 != "" &&
		!slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return isModule(m, approval.SHA256) }):
		a.add(at+".sha256", approval.Origin, fmt.Sprintf("none of its tools has the module with sha256 %s", approval.SHA256),
			fixDigest)
	case !slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return !asksAlways(m) }):
		a.add(at, approval.Origin, "it has no effect, because calls of its tools always need approval",
			"remove it, or the entries under ask")
	}
}

// redaction checks one redaction of a policy. One without effect leaves in records what is thought not to be there.
func (a *applied) redaction(at string, r manifests.PolicyRedaction) {
	named := a.named(at, r.Origin, r.Tools)
	for i, pointer := range r.Arguments {
		if len(named) > 0 && !slices.ContainsFunc(named, func(m *manifests.Manifest) bool {
			return redact.Declares(m.Parameters, pointer)
		}) {
			a.add(fmt.Sprintf("%s.arguments[%d]", at, i), r.Origin,
				fmt.Sprintf("none of its tools has a parameter at %s", pointer),
				"write a JSON Pointer to a parameter; caisson inspect "+named[0].Name+" shows them")
		}
	}
}
