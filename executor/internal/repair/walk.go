package repair

import (
	"encoding/json"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// Bounds on one repair of arguments.
const (
	// MaxRepairs is how many changes are made.
	MaxRepairs = 1024
	// maxRecord is how many bytes the record of them may take.
	maxRecord = 4 * tool.MaxArgumentsBytes
	// maxWork is about how many bytes may be looked at, and visitWork what one look
	// costs beside.
	maxWork   = 16 << 20
	visitWork = 64
	// nameWork is what it costs to sort the name of a member that may be filled in.
	nameWork = 16
	// lookEvery is how much of it is done between two looks at the context.
	lookEvery = 64 << 10
)

// walk goes once through arguments and their schema, and repairs.
type walk struct {
	places
	session  *session
	filler   filler
	reserved func(name string) bool
	// rules and defaults say whether values are repaired, and defaults filled in.
	rules, defaults bool

	repairs []tool.Repair
	record  int // bytes of repairs
	work    int
	next    int  // the work at which to look at the context
	over    bool // a bound is exceeded: nothing is repaired
	again   bool // a string inside a string would have to be opened
}

// spend pays for looking at a value, or reports that a bound is exceeded.
func (w *walk) spend(bytes int) bool {
	w.work += bytes + visitWork
	if w.work >= w.next {
		w.next = w.work + lookEvery
		w.over = w.over || w.session.ended() != nil
	}
	w.over = w.over || w.work > maxWork
	return !w.over
}

// note records a change. What is not there is null.
func (w *walk) note(at *spot, rule Rule, from, to json.RawMessage) {
	w.record += len(from) + len(to) + visitWork
	if len(w.repairs) == MaxRepairs || w.record > maxRecord {
		w.over = true
		return
	}
	w.repairs = append(w.repairs, tool.Repair{Path: at.path(), Rule: string(rule), From: from, To: to})
}

// mark is a state of the record to which a walk can go back.
type mark struct{ repairs, record int }

func (w *walk) mark() mark { return mark{len(w.repairs), w.record} }

func (w *walk) back(to mark) { w.repairs, w.record = w.repairs[:to.repairs], to.record }

// fits reports whether a value certainly fits all schemas of a place.
func (w *walk) fits(p place, text json.RawMessage) bool {
	for _, n := range p.nodes {
		if !w.fitsNode(n, text) {
			return false
		}
	}
	return true
}

func (w *walk) fitsNode(n *schema.Node, text json.RawMessage) bool {
	return w.spend(len(text)) && w.session.fits(n, text)
}

// value returns what a value becomes.
func (w *walk) value(at *spot, text json.RawMessage, p place) json.RawMessage {
	if !w.rules && !w.filler.any(p.nodes) || !w.spend(len(text)) {
		return text
	}
	if at.depth > tool.MaxArgumentsDepth {
		w.over = true
		return text
	}
	if !w.rules {
		return w.inside(at, text, p)
	}
	if cast := castScalar(text, p.types); cast != nil {
		w.note(at, cast.rule, text, cast.text)
		text = cast.text
	}
	if inner, ok := w.openString(at, text, p); ok {
		return inner
	}
	if wrapped, ok := w.wrapArray(at, text, p); ok {
		text = wrapped
	} else {
		text = w.clamp(at, w.inside(at, text, p), p)
	}
	return w.choose(at, text, p)
}

// inside repairs what is in a container.
func (w *walk) inside(at *spot, text json.RawMessage, p place) json.RawMessage {
	switch text[0] {
	case '{':
		return w.object(at, text, p)
	case '[':
		return w.array(at, text, p)
	default:
		return text
	}
}

func (w *walk) array(at *spot, text json.RawMessage, p place) json.RawMessage {
	list, changed := elements(text), false
	for i, element := range list {
		if w.over {
			return text
		}
		before := len(w.repairs)
		list[i] = w.value(at.element(i), element, w.element(p, i))
		changed = changed || len(w.repairs) > before
	}
	if !changed {
		return text
	}
	return array(list)
}

func (w *walk) object(at *spot, text json.RawMessage, p place) json.RawMessage {
	before := len(w.repairs)
	var kept []member
	present := map[string]bool{}
	for _, m := range members(text) {
		if w.over {
			return text
		}
		if at.parent != nil || !w.reserved(m.name) {
			inner := w.member(p, m.name)
			if w.dropNull(at, m, p, inner) {
				continue
			}
			m.text = w.value(at.member(m.name), m.text, inner)
		}
		present[m.name] = true
		kept = append(kept, m)
	}
	if w.defaults {
		kept = w.fillIn(at, kept, present, p)
	}
	if len(w.repairs) == before {
		return text
	}
	return object(kept)
}
