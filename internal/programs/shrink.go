package programs

import (
	"slices"
	"time"
)

// Shrink makes a program smaller as long as it still fails, until the time is up. It changes the
// program in place; when it calls fails, the program may be invalid or never terminate.
func Shrink(p *Program, fails func() bool, until time.Time) {
	for smaller := true; smaller && time.Now().Before(until); {
		smaller = false
		for _, f := range p.allFunctions() {
			smaller = shrinkList(&f.Body, fails, until) || smaller
		}
	}
}

func (p *Program) allFunctions() []*Function {
	all := p.Functions
	for _, library := range p.Libraries {
		all = append(slices.Clip(all), library.Functions...)
	}
	return all
}

// shrinkList shrinks a list of instructions, and the code in them.
func shrinkList(list *code, fails func() bool, until time.Time) (smaller bool) {
	try := func(at, size int, instead ...*Node) bool {
		before := *list
		*list = slices.Replace(slices.Clone(before), at, at+size, instead...)
		if fails() {
			smaller = true
			return true
		}
		*list = before
		return false
	}
	for size := len(*list); size > 0; size /= 2 {
		for at := len(*list) - size; at >= 0 && time.Now().Before(until); at -= size {
			try(at, size)
		}
	}
	for at := len(*list) - 1; at >= 0 && time.Now().Before(until); at-- {
		if at >= len(*list) {
			continue
		}
		n := (*list)[at]
		switch {
		case n.Op == i32Const || n.Op == i64Const || n.Op == f64Const:
		case try(at, 1, number(0)), try(at, 1, node(i64Const)),
			try(at, 1, n.Args...) && len(n.Args)+len(n.Body) > 0, len(n.Body) > 0 && try(at, 1, n.Body...):
		default:
			for _, inner := range []*code{&n.Args, &n.Body, &n.Else} {
				smaller = shrinkList(inner, fails, until) || smaller
			}
		}
	}
	return smaller
}
