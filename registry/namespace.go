package registry

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// entry is a registered tool, or the names of a broken manifest. It is immutable, and registries may share it.
type entry struct {
	tool     Tool // nil if the manifest is broken
	manifest *manifests.Manifest
	broken   *manifests.Error // the problems of the manifest, or nil
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
	// claims is keyed by the outline of a name, so look-alikes share a key. No two names under one key look alike.
	claims map[string][]claim
	// names are the same claims by the name itself.
	names map[string]claim
	// reports holds the rejected names, by the name of the tool that caused the rejection. Equal reports
	// are stored once, so loading a source again does not add to them.
	reports map[string]map[DuplicateError]bool
}

func newNamespace() namespace {
	return namespace{claims: map[string][]claim{}, names: map[string]claim{},
		reports: map[string]map[DuplicateError]bool{}}
}

func (n namespace) clone() namespace {
	c := namespace{claims: make(map[string][]claim, len(n.claims)), names: maps.Clone(n.names),
		reports: make(map[string]map[DuplicateError]bool, len(n.reports))}
	for outline, held := range n.claims {
		c.claims[outline] = slices.Clone(held)
	}
	for keeper, reports := range n.reports {
		c.reports[keeper] = maps.Clone(reports)
	}
	return c
}

// find returns the claim on exactly this name.
func (n namespace) find(name string) (claim, bool) {
	held, ok := n.names[name]
	return held, ok
}

// findTool is like find for names by which a tool can be called.
func (n namespace) findTool(name string) (claim, bool) {
	held, ok := n.find(name)
	if !ok || held.entry.tool == nil || held.origin.Retired {
		return claim{}, false
	}
	return held, true
}

// alike returns the claims on names that look like this one.
func (n namespace) alike(name string) []claim {
	held := slices.Clone(n.claims[spelling.Outline(name)])
	return slices.DeleteFunc(held, func(c claim) bool { return !spelling.LookAlike(c.origin.Name, name) })
}

func (n namespace) claim(c claim) {
	outline := spelling.Outline(c.origin.Name)
	n.claims[outline] = append(n.claims[outline], c)
	n.names[c.origin.Name] = c
}

// drop releases a name.
func (n namespace) drop(c claim) {
	outline := spelling.Outline(c.origin.Name)
	n.claims[outline] = slices.DeleteFunc(n.claims[outline], func(held claim) bool { return held == c })
	delete(n.names, c.origin.Name)
}

// add claims an entry's free names. It returns nil if the entry gets its own name, and reports rejected ones.
func (n namespace) add(e *entry) *DuplicateError {
	held := n.alike(e.origin.Name)
	if at := slices.IndexFunc(held, func(c claim) bool { return c.origin.isName() }); at >= 0 {
		return n.report(held[at].entry, held[at].origin, e.origin)
	}
	for _, other := range held {
		n.report(e, e.origin, other.origin)
		n.drop(other)
	}
	n.claim(claim{e.origin, e})
	for _, origin := range e.otherNames() {
		if held := n.alike(origin.Name); len(held) > 0 {
			if held[0].origin != origin {
				n.report(held[0].entry, held[0].origin, origin)
			}
			continue
		}
		n.claim(claim{origin, e})
	}
	return nil
}

func (e *entry) otherNames() []Origin {
	var origins []Origin
	origin := e.origin
	origin.Alias = true
	for _, origin.Name = range e.manifest.Aliases {
		origins = append(origins, origin)
	}
	origin.Alias, origin.Retired = false, true
	for _, origin.Name = range e.manifest.Retired {
		origins = append(origins, origin)
	}
	return origins
}

// report records that kept caused dropped to be rejected.
func (n namespace) report(keeper *entry, kept, dropped Origin) *DuplicateError {
	d := DuplicateError{Name: dropped.Name, Kept: kept, Dropped: dropped, Reason: LookAlike}
	if kept.Name == dropped.Name {
		d.Reason = "same_name"
	}
	reports := n.reports[keeper.origin.Name]
	if reports == nil {
		reports = map[DuplicateError]bool{}
		n.reports[keeper.origin.Name] = reports
	}
	reports[d] = true
	return &d
}

