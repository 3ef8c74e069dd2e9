package permit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// decideFiles computes the mounts. It runs first, so its decisions have the indexes of the
// manifest's requests.
func (p *Permit) decideFiles(o Options) error {
	m, grants := o.Manifest, o.Grants
	rules := permission.Rules{Module: o.Module}
	granted, err := fileGrants(grants.Files, &rules)
	if err != nil {
		return err
	}
	if rules.Denials, err = fileDenials(grants); err != nil {
		return err
	}
	for i, request := range m.Permissions.Files {
		guest := request.Path
		if err := guest.Err(); err != nil {
			return fmt.Errorf("permission of the manifest: %w", err)
		}
		d := tool.Decision{Permission: string(filesKind), Requested: fmt.Sprintf("%s (%s)", request.Path, request.Access)}
		read := rules.DecideOne(fileRule{path: guest})
		if len(read.Granted) == 0 {
			line := m.Line(fmt.Sprintf("permissions.files[%d]", i))
			d.Reason = fmt.Sprintf("asked for on line %d of the manifest, but no grant has the guest path %s", line,
				request.Path)
			d.Reason += rules.ForOthers(read, "the grant")
			d.Allow = fileAllow(m.Name, request.Path, request.Access)
			p.Decisions = append(p.Decisions, d)
			continue
		}
		grant := granted[guest]
		d.Granted = permission.Written(fmt.Sprintf("%s (%s)", grant.Path, grant.Access), grant.Origin)
		access := fileAccess(m.Name, request, grant, read, rules, grants.NoWrites, &d)
		if access != "" {
			if err := checkPart(m.Name, guest, rules.Denials); err != nil {
				return err
			}
			d.Effective = fmt.Sprintf("%s (%s)", request.Path, access)
			p.Mounts = append(p.Mounts, mountOf(request, grant, access, d.Reason))
		}
		p.Decisions = append(p.Decisions, d)
	}
	return nil
}

// MountOwn mounts the tool's own files, such as its script, which need no permission. They are the same in all calls,
// so a program may use them before it reads its input, and they are part of [Permit.TermsDigest]. Their paths must not
// overlap a directory that the manifest requests.
func (p *Permit) MountOwn(own []files.Mount) error {
	for _, m := range own {
		if err := m.Guest.Err(); err != nil {
			return fmt.Errorf("constant files of %s: %w", p.manifest.Name, err)
		}
		for _, request := range p.manifest.Permissions.Files {
			if _, both := m.Guest.Intersect(request.Path); both {
				return fmt.Errorf("constant files of %s at %s overlap its files at %s; choose paths of which none holds the other",
					p.manifest.Name, m.Guest, request.Path)
			}
		}
	}
	p.Mounts = append(p.Mounts, own...)
	return nil
}

// accesses returns a rule for reading and, for read-write access, a second one for writing.
func accesses(r fileRule, access manifests.Access, from manifests.Binding) []permission.Statement {
	statements := []permission.Statement{{Rule: r, Binding: from}}
	if access == manifests.AccessReadWrite {
		r.write = true
		statements = append(statements, permission.Statement{Rule: r, Binding: from})
	}
	return statements
}

// fileDenials returns the denials of file permissions, the profile's first.
func fileDenials(grants manifests.Grants) ([]permission.Statement, error) {
	var denied []permission.Statement
	if grants.NoWrites != "" {
		everything := permission.NewGuestPath("/")
		denied = append(denied, permission.Statement{Rule: fileRule{path: everything, write: true, below: true}})
	}
	for _, deny := range grants.Deny {
		if deny.Files == nil {
			continue
		}
		if err := deny.Files.Path.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(deny.Origin, "a deny rule"), err)
		}
		rules := accesses(fileRule{path: deny.Files.Path, below: true}, manifests.AccessReadWrite,
			manifests.Binding{Origin: deny.Origin})
		if deny.Files.Access == manifests.AccessReadWrite {
			rules = rules[1:] // only writing
		}
		denied = append(denied, rules...)
	}
	return denied, nil
}

// checkPart refuses a denial of a path inside a directory that is mounted for the tool.
func checkPart(toolName string, guest permission.GuestPath, denied []permission.Statement) error {
	for _, deny := range denied {
		part := deny.Rule.(fileRule).path
		if guest.Covers(part) && !part.Covers(guest) {
			return &Error{part.String(), deny.Origin, true,
				fmt.Errorf("%s: %s is inside the directory %s, which %s gets; a part cannot be denied: grant narrower directories",
					cmp.Or(deny.Origin, "a deny rule"), part, guest, toolName)}
		}
	}
	return nil
}

// fileGrant is a grant, or several of one directory.
type fileGrant struct {
	manifests.FileGrant
	quota string // where the quota is written
}

