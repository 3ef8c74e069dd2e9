package permission

import "slices"

// Outcome is the decision on one request. It refers to grants and denials by their indexes.
type Outcome struct {
	// Granted is the intersection of the request with each grant, in the order of the grants.
	Granted []Permit
	// Effective is Granted without permits that a denial covers completely. It still contains
	// permits that a denial covers in part: a use is allowed if a rule in Effective matches it and
	// no denial does.
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

// Decide returns what is effective of each request: what grants for the module allow, minus what is
// denied. module is a digest in lower-case hex digits, or empty if it is not known. For every kind
// of permission, this is the only place where request ∩ grant − deny is computed. Zero values grant
// nothing. Decide keeps none of its arguments.
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
