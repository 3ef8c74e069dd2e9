package unapplied

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
)

func (a *applied) ask(at string, ask manifests.PolicyAsk) {
	named := a.matching(ask.Tool)
	switch {
	case len(named) == 0:
		a.unnamed(at, ask.Origin, ask.Tool)
	case !slices.ContainsFunc(named, runsHere):
		a.add(at, ask.Origin, "it has no effect, because the client runs these tools and sees each call first", "remove it")
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
	asking := slices.DeleteFunc(given, func(m *manifests.Manifest) bool { return !m.Behavior.Destructive || !runsHere(m) })
	switch {
	case len(asking) == 0:
		a.add(at, approval.Origin, "it has no effect, because none of its tools is both destructive and run here",
			"remove it")
	case approval.SHA256 != "" &&
		!slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return isModule(m, approval.SHA256) }):
		a.add(at+".sha256", approval.Origin, fmt.Sprintf("none of its tools has the module with sha256 %s", approval.SHA256),
			fixDigest)
	case !slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return !a.alwaysAsked(m) }):
		a.add(at, approval.Origin, "it has no effect, because calls of its tools always need approval",
			"remove it, or the entries under ask")
	}
}

// alwaysAsked reports whether the policies require approval for every call of a tool.
func (a *applied) alwaysAsked(m *manifests.Manifest) bool {
	return slices.ContainsFunc(a.asks, func(ask manifests.PolicyAsk) bool { return matches(ask.Tool, m) })
}
