package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const shownUnapplied = 3

// unapplied returns the statements without an effect: none if one manifest is inspected, as others may need them.
func (h *host) unapplied() []caisson.Unapplied {
	if h.options.only != "" {
		return nil
	}
	return h.Unapplied()
}

func unappliedLine(u caisson.Unapplied) string {
	line := fmt.Sprintf("%s: %s; %s", u.Origin, u.Text, u.Fix)
	if strings.HasPrefix(u.Origin, "--secret ") && !strings.Contains(u.Origin, "://") {
		line += "; @HOST means https and port 443, and @SCHEME://HOST:PORT another origin"
	}
	return line
}

func (h *host) unappliedHints() []string {
	found := h.unapplied()
	var hints []string
	for _, u := range found[:min(len(found), shownUnapplied)] {
		hints = append(hints, unappliedLine(u))
	}
	if more := len(found) - len(hints); more > 0 {
		hints = append(hints, fmt.Sprintf("%d more like these; --verbose shows all", more))
	}
	return hints
}

func (h *host) noteUnapplied() {
	for _, u := range h.unapplied() {
		h.options.hint(unappliedLine(u))
	}
}

func (h *host) logUnapplied(ctx context.Context) {
	if h.logger == nil {
		return
	}
	for _, u := range h.unapplied() {
		h.logger.WarnContext(ctx, "not applied", "at", u.Origin, "reason", u.Text, "fix", u.Fix)
	}
}

// unsentSecrets describes the secrets that the operator binds for tools and that are never sent: the value is
// not set, or the tool can reach no host that may get it. The tools are the named ones and those that they may
// call, or all if names is nil.
func (h *host) unsentSecrets(names []string) []string {
	entries := h.registry.List()
	if names != nil {
		entries = h.withCallees(names)
	}
	var lines []string
	bound := map[string]bool{} // origins of bindings of secrets that one of the tools requests
	for _, entry := range entries {
		m := entry.Manifest
		if len(m.Permissions.Secrets) == 0 {
			continue
		}
		lines = append(lines, withoutValue(entry)...)
		for _, policy := range []*manifests.Policy{h.operator.policy, h.operator.flags} {
			for _, grant := range policy.For(m.Name, m.File).Secrets {
				bound[grant.Origin] = bound[grant.Origin] || slices.ContainsFunc(m.Permissions.Secrets,
					func(s manifests.SecretPermission) bool { return s.Name == grant.Name })
			}
		}
	}
	if len(bound) == 0 {
		return lines
	}
	for _, u := range h.unapplied() {
		if bound[u.Origin] && strings.Contains(u.Key, ".secrets[") {
			lines = append(lines, unappliedLine(u))
		}
	}
	return lines
}

// withoutValue describes the secrets that are granted to a tool and have no value.
func withoutValue(entry registry.Entry) []string {
	t, ok := entry.Tool.(*runtime.Tool)
	if !ok {
		return nil
	}
	decisions := slices.DeleteFunc(t.Decisions(), func(d tool.Decision) bool { return d.Permission != secretPermission })
	requests := entry.Manifest.Permissions.Secrets // in the same order
	var lines []string
	for i, d := range decisions {
		hasAlternative := false // another secret in the same place: one of them is enough
		for j, other := range decisions {
			hasAlternative = hasAlternative || other.Effective != "" && requests[i].Host == requests[j].Host &&
				samePlace(requests[i].Place, requests[j].Place)
		}
		if d.Granted != "" && d.Effective == "" && !hasAlternative {
			lines = append(lines, fmt.Sprintf("%s gets no secret: %s, but %s", entry.Name, d.Granted, d.Reason))
		}
	}
	return lines
}

// samePlace reports whether one request has room for only one of two secrets.
func samePlace(a, b manifests.SecretPlace) bool {
	same := func(a, b string) bool { return a != "" && permission.FoldName(a) == permission.FoldName(b) }
	return same(a.Header, b.Header) || same(a.Query, b.Query) || same(a.Body, b.Body)
}

func (h *host) noteUnsentSecrets(names []string) {
	h.options.hint(h.unsentSecrets(names)...)
}
