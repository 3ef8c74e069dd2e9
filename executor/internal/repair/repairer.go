// Package repair corrects arguments that a language model wrote where the tool's schema
// leaves no doubt about the intended value, and lists its changes.
//
// Arguments that fit are not changed, except that absent members get their defaults. In
// those that do not, a value that its schema allows is not changed either. Each change is
// of one rule:
//
//	cast_number   "5" is 5 where a number is allowed and no string; the digits stay
//	cast_boolean  "true" and "false" where a boolean is allowed and no string
//	parse_json    a string that holds an object or an array, where one is allowed and no
//	              string, or that is the arguments as a whole; strings inside are not opened
//	wrap_array    one value is an array of one where only an array is allowed
//	unwrap        {"arguments": {…}}, or "input", "parameters" or the tool's name, where that
//	              is not a parameter and all members inside are
//	clamp         a number is the nearest one that minimum and maximum allow
//	drop_null     a null that is not allowed and not required is absent
//	default       an absent member has the default of its schema
//	tolerant_json text that is almost JSON is read as [tolerant] says
//	alias         an argument has the name of its parameter instead of an alias that the
//	              manifest declares, and the value that this means; [Rename] does it first, and
//	              unwrap with what it unwraps
//
// # Where schemas leave doubt
//
// References inside the schema and allOf are followed. Of anyOf and oneOf, the types of
// all alternatives together count; beyond that, a value that fits none is repaired for
// each alternative, and is changed only if that comes to one and the same value. What
// depends on conditions (if, dependentSchemas, not) and on patterns of names is not looked
// at. Defaults inside alternatives are not filled in, and neither are those that do not
// fit their own schema, or that two schemas disagree on. All defaults are left out where
// the arguments fit without them but not with them.
//
// # Bounds
//
// A repair makes at most [MaxRepairs] changes and does a bounded amount of work. Arguments that
// take more are not changed at all. The result keeps the bounds of
// [tool.ParseArguments].
package repair

import (
	"context"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Repairer repairs the arguments of one tool. Get one from [New]. It is safe for
// concurrent use.
type Repairer struct {
	root     *schema.Node
	aliases  []manifests.ParameterAlias
	reserved func(name string) bool
	defaults defaults
	shallow  shallow
}

type Result struct {
	Arguments tool.Arguments
	// Repairs are the changes, in an order in which they can be applied; nil if there are none.
	Repairs []tool.Repair
	// Misfit is the error that says why the arguments do not fit; nil if they do.
	Misfit error
}

// New returns a repairer for a tool's schema. The aliases are those of its parameters; only arguments inside a wrapper
// ([Unwrap]) still have them, since [Rename] comes first. reserved names the parameters that a model
// does not set: they are neither changed nor filled in. If ctx ends, the repairer may lack defaults.
func New(
	ctx context.Context, s *schema.Schema, aliases []manifests.ParameterAlias, reserved func(name string) bool,
) *Repairer {
	root := s.Structure()
	d := newDefaults(ctx, root)
	return &Repairer{root, aliases, reserved, d, newShallow(root, d, reserved)}
}

// Repair checks arguments and repairs them where they do not fit. check says whether they
// do; it is called at most four times, the last time with the arguments of the result if these fit.
// names are the names of the tool. Once ctx has ended, nothing more is repaired; check should say so.
func (r *Repairer) Repair(
	ctx context.Context, own tool.Arguments, names []string, check func(tool.Arguments) error,
) Result {
	filled := r.Fill(ctx, own, check)
	if filled.Misfit == nil {
		return filled
	}
	defaults := r.defaults.inside[r.root]
	repaired := r.pass(ctx, own, names, true, defaults)
	if repaired.Repairs == nil {
		return Result{Arguments: own, Misfit: filled.Misfit}
	}
	if repaired.Misfit = check(repaired.Arguments); repaired.Misfit == nil || !defaults {
		return repaired
	}
	if bare := r.pass(ctx, own, names, true, false); check(bare.Arguments) == nil {
		return bare
	}
	return repaired
}

// Fill only fills in defaults, if the arguments fit with them. It is for arguments that a program wrote, which
// are meant literally.
func (r *Repairer) Fill(ctx context.Context, own tool.Arguments, check func(tool.Arguments) error) Result {
	if r.defaults.inside[r.root] {
		filled, done := r.shallow.fill(own)
		if !done {
			filled = r.pass(ctx, own, nil, false, true)
		}
		if filled.Repairs != nil && check(filled.Arguments) == nil {
			return filled
		}
	}
	return Result{Arguments: own, Misfit: check(own)}
}

// pass walks the arguments once. It returns them unchanged if that exceeds a bound.
func (r *Repairer) pass(ctx context.Context, own tool.Arguments, names []string, rules, fill bool) Result {
	unchanged := Result{Arguments: own}
	text, err := own.MarshalJSON()
	if err != nil {
		return unchanged // which the check reports
	}
	w := &walk{ctx: ctx, places: newPlaces(), defaults: r.defaults, aliases: r.aliases, reserved: r.reserved, rules: rules,
		fill: fill}
	root := w.of(r.root)
	result := string(text)
	if v, ok := w.read(result); ok {
		if rules {
			v = w.unwrap(v, root, names)
		}
		result = w.value(&spot{}, v, root)
	}
	w.settle()
	if w.over || len(w.repairs) == 0 {
		return unchanged
	}
	arguments, err := tool.ParseArguments(result)
	if err != nil {
		return unchanged // it has become too long or too deep
	}
	return Result{Arguments: arguments, Repairs: w.repairs}
}

// read reads text that is JSON. It fails where the context has ended.
func (w *walk) read(text string) (jsontext.Value, bool) {
	doc, err := jsontext.Read(w.ctx, text, jsontext.Limits{Depth: tool.MaxArgumentsDepth, Values: len(text) + 1})
	if err != nil {
		w.over = true
		return jsontext.Value{}, false
	}
	return doc.Root(), true
}
