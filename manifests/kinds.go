package manifests

import (
	"cmp"
	"slices"

	"github.com/caisson-run/caisson/manifests/permission"
)

// kind is one kind of permission: under which keys it stands, and who reads and writes what is there.
// An empty key is none: nobody can write it there. Writers return nil where there is nothing to write.
type kind struct {
	name permission.Kind // as decisions and receipts have it
	// manifest is the key below a manifest's permissions.
	manifest string
	request  func(r *reader, n *node, at string, p *Permissions)
	asked    func(p Permissions) *node // nil where no receipt asks for it
	// grant is the key in an element of a policy's grants.
	grant string
	give  func(r *reader, n *node, at string, g *Grant)
	given func(g Grant) *node
	// hand adds what a grant gives, each element with the grant's binding where it has none.
	hand func(from Grant, to *Grants)
	// deny is the key in an element of a policy's deny list.
	deny string
	take func(r *reader, n *node, at string, d *Deny)
}

// kinds is the table of all kinds of permissions, in the order in which people are shown them.
func kinds() []kind {
	return []kind{
		{
			name:     "files",
			manifest: "files", request: func(r *reader, n *node, at string, p *Permissions) {
				r.list(n, at, maxList, func(n *node, at string) { p.Files = append(p.Files, r.filePermission(n, at)) })
				r.checkOverlap(n, at, p.Files)
			},
			asked: func(p Permissions) *node { return listed(p.Files, fileNode) },
			grant: "files", give: func(r *reader, n *node, at string, g *Grant) { g.Files = r.fileGrants(n, at) },
			given: func(g Grant) *node { return listed(g.Files, fileGrantNode) },
			hand:  func(from Grant, to *Grants) { to.Files = append(to.Files, inherit(from.Files, from.Binding)...) },
			deny:  "files", take: func(r *reader, n *node, at string, d *Deny) { d.Files = r.fileDeny(n, at) },
		},
		{
			name:     "network",
			manifest: "network", request: func(r *reader, n *node, at string, p *Permissions) {
				r.list(n, at, maxList, func(n *node, at string) { p.Network = append(p.Network, r.networkPermission(n, at)) })
			},
			asked: func(p Permissions) *node { return listed(p.Network, requestNode) },
			grant: "network", give: func(r *reader, n *node, at string, g *Grant) {
				r.list(n, at, maxList, func(n *node, at string) { g.Network = append(g.Network, r.networkGrant(n, at)) })
			},
			given: func(g Grant) *node { return listed(g.Network, networkGrantNode) },
			hand:  func(from Grant, to *Grants) { to.Network = append(to.Network, inherit(from.Network, from.Binding)...) },
			deny:  "network", take: func(r *reader, n *node, at string, d *Deny) { d.Network = r.networkDeny(n, at) },
		},
		{
			name:     "secrets",
			manifest: "secrets", request: func(r *reader, n *node, at string, p *Permissions) {
				r.list(n, at, maxList, func(n *node, at string) { p.Secrets = append(p.Secrets, r.secretPermission(n, at)) })
			},
			asked: func(p Permissions) *node { return listed(p.Secrets, secretNode) },
			grant: "secrets", give: func(r *reader, n *node, at string, g *Grant) {
				r.list(n, at, maxList, func(n *node, at string) { g.Secrets = append(g.Secrets, r.secretGrant(n, at)) })
			},
			given: func(g Grant) *node { return listed(g.Secrets, secretGrantNode) },
			hand:  func(from Grant, to *Grants) { to.Secrets = append(to.Secrets, inherit(from.Secrets, from.Binding)...) },
			deny:  "secret", take: func(r *reader, n *node, at string, d *Deny) { d.Secret = r.secret(n, at) },
		},
		{
			name:  "context", // a manifest asks for it in a list of its own, beside its permissions
			grant: "context", give: func(r *reader, n *node, at string, g *Grant) { g.Context = r.contextGrants(n, at) },
			given: func(g Grant) *node { return listed(g.Context, func(c ContextGrant) *node { return textOf(c.Name) }) },
			hand:  func(from Grant, to *Grants) { to.Context = append(to.Context, inherit(from.Context, from.Binding)...) },
			deny:  "context", take: func(r *reader, n *node, at string, d *Deny) { d.Context = r.parameter(n, at) },
		},
		{
			name:     "env",
			manifest: "env", request: func(r *reader, n *node, at string, p *Permissions) {
				p.Env = r.uniqueTexts(n, at, maxList, r.setting)
			},
			asked: func(p Permissions) *node { return listed(p.Env, textOf) },
			grant: "env", give: func(r *reader, n *node, at string, g *Grant) { g.Env = r.envGrants(n, at) },
			given: func(g Grant) *node { return variablesNode(g.Env) },
			hand:  func(from Grant, to *Grants) { to.Env = append(to.Env, inherit(from.Env, from.Binding)...) },
			deny:  "env", take: func(r *reader, n *node, at string, d *Deny) { d.Env = r.setting(n, at) },
		},
		{
			name:     "kv",
			manifest: "kv", request: func(r *reader, n *node, at string, p *Permissions) { p.KV = r.kvPermission(n, at) },
		},
		{
			name:     "tools",
			manifest: "tools", request: func(r *reader, n *node, at string, p *Permissions) {
				p.Tools = r.uniqueTexts(n, at, maxList, r.name)
			},
			asked: func(p Permissions) *node { return listed(p.Tools, textOf) },
			grant: "calls", give: func(r *reader, n *node, at string, g *Grant) { g.Calls = r.callGrants(n, at) },
			given: func(g Grant) *node { return listed(g.Calls, func(c CallGrant) *node { return textOf(c.Tool) }) },
			hand:  func(from Grant, to *Grants) { to.Calls = append(to.Calls, inherit(from.Calls, from.Binding)...) },
			deny:  "call", take: func(r *reader, n *node, at string, d *Deny) { d.Call = r.name(n, at) },
		},
		{
			name:     "llm",
			manifest: "llm", request: func(r *reader, n *node, at string, p *Permissions) { p.LLM = r.llmPermission(n, at) },
		},
	}
}

