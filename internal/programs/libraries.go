package programs

import "fmt"

// libraries generates modules for the program to import from.
func (g *generator) libraries() {
	for n := range 1 + g.few(2) {
		l := &generator{r: g.r, p: &Program{Seed: g.p.Seed, Start: -1, Shape: "library"}, imports: map[string]int{},
			tables: g.tables, small: g.small, endless: g.endless, dives: g.dives}
		l.module(g.p.Libraries)
		if g.chance(15) {
			l.p.Start = l.finite(Signature{}, false)
		}
		l.offer()
		g.p.Libraries = append(g.p.Libraries, Library{string(rune('a' + n)), l.p})
	}
}

// The names of the exports of libraries other than functions that any code may call.
const (
	descender = "descend"
	teller    = "tell"
	unending  = "unending"
)

// offer exports functions of a library.
func (g *generator) offer() {
	for n, function := range g.callable {
		g.export(fmt.Sprintf("f%d", n), function) // imports are passed on
	}
	if len(g.recursive) > 0 {
		g.export(descender, g.descender())
	}
	g.export(teller, g.finite(Signature{}, true))
	if g.endless {
		g.export(unending, g.infinite(Signature{}))
	}
}

// descender adds a function that calls a recursive one.
func (g *generator) descender() int {
	function := g.declare(Signature{})
	w := g.writer(function, len(g.callable), 4)
	w.descends = true
	w.f.Body = w.descent(true)
	return function
}

// importFrom imports functions from libraries.
func (g *generator) importFrom(libraries []Library) {
	for _, library := range libraries {
		for _, export := range library.Exports {
			function := len(g.p.Imports)
			s := library.typeOf(export.Function)
			switch export.Name {
			case descender:
				g.descenders = append(g.descenders, function)
			case unending:
				g.unending = append(g.unending, function)
			case teller:
				g.tellers = append(g.tellers, function)
			default:
				if g.chance(30) {
					continue
				}
				g.callable = append(g.callable, function)
			}
			g.p.Imports = append(g.p.Imports, Import{library.Name, export.Name, s})
		}
	}
}
