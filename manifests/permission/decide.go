package permission

import "slices"

// Outcome is what became of one request. Grants and denials are named by their indexes.
type Outcome struct {
	// Granted is what the request has in common with each grant, in the grants' order.
	Granted []Permit
	// Effective is Granted without what a denial takes away whole. What one takes away in part is
	// still among it: a use is allowed where a rule of Effective is about it, and no denial is.
	Effective []Permit
	// Taken are the denials that leave nothing of the request, or of something that was granted
	// of it, and Cut are all that have something in common with the request, these among them.
	// Both are in order.
	Taken, Cut []int
	// Elsewhere are the grants that have something in common with the request, and are bound to
	// other modules.
	Elsewhere []int
}

// Permit is what a request and a grant have in common.
type Permit struct {
	Rule  Rule
	Grant int
}

// Decide returns what is effective of each request: what grants give of it that hold for the module,
// less what is denied. The module is its digest, in lower-case hex digits; empty where that is not
// known. It is the one place where request ∩ grant − deny is computed, for every kind; the zero
// values grant nothing. It keeps none of its arguments.
func Decide(requests, grants, denials []Statement, module string) []Outcome {
	outcomes := make([]Outcome, len(requests))
	for i, request := range requests {
		outcomes[i] = decide(request.Rule, grants, denials, module)
	}
	return outcomes
}

func decide(request Rule, grants, denials []Statement, module string) Outcome {
	var o Outcome
	for i, grant := range grants {
		both, overlap := request.Intersect(grant.Rule)
		switch {
		case !overlap:
		case !grant.Holds(module):
			o.Elsewhere = append(o.Elsewhere, i)
		default:
			o.Granted = append(o.Granted, Permit{both, i})
		}
	}
	o.Effective = slices.Clone(o.Granted)
	for i, deny := range denials {
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
