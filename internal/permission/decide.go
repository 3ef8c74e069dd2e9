package permission

import (
	"cmp"
	"slices"

	"github.com/caisson-run/caisson/tool"
)

// Outcome is the decision on one request. It refers to grants and denials by their indexes.
type Outcome struct {
	// Granted is the intersection of the request with each grant, in the order of the grants.
	Granted []Permit
	// Effective is Granted without permits that a denial covers completely. It still contains permits that a denial
	// covers in part: a use is allowed if a rule in Effective matches it and no denial does.
	Effective []Permit
	// Taken are the denials that cover the whole request or a whole permit in Granted. Cut are all
	// denials that intersect the request, including those in Taken. Both are in order.
	Taken, Cut []int
	// Elsewhere are the grants that intersect the request but are restricted to other modules.
	Elsewhere []int
}

// Permit is the intersection of a request and a grant.
type Permit struct {
	Rule  Rule
	Grant int
}

// Rules are the requests, grants and denials of one tool, of one kind of permission. For every kind, [Rules.Decide] is
// the only place where request ∩ grant − deny is computed. The zero value grants nothing.
type Rules struct {
	Requests        []Rule
	Grants, Denials []Statement
	// Module is the digest of the tool's module in lower-case hex digits, or empty if it is not known.
	Module string
}

// Operator is named in texts in place of an origin that is empty.
const Operator = "the operator"

// Decide returns the outcome of each request: the permits of the grants for the module, minus the denied ones.
func (r Rules) Decide() []Outcome {
	outcomes := make([]Outcome, len(r.Requests))
	for i, request := range r.Requests {
		outcomes[i] = r.DecideOne(request)
	}
	return outcomes
}

// DecideOne is [Rules.Decide] for one request, which need not be among Requests.
func (r Rules) DecideOne(request Rule) Outcome {
	var o Outcome
	for i, grant := range r.Grants {
		both, overlap := request.Intersect(grant.Rule)
		switch {
		case !overlap:
		case !grant.Holds(r.Module):
			o.Elsewhere = append(o.Elsewhere, i)
		default:
			o.Granted = append(o.Granted, Permit{both, i})
		}
	}
	o.Effective = slices.Clone(o.Granted)
	for i, deny := range r.Denials {
		if _, overlap := request.Intersect(deny.Rule); !overlap {
			continue
		}
		o.Cut = append(o.Cut, i)
		covered := func(p Permit) bool { return deny.Rule.Covers(p.Rule) }
		if deny.Rule.Covers(request) || slices.ContainsFunc(o.Granted, covered) {
			o.Taken = append(o.Taken, i)
		}
		o.Effective = slices.DeleteFunc(o.Effective, covered)
	}
	return o
}

// DeniedBy returns the reason for an outcome in which a denial took something, for receipts.
func (r Rules) DeniedBy(o Outcome) string {
	return "denied by " + cmp.Or(r.Denials[o.Taken[0]].Origin, Operator)
}

// ForOthers describes the grants of an outcome that are restricted to other modules, to follow a
// reason. The text is empty if there are none.
func (r Rules) ForOthers(o Outcome, what string) string {
	text := ""
	for _, i := range o.Elsewhere {
		text += r.Grants[i].otherModule(what, r.Module)
	}
	return text
}

// DecideNames returns the decision on each request of a kind whose rules are of type [Name], and the grant, as an
// index, of each name in effect. missing is the reason if there is no grant, and allow returns the rules that would
// allow a name.
func (r Rules) DecideNames(
	missing string, allow func(name string) tool.Allow,
) (decisions []tool.Decision, effective map[string]int) {
	effective = map[string]int{}
	for i, outcome := range r.Decide() {
		requested := r.Requests[i].(Name)
		name := requested.String()
		d := tool.Decision{Permission: string(requested.Kind()), Requested: name}
		if len(outcome.Granted) > 0 {
			d.Granted = Written(name, r.Grants[outcome.Granted[0].Grant].Origin)
		}
		switch {
		case len(outcome.Taken) > 0:
			d.Reason = r.DeniedBy(outcome)
		case len(outcome.Effective) > 0:
			effective[name] = outcome.Effective[0].Grant
			d.Effective, d.Reason = name, "granted"
		default:
			d.Reason, d.Allow = missing, allow(name)
		}
		if d.Effective == "" {
			d.Reason += r.ForOthers(outcome, "the grant")
		}
		decisions = append(decisions, d)
	}
	return decisions, effective
}

// Written returns a text followed by its origin in parentheses, if that is not empty.
func Written(text, origin string) string {
	if origin == "" {
		return text
	}
	return text + " (" + origin + ")"
}