// requestMembers write what permissions ask for.
func requestMembers(p Permissions) []member {
	var members []member
	for _, k := range kinds() {
		if k.asked != nil {
			members = append(members, keyed(k.manifest, k.asked(p)))
		}
	}
	return members
}

// grantMembers write what a grant gives, sorted.
func grantMembers(g Grant) []member {
	var members []member
	for _, k := range kinds() {
		if k.given != nil {
			members = append(members, keyed(k.grant, k.given(g)))
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return members
}

// requestFields are the keys below a manifest's permissions.
func (r *reader) requestFields(p *Permissions) []field {
	var fields []field
	for _, k := range kinds() {
		if k.manifest != "" {
			fields = append(fields, field{k.manifest, "", func(n *node, at string) { k.request(r, n, at, p) }})
		}
	}
	return fields
}

// grantFields are the keys of an element of a policy's grants that give something, sorted.
func (r *reader) grantFields(g *Grant) []field {
	var fields []field
	for _, k := range kinds() {
		if k.grant != "" {
			fields = append(fields, field{k.grant, "", func(n *node, at string) { k.give(r, n, at, g) }})
		}
	}
	slices.SortFunc(fields, byKey)
	return fields
}

// denyFields are the keys of an element of a policy's deny list that take something away.
func (r *reader) denyFields(d *Deny) []field {
	var fields []field
	for _, k := range kinds() {
		if k.deny != "" {
			fields = append(fields, field{k.deny, "", func(n *node, at string) { k.take(r, n, at, d) }})
		}
	}
	return fields
}

func byKey(a, b field) int { return cmp.Compare(a.key, b.key) }

func keysOf(fields []field) []string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	return keys
}
