package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// decisions says what became of each request of the manifest.
func (p *effective) decisions(requests []manifests.NetworkPermission) []tool.Decision {
	var all []tool.Decision
	for i := range p.requests {
		all = append(all, p.decision(i, requests[i]))
	}
	return all
}

func (p *effective) decision(index int, requested manifests.NetworkPermission) tool.Decision {
	asked := &p.requests[index]
	decision := tool.Decision{Permission: "network", Requested: asked.String()}
	var granted, effective []string
	var cuts []*grant
	var taken *denial
	complete := false
	for i := range p.permits {
		permit := &p.permits[i]
		if permit.request != index {
			continue
		}
		g := &p.grants[permit.grant]
		granted = append(granted, g.String()+in(g.origin))
		if d := p.takes(&permit.rule); d != nil {
			taken = d
			continue
		}
		effective = append(effective, permit.String())
		cuts = append(cuts, g)
		complete = complete || permit.covers(asked)
	}
	decision.Granted = strings.Join(granted, "; ")
	if p.noNetwork != "" {
		decision.Reason = fmt.Sprintf("the profile %s takes the network away", p.noNetwork)
		return decision
	}
	if taken == nil {
		taken = p.takes(asked)
	}
	if len(effective) == 0 && taken != nil {
		decision.Reason = deniedBy(taken.origin)
		return decision
	}
	decision.Effective = strings.Join(effective, "; ")
	decision.Reason = reasonText(asked, cuts, complete)
	if less := p.deniedText(asked); less != "" {
		decision.Reason += "; " + less
	}
	if !complete && len(asked.methods) > 0 {
		decision.Allow.Grant = suggestFlags(requested)
		decision.Allow.Config = manifests.SuggestGrant(p.tool, requested)
	}
	return decision
}

// in names where something is written, in brackets.
func in(origin string) string {
	if origin == "" {
		return ""
	}
	return " (" + origin + ")"
}

func reasonText(asked *rule, given []*grant, complete bool) string {
	switch {
	case len(given) == 0:
		return "no grant covers it"
	case complete:
		return "granted as asked"
	}
	var cuts []string
	for _, g := range given {
		cuts = append(cuts, fmt.Sprintf("the grant%s covers fewer %s", at(g.origin), asked.cutBy(&g.rule)))
	}
	return strings.Join(cuts, "; ")
}

// cutBy names in what another rule, which overlaps, is narrower.
func (r *rule) cutBy(other *rule) string {
	var parts []string
	if !other.host.Covers(r.host) {
		parts = append(parts, "hosts")
	}
	if !isSubset(r.endpoints, other.endpoints) {
		parts = append(parts, "schemes or ports")
	}
	if !isSubset(r.methods, other.methods) {
		parts = append(parts, "methods")
	}
	if !other.coversPaths(r) {
		parts = append(parts, "paths")
	}
	return strings.Join(parts, ", ")
}

// covers reports whether this rule allows all that the other does.
func (r *rule) covers(other *rule) bool { return other.cutBy(r) == "" }

func (r *rule) coversPaths(other *rule) bool {
	return !slices.ContainsFunc(other.paths, func(wanted permission.URLPath) bool {
		return !slices.ContainsFunc(r.paths, func(prefix permission.URLPath) bool { return prefix.Covers(wanted) })
	})
}

func isSubset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(value T) bool { return !slices.Contains(whole, value) })
}

// deniedText names the lines that may take something away from what was asked.
func (p *effective) deniedText(asked *rule) string {
	var lines []string
	for i := range p.denials {
		d := &p.denials[i]
		if _, overlap := asked.host.Intersect(d.host); !overlap || !d.overlaps(asked) {
			continue
		}
		lines = append(lines, writer(d.origin))
	}
	if len(lines) == 0 {
		return ""
	}
	return "less what " + strings.Join(lines, " and ") + " denies"
}

// takes returns a denial that leaves nothing of a rule, or nil.
func (p *effective) takes(r *rule) *denial {
	for i := range p.denials {
		if d := &p.denials[i]; len(d.reach) == 0 && d.covers(r) {
			return d
		}
	}
	return nil
}

// covers reports whether a denial is about all requests of a rule.
func (d *denial) covers(r *rule) bool {
	all := rule{host: d.host, paths: d.paths}
	endpoints := !slices.ContainsFunc(r.endpoints, func(e endpoint) bool { return !anyOr(d.ports, e.port) || !anyOr(d.schemes, e.scheme) })
	methods := !slices.ContainsFunc(r.methods, func(method string) bool { return !anyOr(d.methods, method) })
	return d.host.Covers(r.host) && endpoints && methods && (len(d.paths) == 0 || all.coversPaths(r))
}

// deniedBy says who denies something.
func deniedBy(origin string) string { return "denied by " + writer(origin) }

// writer names who wrote something, by where it is written.
func writer(origin string) string {
	if origin == "" {
		return "the operator"
	}
	return origin
}

// overlaps reports whether a denial may be about requests of a rule with an overlapping host.
func (d *denial) overlaps(r *rule) bool {
	endpoints := slices.ContainsFunc(r.endpoints, func(e endpoint) bool { return anyOr(d.ports, e.port) && anyOr(d.schemes, e.scheme) })
	methods := slices.ContainsFunc(r.methods, func(method string) bool { return anyOr(d.methods, method) })
	return endpoints && methods && (len(d.paths) == 0 || len(commonPaths(d.paths, r.paths)) > 0)
}

// String describes the rule to people: "GET https://*.example.com below /v1".
func (r *rule) String() string {
	var origins []string
	for _, e := range r.endpoints {
		origins = append(origins, originText(r.host, e))
	}
	text := strings.Join(r.methods, ", ") + " " + strings.Join(origins, " or ")
	var below []string
	for _, path := range r.paths {
		if path.IsEvery() {
			return text
		}
		below = append(below, path.String())
	}
	return text + " below " + strings.Join(below, " or ")
}

func originText(host permission.Host, e endpoint) string {
	text := e.scheme + "://" + host.Bracketed()
	if e.port != defaultPort(e.scheme) {
		text += fmt.Sprintf(":%d", e.port)
	}
	return text
}
