package expr

import (
	"fmt"
	"slices"
	"strings"
)

// function is one named function. The parser checks the number of its arguments.
type function struct {
	name        string
	least, most int // most is -1 where there is no upper bound
	call        func(*evaluator, []number) (number, error)
}

func (f function) arity() string {
	switch {
	case f.most < 0:
		return fmt.Sprintf("%d or more arguments", f.least)
	case f.least != f.most:
		return fmt.Sprintf("%d or %d arguments", f.least, f.most)
	case f.least == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.least)
}

// one and two lift functions that take their arguments one by one.
func one(f func(*evaluator, number) (number, error)) func(*evaluator, []number) (number, error) {
	return func(e *evaluator, a []number) (number, error) { return f(e, a[0]) }
}

func two(f func(e *evaluator, a, b number) (number, error)) func(*evaluator, []number) (number, error) {
	return func(e *evaluator, a []number) (number, error) { return f(e, a[0], a[1]) }
}

// lookup finds a function by its name in lower case.
func lookup(name string) (function, bool) {
	f := function{name: name, least: 1, most: 1}
	switch name {
	case "sqrt":
		f.call = func(e *evaluator, a []number) (number, error) { return e.root(a[0], 2) }
	case "cbrt":
		f.call = func(e *evaluator, a []number) (number, error) { return e.root(a[0], 3) }
	case "exp":
		f.call = (*evaluator).exp
	case "ln":
		f.call = (*evaluator).ln
	case "log":
		f.most, f.call = 2, (*evaluator).log
	case "log10":
		f.call = func(e *evaluator, a []number) (number, error) { return e.logarithm(a[0], exactly(10)) }
	case "log2":
		f.call = func(e *evaluator, a []number) (number, error) { return e.logarithm(a[0], exactly(2)) }
	case "pow":
		f.least, f.most, f.call = 2, 2, two((*evaluator).pow)
	case "mod":
		f.least, f.most, f.call = 2, 2, two((*evaluator).mod)
	default:
		return lookupMore(f)
	}
	return f, true
}

func lookupMore(f function) (function, bool) {
	for _, find := range []func(*function){rounding, counting, angles} {
		if find(&f); f.call != nil {
			return f, true
		}
	}
	return function{}, false
}

func rounding(f *function) {
	switch f.name {
	case "abs":
		f.call = one((*evaluator).abs)
	case "sign":
		f.call = one((*evaluator).signOf)
	case "floor":
		f.call = one((*evaluator).floor)
	case "ceil":
		f.call = one((*evaluator).ceil)
	case "trunc":
		f.call = one((*evaluator).trunc)
	case "round":
		f.most, f.call = 2, (*evaluator).round
	}
}

func counting(f *function) {
	switch f.name {
	case "min":
		f.most, f.call = -1, (*evaluator).minimum
	case "max":
		f.most, f.call = -1, (*evaluator).maximum
	case "sum":
		f.most, f.call = -1, (*evaluator).sum
	case "avg":
		f.most, f.call = -1, (*evaluator).average
	case "gcd":
		f.most, f.call = -1, (*evaluator).gcd
	case "lcm":
		f.most, f.call = -1, (*evaluator).lcm
	case "factorial":
		f.call = (*evaluator).factorial
	case "comb":
		f.least, f.most, f.call = 2, 2, two((*evaluator).combinations)
	case "perm":
		f.least, f.most, f.call = 2, 2, two((*evaluator).permutations)
	}
}

func angles(f *function) {
	switch f.name {
	case "sin":
		f.call = func(e *evaluator, a []number) (number, error) { return e.sinCos(a[0], false) }
	case "cos":
		f.call = func(e *evaluator, a []number) (number, error) { return e.sinCos(a[0], true) }
	case "tan":
		f.call = one((*evaluator).tan)
	case "asin":
		f.call = one((*evaluator).asin)
	case "acos":
		f.call = one((*evaluator).acos)
	case "atan":
		f.call = one((*evaluator).atan)
	case "atan2":
		f.least, f.most, f.call = 2, 2, two((*evaluator).atan2)
	case "sinh":
		f.call = one((*evaluator).sinh)
	case "cosh":
		f.call = one((*evaluator).cosh)
	case "tanh":
		f.call = one((*evaluator).tanh)
	case "asinh":
		f.call = one((*evaluator).asinh)
	case "acosh":
		f.call = one((*evaluator).acosh)
	case "atanh":
		f.call = one((*evaluator).atanh)
	case "deg":
		f.call = one((*evaluator).degrees)
	case "rad":
		f.call = one((*evaluator).radians)
	case "hypot":
		f.most, f.call = -1, (*evaluator).hypot
	}
}

// Functions returns the names of all functions, in order.
func Functions() []string {
	return strings.Fields("abs acos acosh asin asinh atan atan2 atanh avg cbrt ceil comb cos cosh deg exp " +
		"factorial floor gcd hypot lcm ln log log10 log2 max min mod perm pow rad round sign sin sinh sqrt " +
		"sum tan tanh trunc")
}

// suggest names the known names that are one edit away, or two for longer words.
func suggest(name string) string {
	most := 1
	if len(name) > 4 {
		most = 2
	}
	best, near := most+1, []string(nil)
	if len(name) <= 16 {
		for _, known := range append(Functions(), "pi", "e", "tau") {
			switch d := distance(name, known); {
			case d >= len(known) || d > best:
			case d < best:
				best, near = d, []string{known}
			default:
				near = append(near, known)
			}
		}
	}
	if best > most {
		return "known are pi, e, tau, " + strings.Join(Functions(), ", ")
	}
	slices.Sort(near)
	return "did you mean " + strings.Join(near, " or ") + "?"
}

// distance counts the insertions, deletions and changes between two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
