package caisson

import (
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
)

// Unapplied is a policy entry that has no effect on the loaded tools, such as a grant for a tool
// that is not loaded. It may be intended.
type Unapplied struct {
	Key    string // in its policy: "grants[0].files[1]"
	Origin string // where the entry is, as the policy gives it: "caisson.yaml:14"
	Text   string // the entry that has no effect, and why
	Fix    string // what to do about it
}

// near is the maximum number of names to suggest for a wrong one.
const near = 3

// Unapplied returns the policy entries that have no effect, in their order. It reads modules if
// grants are restricted to module digests.
func (h *Host) Unapplied() []Unapplied {
	var tools []*manifests.Manifest
	for _, entry := range h.registry.List() {
		tools = append(tools, entry.Manifest)
	}
	var found []Unapplied
	for _, f := range unapplied.In(h.policies, h.profile, tools,
		func(name string) []string { return h.registry.Nearest(name, near) }) {
		found = append(found, Unapplied(f))
	}
	return found
}
