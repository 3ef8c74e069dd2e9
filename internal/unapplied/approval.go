package unapplied

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
)

// approvals checks the statements of a policy on approval.
func (a *applied) approvals(says *manifests.Policy) {
	for i, ask := range says.Ask {
		a.ask(fmt.Sprintf("ask[%d]", i), ask)
	}
	for i, approval := range says.Approve {
		a.approval(fmt.Sprintf("approve[%d]", i), approval)
	}
}

func (a *applied) ask(at string, ask manifests.PolicyAsk) {
	named := a.matching(ask.Tool)
	switch {
	case len(named) == 0:
		a.unnamed(at, ask.Origin, ask.Tool)
	case !slices.ContainsFunc(named, runsHere):
		a.add(at, ask.Origin, "it changes nothing, since the client runs these tools and is told of each call", "remove it")
	}
}

func runsHere(m *manifests.Manifest) bool { return m.Execution != manifests.ExecutionClient }

func (a *applied) approval(at string, approval manifests.PolicyApproval) {
	alone := manifests.Policy{Approve: []manifests.PolicyApproval{approval}}
	named := a.named(at, approval.Origin, approval.Tools)
	if len(named) == 0 {
		return
	}
	given := slices.DeleteFunc(named, func(m *manifests.Manifest) bool { return len(alone.For(m.Name, m.File).Approved) == 0 })
	if len(given) == 0 {
		a.add(at+".source", approval.Origin, fmt.Sprintf("none of its tools was loaded from the source %s", approval.Source),
			"correct source, which starts at the policy's folder, or remove it")
		return
	}
	asking := slices.DeleteFunc(given, func(m *manifests.Manifest) bool { return !m.Behavior.Destructive || !runsHere(m) })
	switch {
	case len(asking) == 0:
		a.add(at, approval.Origin, "it changes nothing, since none of its tools is destructive and run here", "remove it")
	case approval.SHA256 != "" && !slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return isModule(m, approval.SHA256) }):
		a.add(at+".sha256", approval.Origin, fmt.Sprintf("none of its tools has the module with sha256 %s", approval.SHA256),
			"find out who changed the module; if the change is wanted, write the digest that caisson inspect shows")
	case !slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return !a.asked[m.Name] }):
		a.add(at, approval.Origin, "it changes nothing, since calls of its tools wait for approval in any case", "remove it, or what asks for them")
	}
}

// noteAsked notes the tools that the policy always requires approval for.
func (a *applied) noteAsked(says *manifests.Policy) {
	for _, ask := range says.Ask {
		for _, m := range a.matching(ask.Tool) {
			a.asked[m.Name] = true
		}
	}
}
