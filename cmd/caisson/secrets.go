package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// unsentSecrets describes the secrets that the operator binds for tools and that are never sent: the value is
// not set, or the tool can reach no host that may get it. The tools are the named ones and those that they may
// call, or all if names is nil.
func (h *host) unsentSecrets(names []string) []string {
	entries := h.registry.List()
	if names != nil {
		entries = h.withCallees(names)
	}
	var lines []string
	bound := map[string]bool{} // where secrets are bound that one of the tools requests
	for _, entry := range entries {
		m := entry.Manifest
		if len(m.Permissions.Secrets) == 0 {
			continue
		}
		lines = append(lines, withoutValue(entry)...)
		for _, policy := range []*manifests.Policy{h.operator.policy, h.operator.flags} {
			for _, grant := range policy.For(m.Name, m.File).Secrets {
				bound[grant.Origin] = bound[grant.Origin] || requestsSecret(m, grant.Name)
			}
		}
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
	var lines []string
	for _, d := range t.Decisions() {
		if d.Permission == "secrets" && d.Granted != "" && d.Effective == "" {
			lines = append(lines, fmt.Sprintf("%s gets no secret: %s, but %s", entry.Name, d.Granted, d.Reason))
		}
	}
	return lines
}

func requestsSecret(m *manifests.Manifest, name string) bool {
	return slices.ContainsFunc(m.Permissions.Secrets, func(s manifests.SecretPermission) bool { return s.Name == name })
}

// noteUnsentSecrets prints a hint for each secret that [host.unsentSecrets] describes.
func (h *host) noteUnsentSecrets(names []string) {
	for _, line := range h.unsentSecrets(names) {
		h.options.hint(line)
	}
}
