package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// bound is what is left of grants once those that are for another module are gone.
type bound struct {
	grants manifests.Grants
	// digest is the module's, if some grant depends on it and it can be read.
	digest engine.Digest
	// dropped are the grants that are for another module, by permission and what it names.
	dropped map[[2]string]manifests.Binding
}

// approvalDropped is where an approval stands in dropped: it is no permission, and names nothing.
var approvalDropped = [2]string{"approval", ""}

// bindTo leaves out the grants that are bound to a digest which is not the module's. Where the
// module cannot be read, no bound grant holds.
func bindTo(grants manifests.Grants, digest func() (engine.Digest, error)) (bound, error) {
	b := bound{grants: grants, dropped: map[[2]string]manifests.Binding{}}
	if !b.depends() {
		return b, nil
	}
	actual, err := digest()
	if err != nil && !errors.Is(err, ErrModule) {
		return bound{}, err
	}
	b.digest = actual
	b.grants.Files = kept(&b, "files", grants.Files, func(g manifests.FileGrant) (manifests.Binding, string) { return g.Binding, g.Path })
	b.grants.Network = kept(&b, "network", grants.Network, func(g manifests.NetworkGrant) (manifests.Binding, string) { return g.Binding, "" })
	b.grants.Secrets = kept(&b, "secrets", grants.Secrets, func(g manifests.SecretGrant) (manifests.Binding, string) { return g.Binding, "" })
	b.grants.Context = kept(&b, "context", grants.Context, func(g manifests.ContextGrant) (manifests.Binding, string) { return g.Binding, g.Name })
	b.grants.Env = kept(&b, "env", grants.Env, func(g manifests.EnvGrant) (manifests.Binding, string) { return g.Binding, g.Name })
	b.grants.Calls = kept(&b, "tools", grants.Calls, func(g manifests.CallGrant) (manifests.Binding, string) { return g.Binding, g.Tool })
	b.grants.Approved = kept(&b, approvalDropped[0], grants.Approved, func(g manifests.ApprovalGrant) (manifests.Binding, string) { return g.Binding, approvalDropped[1] })
	return b, nil
}

// depends reports whether any grant is bound to a digest.
func (b *bound) depends() bool {
	is := func(binding manifests.Binding) bool { return binding.SHA256 != "" }
	g := b.grants
	return slices.ContainsFunc(g.Files, func(g manifests.FileGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Network, func(g manifests.NetworkGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Secrets, func(g manifests.SecretGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Context, func(g manifests.ContextGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Env, func(g manifests.EnvGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Calls, func(g manifests.CallGrant) bool { return is(g.Binding) }) ||
		slices.ContainsFunc(g.Approved, func(g manifests.ApprovalGrant) bool { return is(g.Binding) })
}

func kept[G any](b *bound, permission string, grants []G, of func(G) (manifests.Binding, string)) []G {
	var kept []G
	for _, g := range grants {
		binding, names := of(g)
		isThis := b.digest != (engine.Digest{}) && binding.SHA256 == b.digest.String()
		if binding.SHA256 == "" || isThis {
			kept = append(kept, g)
			continue
		}
		b.dropped[[2]string{permission, names}] = binding
	}
	return kept
}

// explain adds to what was decided which grants would have held for another module.
func (b *bound) explain(decisions []tool.Decision) {
	for i, d := range decisions {
		names := d.Requested
		switch d.Permission {
		case "files":
			names, _, _ = strings.Cut(names, " (")
		case "network", "secrets":
			names = ""
		}
		binding, ok := b.dropped[[2]string{d.Permission, names}]
		if !ok || d.Effective != "" {
			continue
		}
		decisions[i].Reason = d.Reason + "; " + b.otherModule("the grant", binding)
	}
}

// otherModule says that something was given to another module than the tool's.
func (b *bound) otherModule(what string, to manifests.Binding) string {
	if to.Origin != "" {
		what += " of " + to.Origin
	}
	this := "which cannot be read"
	if b.digest != (engine.Digest{}) {
		this = "which has " + b.digest.String()
	}
	return fmt.Sprintf("%s is for the module with sha256 %s and not for this one, %s", what, to.SHA256, this)
}
