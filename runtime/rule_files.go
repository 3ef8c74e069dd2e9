package runtime

import "github.com/caisson-run/caisson/manifests/permission"

const filesKind permission.Kind = "files"

// fileRule is to read a mount, or to write to it: permissions of files have one rule for each of the
// two. Requests and grants are about the mount at a guest path, denials about all at it and below.
type fileRule struct {
	path  permission.GuestPath
	write bool
	below bool
}

// Kind returns that of files.
func (r fileRule) Kind() permission.Kind { return filesKind }

// Covers reports whether all mounts that the other rule is about are among those of this one.
func (r fileRule) Covers(with permission.Rule) bool {
	other, ok := with.(fileRule)
	if !ok || r.write != other.write {
		return false
	}
	if r.below {
		return r.path.Covers(other.path)
	}
	return !other.below && r.path == other.path && r.path != permission.GuestPath{}
}

// Intersect returns the mounts that both rules are about. Two rules are nested or have nothing in
// common.
func (r fileRule) Intersect(with permission.Rule) (permission.Rule, bool) {
	switch {
	case r.Covers(with):
		return with, true
	case with.Covers(r):
		return r, true
	}
	return nil, false
}
