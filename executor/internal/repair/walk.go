package repair

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Bounds on one repair of arguments.
const (
	// MaxRepairs is the maximum number of changes.
	MaxRepairs = 1024
	// maxRecord bounds the record of the changes in bytes.
	maxRecord = 4 * tool.MaxArgumentsBytes
	// maxWork bounds the bytes that are visited, roughly, and visitWork is the overhead of one visit.
	maxWork   = 16 << 20
	visitWork = 64
	// nameWork is the cost of sorting the name of a member that may be filled in.
	nameWork = 16
	// lookEvery is the amount of work between two checks of the context.
	lookEvery = 64 << 10
	// placeWork is the cost of each schema that applies to a value.
	placeWork = 8
	// workPerUnit is the amount of repair work that takes as long as one unit of a validation.
	workPerUnit = 8
)

// walk is one pass through arguments and their schema.
type walk struct {
	places
	ctx      context.Context
	probe    schema.Probe
	defaults defaults
	aliases  []manifests.ParameterAlias
	reserved func(name string) bool
	// rules and fill say whether values are repaired, and defaults filled in.
	rules, fill bool

	repairs []tool.Repair
	record  int // bytes of repairs
	work    int
	taken   int  // of the work, from the budget of the context
	next    int  // the work at which to check the context
	over    bool // a bound is exceeded: nothing is repaired
	again   bool // a string inside a string would have to be opened
}

// spend counts the work of visiting a value. It returns false if a bound is exceeded.
func (w *walk) spend(bytes int) bool {
	w.work += bytes + visitWork
	if w.work >= w.next {
		w.next = w.work + lookEvery
		at, has := w.ctx.Deadline()
		w.over = w.over || !w.settle() || w.ctx.Err() != nil || has && !time.Now().Before(at)
	}
	w.over = w.over || w.work > maxWork
	return !w.over
}

// settle takes the work since it was last called from the budget of the context. It returns false if none is left.
func (w *walk) settle() bool {
	work := w.work - w.taken
	w.taken = w.work
	return schema.Spend(w.ctx, work/workPerUnit)
}

// member, element and branch count the work of those of [places].
func (w *walk) member(at place, name string) place { return w.counted(at, w.places.member(at, name)) }

func (w *walk) element(at place, index int) place { return w.counted(at, w.places.element(at, index)) }

func (w *walk) branch(at place, branch *schema.Node) place {
	return w.counted(at, w.places.branch(at, branch))
}

func (w *walk) counted(at, inner place) place {
	w.work += placeWork * (len(at.nodes) + len(inner.nodes))
	return inner
}

func (w *walk) note(at *spot, rule Rule, from, to string) {
	w.add(tool.Repair{Path: at.path(), Rule: string(rule), From: json.RawMessage(from), To: json.RawMessage(to)})
}

func (w *walk) add(r tool.Repair) {
	w.record += len(r.From) + len(r.To) + visitWork
	if len(w.repairs) == MaxRepairs || w.record > maxRecord {
		w.over = true
		return
	}
	w.repairs = append(w.repairs, r)
}

// mark is a state of the record to which a walk can be reset.
type mark struct{ repairs, record int }

func (w *walk) mark() mark { return mark{len(w.repairs), w.record} }

func (w *walk) back(to mark) { w.repairs, w.record = w.repairs[:to.repairs], to.record }

// fits reports whether a value certainly fits schemas.
func (w *walk) fits(text string, nodes ...*schema.Node) bool {
	for _, n := range nodes {
		if !w.spend(len(text)) || !w.probe.Fits(w.ctx, n, text) {
			return false
		}
	}
	return true
}

func (w *walk) value(at *spot, v jsontext.Value, p place) string {
	text := v.Text()
	if !w.rules && !w.defaults.anyInside(p.nodes) || !w.spend(len(text)) {
		return text
	}
	if at.depth > tool.MaxArgumentsDepth {
		w.over = true
		return text
	}
	if !w.rules {
		return w.inside(at, v, p)
	}
	if rule, cast := castString(v, p.types); rule != "" {
		w.note(at, rule, text, cast)
		var ok bool
		if v, ok = w.read(cast); !ok {
			return text
		}
		text = cast
	}
	if inner, ok := w.openString(at, v, p); ok {
		return inner
	}
	if wrapped, ok := w.wrapArray(at, v, p); ok {
		text = wrapped
	} else {
		text = w.clamp(at, w.inside(at, v, p), p)
	}
	return w.choose(at, text, p)
}

// inside repairs the members or elements of a container.
func (w *walk) inside(at *spot, v jsontext.Value, p place) string {
	switch v.Kind() {
	case jsontext.Object:
		return w.object(at, v, p)
	case jsontext.Array:
		return w.array(at, v, p)
	default:
		return v.Text()
	}
}

func (w *walk) array(at *spot, v jsontext.Value, p place) string {
	before := len(w.repairs)
	elements := make([]string, 0, v.Len())
	for i, element := range v.Elements() {
		if w.over {
			return v.Text()
		}
		elements = append(elements, w.value(at.element(i), element, w.element(p, i)))
	}
	if len(w.repairs) == before {
		return v.Text()
	}
	return "[" + strings.Join(elements, ",") + "]"
}

func (w *walk) object(at *spot, v jsontext.Value, p place) string {
	before := len(w.repairs)
	var kept []string
	present := map[string]bool{}
	for key, value := range v.Members() {
		if w.over {
			return v.Text()
		}
		name, text := key.String(), value.Text()
		if at.parent != nil || !w.reserved(name) {
			inner := w.member(p, name)
			if w.dropNull(at, name, text, p, inner) {
				continue
			}
			text = w.value(at.member(name), value, inner)
		}
		present[name] = true
		kept = append(kept, jsontext.Quote(name)+":"+text)
	}
	if w.fill {
		kept = w.fillIn(at, kept, present, p)
	}
	if len(w.repairs) == before {
		return v.Text()
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// spot is a position in the arguments. Its path is only written for values that are changed.
type spot struct {
	parent *spot // nil for the arguments as a whole
	name   string
	index  int // of an element; -1 for a member
	depth  int
	// opened says that the value comes out of a string.
	opened bool
}

func (s *spot) member(name string) *spot {
	return &spot{parent: s, name: name, index: -1, depth: s.depth + 1, opened: s.opened}
}

func (s *spot) element(index int) *spot {
	return &spot{parent: s, index: index, depth: s.depth + 1, opened: s.opened}
}

// open returns the spot of the value that a string at s holds.
func (s *spot) open() *spot {
	inside := *s
	inside.opened = true
	return &inside
}

func (s *spot) path() string {
	switch {
	case s.parent == nil:
		return ""
	case s.index < 0:
		return schema.MemberPath(s.parent.path(), s.name)
	default:
		return schema.ElementPath(s.parent.path(), s.index)
	}
}
