package manifests

import (
	"fmt"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
	"github.com/caisson-run/caisson/manifests/permission"
)

const (
	maxKV     = 1 << 40
	maxTokens = 1_000_000_000
)

func (r *reader) permissions(n *node, at string, p *Permissions) {
	r.object(n, at,
		field{"files", "", func(n *node, at string) {
			r.list(n, at, maxList, func(n *node, at string) { p.Files = append(p.Files, r.filePermission(n, at)) })
			r.checkOverlap(n, at, p.Files)
		}},
		field{"network", "", func(n *node, at string) {
			r.list(n, at, maxList, func(n *node, at string) { p.Network = append(p.Network, r.networkPermission(n, at)) })
		}},
		field{"secrets", "", func(n *node, at string) {
			r.list(n, at, maxList, func(n *node, at string) { p.Secrets = append(p.Secrets, r.secretPermission(n, at)) })
		}},
		field{"env", "", func(n *node, at string) { p.Env = r.uniqueTexts(n, at, maxList, r.setting) }},
		field{"kv", "", func(n *node, at string) {
			p.KV = &KVPermission{}
			r.object(n, at, field{"bytes", "bytes: and how much the tool stores, such as 1MiB", func(n *node, at string) { p.KV.Bytes = r.bytes(n, at, 1, maxKV) }})
		}},
		field{"tools", "", func(n *node, at string) { p.Tools = r.uniqueTexts(n, at, maxList, r.name) }},
		field{"llm", "", func(n *node, at string) {
			p.LLM = &LLMPermission{}
			r.object(n, at, field{"tokens", "tokens: and how many a call may use, such as 4000", func(n *node, at string) { p.LLM.Tokens = r.integer(n, at, 1, maxTokens) }})
		}},
	)
}

func (r *reader) filePermission(n *node, at string) FilePermission {
	p := FilePermission{Access: Read}
	r.object(n, at,
		field{"path", "path: and the folder's path for the tool, such as /project", func(n *node, at string) { p.Path = r.guestPath(n, at) }},
		field{"access", "", func(n *node, at string) { p.Access = Access(r.choice(n, at, string(Read), string(ReadWrite))) }},
	)
	return p
}

// checkOverlap reports mounts that are the same or lie inside each other: which one a
// path belongs to would be a guess.
func (r *reader) checkOverlap(n *node, at string, mounts []FilePermission) {
	if n.kind != listNode {
		return
	}
	paths := mountPaths(mounts)
	for i, path := range paths {
		for _, earlier := range paths[:i] {
			if _, overlap := path.Intersect(earlier); !overlap {
				continue
			}
			inner := keypath.Index(at, i) + ".path"
			r.add(r.place(inner), inner, Conflict, fmt.Sprintf("%s overlaps %s", path, earlier), "use paths that do not lie inside each other")
			break
		}
	}
}

// mountPaths returns the guest paths of mounts. That of one which could not be read overlaps nothing.
func mountPaths(mounts []FilePermission) []permission.GuestPath {
	paths := make([]permission.GuestPath, len(mounts))
	for i, mount := range mounts {
		if path, err := permission.ParseGuestPath(mount.Path); err == nil {
			paths[i] = path
		}
	}
	return paths
}
