package main

import (
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// remedy is what would allow a refused request, as people add it: a line to a manifest, flags,
// or a line to a policy. What is empty is not missing, or cannot be said so.
type remedy struct{ manifest, flags, policy string }

func remedyOf(allow tool.Allow) remedy {
	return remedy{manifests.ManifestLine(allow.Manifest), flagsFor(allow.Grant), manifests.PolicyLine(allow.Grant)}
}

// hints says what to add where. The manifest is named as a sentence begins; the policy is the
// operator's file.
func (r remedy) hints(manifest, policy string) []string {
	var hints []string
	if r.manifest != "" {
		hints = append(hints, manifest+" must ask for it: "+r.manifest)
	}
	start := "allow it in "
	if r.flags != "" {
		hints = append(hints, "allow it with "+r.flags)
		start = "or in "
	}
	switch {
	case r.isGrant():
		hints = append(hints, start+policy+", under grants: "+r.policy)
	case r.policy != "":
		hints = append(hints, start+policy+": "+r.policy)
	}
	return hints
}

// isGrant reports whether the policy lacks an element of its grants, and not a key.
func (r remedy) isGrant() bool { return strings.HasPrefix(r.policy, "- ") }
