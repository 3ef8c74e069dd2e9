package registry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// entry is one registered tool. It never changes, and registries share it.
type entry struct {
	tool     Tool
	manifest *manifests.Manifest
	origin   Origin
	gate     *gate

	registration tool.Registration
}

// claim is one name or alias and the tool that holds it.
type claim struct {
	origin Origin
	entry  *entry
}

// namespace decides who holds a name. It is not safe for concurrent use.
type namespace struct {
	// claims is keyed by the skeleton of a name: look-alikes meet in one key.
	claims map[string]claim
	// reports holds what was kept out, by the tool that kept it out. Equal reports
	// are one, so that loading a source again does not add to them.
	reports map[string]map[DuplicateError]bool
}

func newNamespace() namespace {
	return namespace{claims: map[string]claim{}, reports: map[string]map[DuplicateError]bool{}}
}

func (n namespace) clone() namespace {
	c := namespace{claims: maps.Clone(n.claims), reports: make(map[string]map[DuplicateError]bool, len(n.reports))}
	for keeper, reports := range n.reports {
		c.reports[keeper] = maps.Clone(reports)
	}
	return c
}

// find returns who holds exactly this name.
func (n namespace) find(name string) (claim, bool) {
	if len(name) > maxName {
		return claim{}, false
	}
	held, ok := n.claims[skeleton(name)]
	return held, ok && held.origin.Name == name
}

// add gives an entry its name and the aliases that are free. It returns nil if the
// entry has its name; aliases that it did not get are only reported.
func (n namespace) add(e *entry) *DuplicateError {
	key := skeleton(e.origin.Name)
	if held, taken := n.claims[key]; taken {
		if !held.origin.Alias {
			return n.report(held.entry, held.origin, e.origin)
		}
		n.report(e, e.origin, held.origin)
	}
	n.claims[key] = claim{e.origin, e}
	for _, alias := range e.manifest.Aliases {
		origin := e.origin
		origin.Name, origin.Alias = alias, true
		if held, taken := n.claims[skeleton(alias)]; taken {
			if held.origin != origin {
				n.report(held.entry, held.origin, origin)
			}
			continue
		}
		n.claims[skeleton(alias)] = claim{origin, e}
	}
	return nil
}

// report notes that keeper's origin kept another out.
func (n namespace) report(keeper *entry, kept, dropped Origin) *DuplicateError {
	d := DuplicateError{Name: dropped.Name, Kept: kept, Dropped: dropped, Reason: LookAlike}
	if kept.Name == dropped.Name {
		d.Reason = SameName
	}
	reports := n.reports[keeper.origin.Name]
	if reports == nil {
		reports = map[DuplicateError]bool{}
		n.reports[keeper.origin.Name] = reports
	}
	reports[d] = true
	return &d
}

// remove takes a name out: a tool with its aliases, or one alias. What the tool kept
// out stays out and is no longer reported.
func (n namespace) remove(name string) {
	held, ok := n.find(name)
	if !ok {
		return
	}
	if held.origin.Alias {
		delete(n.claims, skeleton(name))
		return
	}
	maps.DeleteFunc(n.claims, func(_ string, c claim) bool { return c.entry == held.entry })
	delete(n.reports, name)
}

// aliases returns the aliases that an entry holds, in its manifest's order.
func (n namespace) aliases(e *entry) []string {
	var held []string
	for _, alias := range e.manifest.Aliases {
		c, ok := n.find(alias)
		if ok && c.entry == e && c.origin.Alias && !slices.Contains(held, alias) {
			held = append(held, alias)
		}
	}
	return held
}

// entries returns the tools, sorted by name.
func (n namespace) entries() []*entry {
	var entries []*entry
	for _, c := range n.claims {
		if !c.origin.Alias {
			entries = append(entries, c.entry)
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.origin.Name, b.origin.Name) })
	return entries
}

// shadowed returns what a tool kept out, sorted.
func (n namespace) shadowed(e *entry) []Origin {
	var dropped []Origin
	for d := range n.reports[e.origin.Name] {
		dropped = append(dropped, d.Dropped)
	}
	slices.SortFunc(dropped, compareOrigins)
	return slices.Compact(dropped)
}

// duplicates returns all reports, sorted by what was kept out.
func (n namespace) duplicates() []*DuplicateError {
	var all []*DuplicateError
	for _, reports := range n.reports {
		for d := range reports {
			all = append(all, &d)
		}
	}
	slices.SortFunc(all, func(a, b *DuplicateError) int {
		return cmp.Or(compareOrigins(a.Dropped, b.Dropped), compareOrigins(a.Kept, b.Kept))
	})
	return all
}

func compareOrigins(a, b Origin) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.File, b.File),
		compareBool(a.Alias, b.Alias),
	)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
