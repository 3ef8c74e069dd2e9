package wasm

import "fmt"

// functions reads the function section (§5.5.6): the types of the functions whose
// bodies the code section holds.
func (i *inspection) functions(r *reader) {
	i.module.Functions = make([]Function, r.count("functions", 1, i.bounds.Functions))
	for n := range i.module.Functions {
		i.module.Functions[n].Type = r.index("type", len(i.module.Types))
		if r.err != nil {
			return
		}
	}
}

// code reads the code section (§5.5.13). Instructions are not looked at.
func (i *inspection) code(r *reader) {
	i.hasCode = true
	at := r.at
	bodies := r.count("functions", 3, i.bounds.Functions)
	if r.err == nil && bodies != len(i.module.Functions) {
		r.fail(ErrMalformed, at, "%s", mismatch(bodies, "bodies", len(i.module.Functions), "functions"))
	}
	locals := 0
	for n := range i.module.Functions {
		if r.err != nil {
			return
		}
		locals += i.body(r, &i.module.Functions[n])
		if locals > i.bounds.Locals {
			r.fail(ErrLimit, i.module.Functions[n].Offset, "the functions have more than %d locals together", i.bounds.Locals)
		}
	}
}

// body reads where a body stands and how many locals it has, which it returns.
func (i *inspection) body(r *reader, function *Function) int {
	at := r.at
	function.Size = r.size("the body of a function")
	function.Offset = r.at
	if r.err == nil && function.Size > i.bounds.BodyBytes {
		r.fail(ErrLimit, at, "the body of a function has %d bytes, the limit is %d", function.Size, i.bounds.BodyBytes)
	}
	body := r.part(function.Size, "the body of a function")
	function.Locals = body.locals(i.bounds.LocalsPerFunction)
	if body.err == nil && (body.left() == 0 || body.source[len(body.source)-1] != opEnd) {
		body.fail(ErrMalformed, function.Offset, "the body of a function has no end")
	}
	r.err = body.err
	return function.Locals
}

// locals moves over the declarations of locals and returns how many they declare.
// A declaration is a number and a type, so that few bytes declare many locals.
func (r *reader) locals(limit int) int {
	total := uint64(0)
	for range r.count("groups of locals", 2, r.left()) {
		at := r.at
		total += uint64(r.u32("the number of locals"))
		r.valueType("the type of locals")
		if r.err != nil {
			return 0
		}
		if total > uint64(limit) {
			r.fail(ErrLimit, at, "a function has %d locals or more, the limit is %d", total, limit)
			return 0
		}
	}
	return int(total)
}

func mismatch(n int, of string, want int, wanted string) string {
	return fmt.Sprintf("there are %d %s for %d %s", n, of, want, wanted)
}
