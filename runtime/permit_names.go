package runtime

import (
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// nameRules are what is said of a kind of permission that names one thing.
type nameRules struct {
	kind                      permission.Kind
	module                    string // its digest, if it is known
	requests, grants, denials []permission.Statement
}

func (n *nameRules) rule(name string) permission.Rule { return permission.NewName(n.kind, name) }

func (n *nameRules) request(name string) {
	n.requests = append(n.requests, permission.Statement{Rule: n.rule(name)})
}

func (n *nameRules) grant(name string, binding manifests.Binding) {
	n.grants = append(n.grants, permission.Statement{Rule: n.rule(name), Origin: binding.Origin, SHA256: binding.SHA256})
}

// deny is called for denials of all kinds, those without a name of this one among them.
func (n *nameRules) deny(name, origin string) {
	n.denials = append(n.denials, permission.Statement{Rule: n.rule(name), Origin: origin})
}

// decide returns the decisions, in the requests' order. It gives what is effective, of which the first
// grant counts, and asks what would allow what is not granted.
func (n *nameRules) decide(give func(name string, grant int), allow func(name string) tool.Allow) []tool.Decision {
	var decisions []tool.Decision
	for i, outcome := range permission.Decide(n.requests, n.grants, n.denials, n.module) {
		name := n.requests[i].Rule.(permission.Name).String()
		d := tool.Decision{Permission: string(n.kind), Requested: name}
		if len(outcome.Granted) > 0 {
			d.Granted = from(name, n.grants[outcome.Granted[0].Grant].Origin)
		}
		switch {
		case len(outcome.Taken) > 0:
			d.Reason = denies(n.denials[outcome.Taken[0]].Origin)
		case len(outcome.Effective) > 0:
			give(name, outcome.Effective[0].Grant)
			d.Effective, d.Reason = name, "granted"
		default:
			d.Reason, d.Allow = "no grant names it", allow(name)
		}
		if d.Effective == "" {
			d.Reason += elsewhere(outcome, n.grants, n.module)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// elsewhere names the grants that would hold for another module, to stand behind a reason.
func elsewhere(outcome permission.Outcome, grants []permission.Statement, module string) string {
	text := ""
	for _, i := range outcome.Elsewhere {
		text += "; " + grants[i].OtherModule("the grant", module)
	}
	return text
}
