package programs

import "time"

// Shrink makes a program smaller as long as it still fails, until the time is up. The program
// is changed in place, and may be invalid, or go on for ever, when fails is called.
func Shrink(p *Program, fails func() bool, until time.Time) {
	for smaller := true; smaller; {
		smaller = false
		for _, f := range p.Functions {
			if shrinkList(&f.Body, fails, until) {
				smaller = true
			}
		}
		if !time.Now().Before(until) {
			return
		}
	}
}

// shrinkList makes a list of instructions smaller, and what they hold.
func shrinkList(list *[]*Node, fails func() bool, until time.Time) (smaller bool) {
	try := func(shorter []*Node) bool {
		before := *list
		*list = shorter
		if fails() {
			smaller = true
			return true
		}
		*list = before
		return false
	}
	for size := len(*list); size > 0; size /= 2 {
		for at := len(*list) - size; at >= 0 && time.Now().Before(until); at -= size {
			try(spliced(*list, at, size, nil))
		}
	}
	for at := len(*list) - 1; at >= 0 && time.Now().Before(until); at-- {
		if at >= len(*list) {
			continue
		}
		n := (*list)[at]
		switch {
		case n.Op.immediate == constant32 || n.Op.immediate == constant64 || n.Op.immediate == constantF64:
			continue
		case try(spliced(*list, at, 1, []*Node{number(0)})), try(spliced(*list, at, 1, []*Node{{Op: i64Const}})),
			try(spliced(*list, at, 1, n.Args)) && len(n.Args)+len(n.Body) > 0, len(n.Body) > 0 && try(spliced(*list, at, 1, n.Body)):
			continue
		}
		for _, inner := range []*[]*Node{&n.Args, &n.Body, &n.Else} {
			if shrinkList(inner, fails, until) {
				smaller = true
			}
		}
	}
	return smaller
}

// spliced returns a copy of a list with something else in place of some elements.
func spliced(list []*Node, at, size int, instead []*Node) []*Node {
	made := append([]*Node(nil), list[:at]...)
	return append(append(made, instead...), list[at+size:]...)
}
