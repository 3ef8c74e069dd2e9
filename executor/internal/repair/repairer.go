package repair

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// idleProbes is how many probes of a schema are kept.
const idleProbes = 4

// Repairer repairs the arguments of one tool. Get one from [New]. It is safe for
// concurrent use.
type Repairer struct {
	schema   *schema.Schema
	root     *schema.Node
	reserved func(name string) bool
	filler   filler
	shallow  shallow
	idle     chan *schema.Probe
}

// Result is what became of arguments.
type Result struct {
	Arguments tool.Arguments
	// Repairs are the changes, in an order in which they can be made one after the
	// other; nil where nothing was changed.
	Repairs []tool.Repair
	// Misfit is why the arguments do not fit; nil where they do.
	Misfit error
}

// New returns a repairer for a tool's schema. reserved names the parameters that a model
// does not set: they are neither changed nor filled in. ctx must not end.
func New(ctx context.Context, s *schema.Schema, reserved func(name string) bool) (*Repairer, error) {
	r := &Repairer{schema: s, root: s.Structure(), reserved: reserved, idle: make(chan *schema.Probe, idleProbes)}
	session := r.session(ctx)
	defer session.end()
	r.filler = newFiller(r.root, session)
	r.shallow = newShallow(r.root, r.filler, reserved)
	return r, wrapped(session.err)
}

// Repair checks arguments and repairs them where they do not fit. check says whether they
// do; it is called at most four times. names are the names of the tool.
//
// The error is for a schema that cannot be used to the end, which is not the model's fault. Once ctx
// has ended, nothing more is repaired; check should say so.
func (r *Repairer) Repair(ctx context.Context, own tool.Arguments, names []string, check func(tool.Arguments) error) (Result, error) {
	filled, err := r.Fill(ctx, own, check)
	if err != nil || filled.Misfit == nil {
		return filled, err
	}
	defaults, misfit := r.filler[r.root], filled.Misfit
	repaired, err := r.pass(ctx, own, names, true, defaults)
	if err != nil || repaired.Repairs == nil {
		return Result{Arguments: own, Misfit: misfit}, err
	}
	if repaired.Misfit = check(repaired.Arguments); repaired.Misfit == nil || !defaults {
		return repaired, nil
	}
	bare, err := r.pass(ctx, own, names, true, false)
	if err != nil || check(bare.Arguments) != nil {
		return repaired, err
	}
	return bare, nil
}

// Fill fills in defaults, if the arguments fit with them, and does nothing else. It is for
// arguments that a program wrote, which means what it says.
func (r *Repairer) Fill(ctx context.Context, own tool.Arguments, check func(tool.Arguments) error) (Result, error) {
	if r.filler[r.root] {
		filled, err := r.fill(ctx, own)
		if err != nil {
			return Result{}, err
		}
		if filled.Repairs != nil && check(filled.Arguments) == nil {
			return filled, nil
		}
	}
	return Result{Arguments: own, Misfit: check(own)}, nil
}

// fill fills in defaults and does nothing else.
func (r *Repairer) fill(ctx context.Context, own tool.Arguments) (Result, error) {
	if filled, done := r.shallow.fill(own); done {
		return filled, nil
	}
	return r.pass(ctx, own, nil, false, true)
}

// pass goes through the arguments once, and returns them unchanged where that takes too
// much.
func (r *Repairer) pass(ctx context.Context, own tool.Arguments, names []string, rules, defaults bool) (Result, error) {
	unchanged := Result{Arguments: own}
	text, err := own.MarshalJSON()
	if err != nil {
		return unchanged, wrapped(err)
	}
	session := r.session(ctx)
	defer session.end()
	w := &walk{places: newPlaces(), session: session, filler: r.filler, reserved: r.reserved, rules: rules, defaults: defaults}
	root := w.of(r.root)
	result := json.RawMessage(text)
	if rules {
		result = w.unwrap(result, root, names)
	}
	result = w.value(&spot{}, result, root)
	if session.err != nil || w.over || len(w.repairs) == 0 {
		return unchanged, wrapped(session.err)
	}
	arguments, err := tool.ParseArguments(string(result))
	if err != nil {
		return unchanged, nil // it has become too long or too deep
	}
	return Result{Arguments: arguments, Repairs: w.repairs}, nil
}

func (r *Repairer) session(ctx context.Context) *session {
	return &session{ctx: ctx, schema: r.schema, idle: r.idle}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("repair: %w", err)
}
