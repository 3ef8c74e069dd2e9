package runtime

import (
	"errors"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// digestOfBound returns the digest of the tool's module if some grant is bound to one. It is zero where
// none is, and where the module cannot be read: no bound grant holds then.
func digestOfBound(m *manifests.Manifest, grants manifests.Grants) (engine.Digest, error) {
	if !isBound(grants) {
		return engine.Digest{}, nil
	}
	digest, err := moduleDigest(m)
	if err != nil && !errors.Is(err, ErrModule) {
		return engine.Digest{}, err
	}
	return digest, nil
}

// moduleText returns a digest as grants name it, and nothing for the zero value.
func moduleText(digest engine.Digest) string {
	if digest == (engine.Digest{}) {
		return ""
	}
	return digest.String()
}

// isBound reports whether any grant is bound to a digest.
func isBound(g manifests.Grants) bool {
	return slices.ContainsFunc(g.Statements(), func(s manifests.Statement) bool { return s.SHA256 != "" }) ||
		slices.ContainsFunc(g.Approved, func(a manifests.ApprovalGrant) bool { return a.SHA256 != "" })
}

// holds reports whether something is granted to the permit's module.
func (p *permit) holds(binding manifests.Binding) bool {
	return permission.Statement{SHA256: binding.SHA256}.Holds(p.module)
}
