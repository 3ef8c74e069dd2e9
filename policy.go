package caisson

import (
	"cmp"

	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
)

// asOne returns a policy that says what all of these say.
func asOne(policies []*manifests.Policy) *manifests.Policy {
	all := &manifests.Policy{}
	for _, p := range policies {
		all.File = cmp.Or(all.File, p.File)
		all.Profile = cmp.Or(all.Profile, p.Profile)
		all.Tools = append(all.Tools, p.Tools...)
		all.Profiles = append(all.Profiles, p.Profiles...)
		all.Context = append(all.Context, p.Context...)
		all.Grants = append(all.Grants, p.Grants...)
		all.Deny = append(all.Deny, p.Deny...)
		all.Ask = append(all.Ask, p.Ask...)
		all.Approve = append(all.Approve, p.Approve...)
	}
	return all
}

// Unapplied is something that a policy says and that changes nothing for the tools that are loaded, such
// as a grant for a tool that is not. It may well be meant.
type Unapplied struct {
	Key    string // in its policy: "grants[0].files[1]"
	Origin string // where it stands, as the policy says: "caisson.yaml:14"
	Text   string // what changes nothing, and why
	Fix    string // what to do about it
}

// near is how many names are named that a wrong one may have been meant for.
const near = 3

// Unapplied returns what the policies say that changes nothing, in their order. It reads modules where
// grants are for certain ones.
func (h *Host) Unapplied() []Unapplied {
	var tools []*manifests.Manifest
	for _, entry := range h.registry.List() {
		tools = append(tools, entry.Manifest)
	}
	var found []Unapplied
	for _, f := range unapplied.In(h.policies, tools, func(name string) []string { return h.registry.Nearest(name, near) }) {
		found = append(found, Unapplied(f))
	}
	return found
}
