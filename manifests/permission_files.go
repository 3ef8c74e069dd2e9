package manifests

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/permission"
)

// Access is the access of a file permission.
type Access string

// Kinds of access.
const (
	AccessRead      Access = "read"
	AccessReadWrite Access = "read-write"
)

// FilePermission requests a directory at a guest path, or denies all files at and below the path, or only writing to
// them if Access is [AccessReadWrite].
type FilePermission struct {
	Path   permission.GuestPath
	Access Access
}

// FileGrant grants a host directory to the tools that request its guest path.
type FileGrant struct {
	Binding
	Path permission.GuestPath // such as "/project"
	// Host is the directory. An element of the path may be "{key}", which is replaced by the call's
	// context value with that name: "./workspaces/{project_id}".
	Host   permission.HostTemplate
	Access Access // empty means read
	// Quota limits the directory over all calls.
	Quota Quota
}

// GrantDirectory grants a host directory, with access, to the tools that request its guest path:
// GrantDirectory("/project", "./workspaces/{project_id}", AccessReadWrite). A relative host path
// starts at the working directory. Loading a tool fails if a path is invalid.
func GrantDirectory(path, host string, access Access) FileGrant {
	return FileGrant{Path: permission.NewGuestPath(path), Host: permission.NewHostTemplate(host), Access: access}
}

// Quota limits a directory with its contents. A zero field means the runtime's default.
type Quota struct {
	Bytes Bytes
	Files int
}

// DenyDirectory denies all files at and below a guest path, or only writing to them if access is [AccessReadWrite].
// Loading a tool fails if the path is invalid.
func DenyDirectory(path string, access Access) *FilePermission {
	return &FilePermission{Path: permission.NewGuestPath(path), Access: access}
}

const maxQuotaFiles = 1_000_000_000

func files() kind {
	return kind{
		name: "files",
		asks: &asking{
			key: "files",
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.Files = listOf(r, maxList, r.filePermission)(n, at)
				r.checkOverlap(n, at, p.Files)
			},
			write: func(p Permissions) *node { return listed(p.Files, fileNode) },
		},
		gives: grants("files", func(g *Grants) *[]FileGrant { return &g.Files },
			(*reader).fileGrants, listing(fileGrantNode), FileGrant.element),
		takes: &taking{
			key:    "files",
			read:   func(r *reader, n *node, at string, d *Deny) { d.Files = new(r.filePermission(n, at)) },
			covers: func(d Deny) bool { return d.Files != nil },
			say:    func(d Deny) Element { return deniedDirectory(*d.Files) },
		},
	}
}

const pathExample = "path: and the folder's path for the tool, such as /project"

func (r *reader) access() parser[Access] { return choice(r, AccessRead, AccessReadWrite) }

func (r *reader) filePermission(n *node, at string) FilePermission {
	p := FilePermission{Access: AccessRead}
	r.object(n, at,
		required("path", pathExample, &p.Path, r.guestPath),
		optional("access", &p.Access, r.access()),
	)
	return p
}

// checkOverlap reports mounts that are equal or nested, because the mount of a path would be ambiguous.
func (r *reader) checkOverlap(n *node, at string, mounts []FilePermission) {
	if n.kind != listNode {
		return
	}
	for i, mount := range mounts {
		for _, earlier := range mounts[:i] {
			if _, overlap := mount.Path.Intersect(earlier.Path); !overlap {
				continue
			}
			inner := keypath.Index(at, i) + ".path"
			r.conflict(inner, fmt.Sprintf("%s overlaps %s", mount.Path, earlier.Path),
				"use paths that do not lie inside each other")
			break
		}
	}
}

// fileGrants reads grants of directories. They may overlap for different tools, but equal guest paths are a mistake.
func (r *reader) fileGrants(n *node, path string) []FileGrant {
	var grants []FileGrant
	r.list(n, path, maxList, func(n *node, path string) {
		grant := r.fileGrant(n, path)
		if grant.Path.Err() == nil && slices.ContainsFunc(grants, func(g FileGrant) bool { return g.Path == grant.Path }) {
			inner := keypath.Key(path, "path")
			r.add(r.place(inner), inner, mistake.DuplicateKey, clip(grant.Path.String())+" appears twice in the grant",
				"keep one of the two")
		}
		grants = append(grants, grant)
	})
	return grants
}

func (r *reader) fileGrant(n *node, path string) FileGrant {
	g := FileGrant{Binding: Binding{Origin: r.origin(n.at)}, Access: AccessRead}
	r.object(n, path,
		required("path", pathExample, &g.Path, r.guestPath),
		required("host", "host: and a folder of this computer, such as ./workspaces/{project_id}", &g.Host, r.hostTemplate),
		optional("access", &g.Access, r.access()),
		optional("quota", &g.Quota.Bytes, r.bytes(1, mostDisk)),
		optional("quota_files", &g.Quota.Files, integer(r, 1, maxQuotaFiles)),
	)
	return g
}

func fileNode(f FilePermission) *node {
	return objectOf(keyed("path", textOf(f.Path.String())), keyed("access", accessNode(f.Access)))
}

func fileGrantNode(f FileGrant) *node {
	return objectOf(keyed("path", textOf(f.Path.String())), keyed("host", &node{}), keyed("access", accessNode(f.Access)))
}

func accessNode(access Access) *node { return textOf(string(cmp.Or(access, AccessRead))) }

func (f FileGrant) element() Element {
	return directoryElement(f.Path, func(asked permission.GuestPath) bool { return asked == f.Path }, func() (any, error) {
		host := f.Host.String()
		err := absolute(&host)
		return struct {
			Binding
			Path   permission.GuestPath
			Host   string
			Access Access
			Quota  Quota
		}{Binding{}, f.Path, host, f.Access, f.Quota}, err
	})
}

// deniedDirectory returns the element of a denial: mounts at the path and below it.
func deniedDirectory(d FilePermission) Element {
	concerns := func(asked permission.GuestPath) bool { return d.Path.Err() != nil || d.Path.Matches(asked.String()) }
	s := directoryElement(d.Path, concerns, func() (any, error) { return d, nil })
	s.About += " or one below it"
	return s
}

func directoryElement(
	path permission.GuestPath, is func(asked permission.GuestPath) bool, canonical func() (any, error),
) Element {
	return Element{
		About: "the directory " + path.String(), Fix: "write a guest path that a manifest asks for, or remove it",
		canonical: canonical,
		asked: func(m *Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Files, func(p FilePermission) bool { return is(p.Path) })
		},
	}
}