// fileGrants adds the operator's grants to the rules and returns them by guest path. It also checks
// those that this tool does not request: a missing directory is probably a mistake. Grants bound to
// another module are not checked further. Two grants of one directory are merged.
func fileGrants(grants []manifests.FileGrant, rules *permission.Rules) (map[permission.GuestPath]fileGrant, error) {
	granted := map[permission.GuestPath]fileGrant{}
	for _, given := range grants {
		grant := fileGrant{FileGrant: given, quota: given.Origin}
		where := fmt.Sprintf("grant for %q", grant.Path.String())
		if grant.Origin != "" {
			where = fmt.Sprintf("%s: %s", grant.Origin, where)
		}
		wrong := func(format string, values ...any) error {
			return &Error{grant.Path.String(), grant.Origin, false, fmt.Errorf("%s"+format, append([]any{where}, values...)...)}
		}
		if err := grant.Path.Err(); err != nil {
			return granted, wrong(": %w", err)
		}
		grant.Access = cmp.Or(grant.Access, manifests.AccessRead)
		if grant.Access != manifests.AccessRead && grant.Access != manifests.AccessReadWrite {
			return granted, wrong(": access %q; want %q or %q", grant.Access, manifests.AccessRead, manifests.AccessReadWrite)
		}
		rules.Grants = append(rules.Grants, accesses(fileRule{path: grant.Path}, grant.Access, grant.Binding)...)
		if !grant.Holds(rules.Module) {
			continue
		}
		if err := checkHost(grant.Host); err != nil {
			return granted, wrong(": %w", err)
		}
		if first, twice := granted[grant.Path]; twice {
			if !sameHost(first.Host, grant.Host) {
				return granted, wrong(" gives %s, and %s gives %s; keep one of the two", grant.Host,
					cmp.Or(first.Origin, "another grant for it"), first.Host)
			}
			grant = wider(first, grant)
		}
		granted[grant.Path] = grant
	}
	return granted, nil
}

// sameHost reports whether two grants name the same directory.
func sameHost(a, b permission.HostTemplate) bool {
	first, err := filepath.Abs(a.String())
	if err != nil {
		return a.Covers(b) && b.Covers(a)
	}
	second, err := filepath.Abs(b.String())
	return err == nil && first == second
}

// wider merges two grants of one directory: it keeps the wider access and the narrower quota. An
// operator who follows a receipt may add the suggested grant next to the old one.
func wider(a, b fileGrant) fileGrant {
	given := a
	if b.Access == manifests.AccessReadWrite && a.Access != manifests.AccessReadWrite {
		given = b
	}
	if a.Quota != b.Quota && a.quota != b.quota {
		given.quota = a.quota + " and " + b.quota
	}
	given.Quota.Bytes = narrower(a.Quota.Bytes, b.Quota.Bytes)
	given.Quota.Files = narrower(a.Quota.Files, b.Quota.Files)
	return given
}

// narrower returns the smaller of two bounds. Zero means no bound.
func narrower[N int | int64 | manifests.Bytes](a, b N) N {
	return min(cmp.Or(a, b), cmp.Or(b, a))
}

// checkHost reports a template that is invalid, or whose literal part is not a directory.
func checkHost(template permission.HostTemplate) error {
	if err := template.Err(); err != nil {
		return err
	}
	info, err := os.Stat(template.Base())
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", wrong.Path, wrong.Err)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", template.Base())
	}
	return nil
}

// fileAccess returns the effective access, or "" for none, and completes the decision. read is the
// outcome for reading.
func fileAccess(
	toolName string, request manifests.FilePermission, grant fileGrant, read permission.Outcome, rules permission.Rules,
	noWrites string, d *tool.Decision,
) manifests.Access {
	if len(read.Effective) == 0 {
		d.Reason = rules.DeniedBy(read)
		return ""
	}
	if request.Access != manifests.AccessReadWrite {
		d.Reason = "granted"
		if grant.Access == manifests.AccessReadWrite {
			d.Reason = "granted; the manifest asks only for read"
		}
		return manifests.AccessRead
	}
	switch write := rules.DecideOne(fileRule{path: grant.Path, write: true}); {
	case len(write.Effective) > 0:
		d.Reason = "granted"
		return manifests.AccessReadWrite
	case len(write.Granted) == 0:
		d.Reason = cmp.Or(grant.Origin, "the grant") + " allows only to read it"
		d.Allow = fileAllow(toolName, request.Path, manifests.AccessReadWrite)
	case noWrites != "" && write.Taken[0] == 0:
		d.Reason = "the profile " + noWrites + " allows no writing"
	default:
		d.Reason = rules.DeniedBy(write) + " for writing"
	}
	return manifests.AccessRead
}

func mountOf(request manifests.FilePermission, grant fileGrant, access manifests.Access, reason string) files.Mount {
	m := files.Mount{
		Guest: request.Path, Host: grant.Host, Access: access, Quota: grant.Quota, Grant: grant.quota,
		Requested: request.Access, Granted: grant.Access,
	}
	if access == manifests.AccessRead && request.Access == manifests.AccessReadWrite &&
		grant.Access == manifests.AccessReadWrite {
		m.Cut = reason
	}
	return m
}

func fileAllow(toolName string, guest permission.GuestPath, access manifests.Access) tool.Allow {
	return tool.Allow{Grant: manifests.Grants{Files: []manifests.FileGrant{{Path: guest, Access: access}}}.Rule(toolName)}
}

const filesKind permission.Kind = "files"

// fileRule allows or denies reading a mount, or writing to it. File permissions have a separate
// rule for each of the two. Requests and grants apply to the mount at a guest path, and denials to
// all mounts at or below it.
type fileRule struct {
	path  permission.GuestPath
	write bool
	below bool
}

// Kind implements permission.Rule.
func (r fileRule) Kind() permission.Kind { return filesKind }

// Covers reports whether this rule applies to every mount that the other rule applies to.
func (r fileRule) Covers(with permission.Rule) bool {
	other, ok := with.(fileRule)
	if !ok || r.write != other.write {
		return false
	}
	if r.below {
		return r.path.Covers(other.path)
	}
	return !other.below && r.path == other.path && r.path.Err() == nil
}

// Intersect returns a rule for the mounts that both rules apply to. One of two rules covers the
// other, or they have nothing in common.
func (r fileRule) Intersect(with permission.Rule) (permission.Rule, bool) {
	switch {
	case r.Covers(with):
		return with, true
	case with.Covers(r):
		return r, true
	}
	return nil, false
}