// remove removes a tool with all its names, or another name. Names that the tool shadowed stay rejected, unreported.
func (n namespace) remove(name string) {
	held, ok := n.find(name)
	if !ok {
		return
	}
	if !held.origin.isName() {
		n.drop(held)
		return
	}
	for outline, claims := range n.claims {
		n.claims[outline] = slices.DeleteFunc(claims, func(c claim) bool { return c.entry == held.entry })
	}
	maps.DeleteFunc(n.names, func(_ string, c claim) bool { return c.entry == held.entry })
	delete(n.reports, name)
}

// heldNames returns the aliases and the retired names that an entry holds, in its manifest's order.
func (n namespace) heldNames(e *entry) (aliases, retired []string) {
	for _, origin := range e.otherNames() {
		if c, ok := n.find(origin.Name); !ok || c.entry != e || c.origin != origin {
			continue
		}
		switch {
		case origin.Alias && !slices.Contains(aliases, origin.Name):
			aliases = append(aliases, origin.Name)
		case origin.Retired && !slices.Contains(retired, origin.Name):
			retired = append(retired, origin.Name)
		}
	}
	return aliases, retired
}

func (n namespace) entries() []*entry {
	var entries []*entry
	for _, held := range n.claims {
		for _, c := range held {
			if c.origin.isName() && c.entry.tool != nil {
				entries = append(entries, c.entry)
			}
		}
	}
	slices.SortFunc(entries, compareEntries)
	return entries
}

func compareEntries(a, b *entry) int { return cmp.Compare(a.origin.Name, b.origin.Name) }

// shadowed returns the origins of the names that were rejected because of a tool, sorted.
func (n namespace) shadowed(e *entry) []Origin {
	var dropped []Origin
	for d := range n.reports[e.origin.Name] {
		dropped = append(dropped, d.Dropped)
	}
	slices.SortFunc(dropped, compareOrigins)
	return slices.Compact(dropped)
}

// duplicates returns all reports, sorted by the rejected origins.
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
		cmp.Compare(fmt.Sprint(a.Alias, a.Retired), fmt.Sprint(b.Alias, b.Retired)), // false before true
	)
}

// maxName is the longest name, in bytes, that every vendor of language models accepts.
const maxName = 64

var validName = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9_-]{1,%d}$`, maxName)).MatchString

// Nearest returns the names of at most n tools that name may have been meant for, nearest first and then by name. It
// may be empty. It never includes unavailable tools. Aliases and retired names count as names of their tool.
func (r *Registry) Nearest(name string, n int) []string {
	if n <= 0 || name == "" || len(name) > maxName {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	wanted := spelling.Outline(name)
	limit := max(2, len(name)/3)
	var near []candidate
	for _, e := range r.offered() {
		r.mu.RLock()
		aliases, retired := r.names.heldNames(e)
		r.mu.RUnlock()
		names := slices.Concat(aliases, retired, []string{e.origin.Name})
		distance := limit + 1
		for _, known := range names {
			distance = min(distance, spelling.Distance(wanted, spelling.Outline(known)))
		}
		// If every letter differs, the names are not alike, however short they are.
		if distance <= limit && distance < len(name) {
			near = append(near, candidate{e.origin.Name, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	names := []string{}
	for _, c := range near[:min(n, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// unknown returns the message for an unregistered name, with suggestions.
func (r *Registry) unknown(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("no tool has this name; names have at most %d characters", maxName)
	}
	if instead, ok := r.Replacement(name); ok {
		return fmt.Sprintf("the tool %q is retired; call %s instead", name, instead)
	}
	message := fmt.Sprintf("there is no tool %q", name)
	if near := r.Nearest(name, 3); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}
