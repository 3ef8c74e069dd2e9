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
	is := func(binding manifests.Binding) bool { return binding.SHA256 != "" }
	return slices.ContainsFunc(g.Files, func(g manifests.FileGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Network, func(g manifests.NetworkGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Secrets, func(g manifests.SecretGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Context, func(g manifests.ContextGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Env, func(g manifests.EnvGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Calls, func(g manifests.CallGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Approved, func(g manifests.ApprovalGrant) bool { return is(g.Binding) })
}

// holds reports whether something is granted to the permit's module.
func (p *permit) holds(binding manifests.Binding) bool {
	return permission.Statement{SHA256: binding.SHA256}.Holds(p.module)
}
