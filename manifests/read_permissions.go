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
	r.object(n, at, r.requestFields(p)...)
}

func (r *reader) kvPermission(n *node, at string) *KVPermission {
	p := &KVPermission{}
	r.object(n, at, field{"bytes", "bytes: and how much the tool stores, such as 1MiB", func(n *node, at string) { p.Bytes = r.bytes(n, at, 1, maxKV) }})
	return p
}

func (r *reader) llmPermission(n *node, at string) *LLMPermission {
	p := &LLMPermission{}
	r.object(n, at, field{"tokens", "tokens: and how many a call may use, such as 4000", func(n *node, at string) { p.Tokens = r.integer(n, at, 1, maxTokens) }})
	return p
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
