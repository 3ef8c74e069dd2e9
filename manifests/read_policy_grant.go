package manifests

import (
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

const (
	maxEnvValue   = 32 << 10 // bytes
	maxQuotaFiles = 1_000_000_000
)

// grant reads one element of a policy's grants.
func (r *reader) grant(n *node, path string) Grant {
	g := Grant{Binding: Binding{Origin: r.origin(n.at)}}
	gives := r.grantFields(&g)
	read := r.object(n, path, append([]field{
		{"tools", `tools: and a list of names, or globs such as "file_*"`, func(n *node, path string) { g.Tools = r.patterns(n, path) }},
		{"source", "", func(n *node, path string) { g.Source = r.hostPath(n, path) }},
		{"sha256", "", func(n *node, path string) { g.SHA256 = r.digest(n, path) }},
	}, gives...)...)
	if read {
		r.checkGives(n, path, keysOf(gives))
	}
	all := g.elements()
	g.Files, g.Network, g.Secrets, g.Context, g.Env, g.Calls = all.Files, all.Network, all.Secrets, all.Context, all.Env, all.Calls
	return g
}

// checkGives reports a grant that gives nothing: it is a slip, such as a list that was
// left out.
func (r *reader) checkGives(n *node, path string, permissions []string) {
	gives := slices.ContainsFunc(permissions, func(key string) bool {
		value := n.get(key)
		return value != nil && (value.kind != listNode && value.kind != objectNode || len(value.elements)+len(value.members) > 0)
	})
	if !gives {
		r.add(n.at, path, Missing, "the grant gives nothing", "add one of "+strings.Join(permissions, ", ")+", or remove the grant")
	}
}

// callGrants reads the names of tools. There are no globs: a tool that comes later should not be
// one that others may call already.
func (r *reader) callGrants(n *node, path string) []CallGrant {
	var grants []CallGrant
	r.uniqueTexts(n, path, maxList, func(n *node, path string) string {
		name := r.name(n, path)
		if name != "" && !slices.ContainsFunc(grants, func(g CallGrant) bool { return g.Tool == name }) {
			grants = append(grants, CallGrant{Binding{Origin: r.origin(n.at)}, name})
		}
		return name
	})
	return grants
}

func (r *reader) contextGrants(n *node, path string) []ContextGrant {
	var grants []ContextGrant
	r.uniqueTexts(n, path, maxContext, func(n *node, path string) string {
		name := r.parameter(n, path)
		if name != "" && !slices.ContainsFunc(grants, func(g ContextGrant) bool { return g.Name == name }) {
			grants = append(grants, ContextGrant{Binding{Origin: r.origin(n.at)}, name})
		}
		return name
	})
	return grants
}

func (r *reader) envGrants(n *node, path string) []EnvGrant {
	var grants []EnvGrant
	r.mapping(n, path, maxList, func(m member, path string) {
		r.key(m, path, settingName, settingFix)
		grants = append(grants, EnvGrant{Binding{Origin: r.origin(m.at)}, m.key, r.value(m.value, path, maxEnvValue)})
	})
	return grants
}

// fileGrants reads directories. Those that overlap may be for different tools; the same
// guest path twice could only be a slip.
func (r *reader) fileGrants(n *node, path string) []FileGrant {
	var grants []FileGrant
	r.list(n, path, maxList, func(n *node, path string) {
		grant := r.fileGrant(n, path)
		if grant.Path != "" && slices.ContainsFunc(grants, func(g FileGrant) bool { return g.Path == grant.Path }) {
			inner := keypath.Key(path, "path")
			r.add(r.place(inner), inner, DuplicateKey, clip(grant.Path)+" stands twice in the grant", "keep one of the two")
		}
		grants = append(grants, grant)
	})
	return grants
}

func (r *reader) fileGrant(n *node, path string) FileGrant {
	g := FileGrant{Binding: Binding{Origin: r.origin(n.at)}, Access: Read}
	r.object(n, path,
		field{"path", "path: and the folder's path for the tool, such as /project", func(n *node, path string) { g.Path = r.guestPath(n, path) }},
		field{"host", "host: and a folder of this computer, such as ./workspaces/{project_id}", func(n *node, path string) { g.Host = r.hostTemplate(n, path) }},
		field{"access", "", func(n *node, path string) { g.Access = Access(r.choice(n, path, string(Read), string(ReadWrite))) }},
		field{"quota", "", func(n *node, path string) { g.Quota.Bytes = r.bytes(n, path, 1, mostDisk) }},
		field{"quota_files", "", func(n *node, path string) { g.Quota.Files = int(r.integer(n, path, 1, maxQuotaFiles)) }},
	)
	return g
}
