package repair

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// choose repairs a value for the one union that it does not fit, if all alternatives for
// which that can be done come to the same value.
func (w *walk) choose(at *spot, text json.RawMessage, p place) json.RawMessage {
	unfit := slices.DeleteFunc(slices.Clone(p.unions), func(u schema.Union) bool { return w.holds(u, text) })
	if len(unfit) != 1 {
		return text
	}
	defer func(defaults bool) { w.defaults = defaults }(w.defaults)
	w.defaults = false // whether an alternative applies must not depend on what is filled in
	var chosen json.RawMessage
	var repairs []tool.Repair
	for _, branch := range unfit[0].Branches {
		before := w.mark()
		candidate := w.value(at, text, w.branch(p, branch))
		made := slices.Clone(w.repairs[before.repairs:])
		w.back(before)
		if w.over || !w.holdsAll(p.unions, candidate) {
			continue
		}
		if chosen != nil && !bytes.Equal(chosen, candidate) {
			return text
		}
		if chosen == nil {
			chosen, repairs = candidate, made
		}
	}
	if chosen == nil {
		return text
	}
	for _, r := range repairs {
		w.record += len(r.From) + len(r.To) + visitWork
	}
	w.repairs = append(w.repairs, repairs...)
	return chosen
}

func (w *walk) holdsAll(unions []schema.Union, text json.RawMessage) bool {
	return !slices.ContainsFunc(unions, func(u schema.Union) bool { return !w.holds(u, text) })
}

// holds reports whether a value certainly fits a union.
func (w *walk) holds(u schema.Union, text json.RawMessage) bool {
	count := 0
	for _, branch := range u.Branches {
		if w.fitsNode(branch, text) {
			count++
		}
	}
	return count == 1 || count > 1 && !u.ExactlyOne
}
