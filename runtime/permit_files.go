package runtime

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// decideFiles makes the mounts. Its decisions come first.
func (p *permit) decideFiles(m *manifests.Manifest, grants manifests.Grants) error {
	granted, err := fileGrants(grants.Files)
	if err != nil {
		return err
	}
	for i, request := range m.Permissions.Files {
		guest, err := permission.ParseGuestPath(request.Path)
		if err != nil {
			return fmt.Errorf("runtime: permission of the manifest: %w", err)
		}
		d := tool.Decision{Permission: "files", Requested: fmt.Sprintf("%s (%s)", request.Path, request.Access)}
		grant, ok := granted[guest]
		if !ok {
			line := m.Line(fmt.Sprintf("permissions.files[%d]", i))
			d.Reason = fmt.Sprintf("asked for on line %d of the manifest, but no grant has the guest path %s", line, request.Path)
			d.Allow = fileAllow(m.Name, request.Path, request.Access)
			p.decisions = append(p.decisions, d)
			continue
		}
		d.Granted = from(fmt.Sprintf("%s (%s)", grant.Path, grant.Access), grant.Origin)
		access, err := fileAccess(m.Name, guest, request, grant, grants, &d)
		if err != nil {
			return err
		}
		if access != "" {
			d.Effective = fmt.Sprintf("%s (%s)", request.Path, access)
			p.mounts = append(p.mounts, mountOf(guest, request, grant, access, d.Reason))
		}
		p.decisions = append(p.decisions, d)
	}
	return nil
}

// fileGrant is a grant with the directory that it names.
type fileGrant struct {
	manifests.FileGrant
	host permission.HostTemplate
}

// fileGrants checks the operator's grants, also those that this tool does not ask for: a
// directory that is not there is a slip. It returns them by guest path, with their access.
func fileGrants(grants []manifests.FileGrant) (map[permission.GuestPath]fileGrant, error) {
	granted := map[permission.GuestPath]fileGrant{}
	for _, given := range grants {
		grant := fileGrant{FileGrant: given}
		where := fmt.Sprintf("grant for %q", grant.Path)
		if grant.Origin != "" {
			where = fmt.Sprintf("%s: %s", grant.Origin, where)
		}
		guest, err := permission.ParseGuestPath(grant.Path)
		if err != nil {
			return nil, fmt.Errorf("runtime: %s: %w", where, err)
		}
		grant.Access = or(grant.Access, manifests.Read)
		if grant.Access != manifests.Read && grant.Access != manifests.ReadWrite {
			return nil, fmt.Errorf("runtime: %s: access %q; want %q or %q", where, grant.Access, manifests.Read, manifests.ReadWrite)
		}
		if grant.host, err = readHost(grant.Host); err != nil {
			return nil, fmt.Errorf("runtime: %s: %w", where, err)
		}
		if first, twice := granted[guest]; twice {
			if !sameHost(first.host, grant.host) {
				return nil, fmt.Errorf("runtime: %s gives %s, and %s gives %s; keep one of the two", where, grant.Host, or(first.Origin, "another grant for it"), first.Host)
			}
			grant = wider(first, grant)
		}
		granted[guest] = grant
	}
	return granted, nil
}

// sameHost reports whether two grants name one directory.
func sameHost(a, b permission.HostTemplate) bool {
	first, err := filepath.Abs(a.String())
	if err != nil {
		return a.Covers(b) && b.Covers(a)
	}
	second, err := filepath.Abs(b.String())
	return err == nil && first == second
}

// wider returns that of two grants for one directory which gives more: whoever was told what
// to add may add it beside what is there. The narrower quota holds.
func wider(a, b fileGrant) fileGrant {
	given := a
	if b.Access == manifests.ReadWrite && a.Access != manifests.ReadWrite {
		given = b
	}
	given.Quota.Bytes = narrower(a.Quota.Bytes, b.Quota.Bytes)
	given.Quota.Files = narrower(a.Quota.Files, b.Quota.Files)
	return given
}

// narrower returns the smaller of two bounds, of which zero is none.
func narrower[N int | manifests.Bytes](a, b N) N {
	return min(or(a, b), or(b, a))
}

func readHost(text string) (permission.HostTemplate, error) {
	template, err := permission.ParseHostTemplate(text)
	if err != nil {
		return template, err
	}
	info, err := os.Stat(template.Base())
	if err != nil {
		return template, err
	}
	if !info.IsDir() {
		return template, fmt.Errorf("%s is not a directory", template.Base())
	}
	return template, nil
}

// fileAccess returns the effective access, or none, and completes the decision.
func fileAccess(toolName string, guest permission.GuestPath, request manifests.FilePermission, grant fileGrant, grants manifests.Grants, d *tool.Decision) (manifests.Access, error) {
	access := request.Access
	switch {
	case access == manifests.Read && grant.Access == manifests.ReadWrite:
		d.Reason = "granted; the manifest asks for no more than read"
	case access == manifests.ReadWrite && grant.Access == manifests.Read:
		access, d.Reason = manifests.Read, or(grant.Origin, "the grant")+" allows only to read it"
		d.Allow = fileAllow(toolName, request.Path, manifests.ReadWrite)
	default:
		d.Reason = "granted"
	}
	if access == manifests.ReadWrite && grants.NoWrites != "" {
		access, d.Reason = manifests.Read, "the profile "+grants.NoWrites+" allows no writing"
	}
	for _, deny := range grants.Deny {
		f := deny.Files
		if f == nil {
			continue
		}
		denied, err := permission.ParseGuestPath(f.Path)
		switch {
		case err != nil:
			return "", fmt.Errorf("runtime: %s: %w", or(deny.Origin, "a deny rule"), err)
		case denied.Covers(guest) && f.Access == manifests.ReadWrite:
			if access == manifests.ReadWrite {
				access, d.Reason = manifests.Read, denies(deny.Origin)+" for writing"
			}
		case denied.Covers(guest):
			d.Reason, d.Allow = denies(deny.Origin), tool.Allow{}
			return "", nil
		case guest.Covers(denied):
			return "", fmt.Errorf("runtime: %s: %s is a part of the directory %s, which %s gets; a part cannot be denied: grant narrower directories",
				or(deny.Origin, "a deny rule"), f.Path, request.Path, toolName)
		}
	}
	return access, nil
}

func mountOf(guest permission.GuestPath, request manifests.FilePermission, grant fileGrant, access manifests.Access, reason string) files.Mount {
	m := files.Mount{
		Guest: guest, Host: grant.host, Access: access, Quota: files.Quota(grant.Quota),
		Requested: request.Access, Granted: grant.Access,
	}
	if access == manifests.Read && request.Access == manifests.ReadWrite && grant.Access == manifests.ReadWrite {
		m.Cut = reason
	}
	return m
}

func fileAllow(toolName, guest string, access manifests.Access) tool.Allow {
	return tool.Allow{Grant: files.MountFlag(guest, access), Config: manifests.SuggestFileGrant(toolName, guest, access)}
}

// explain completes the receipts that package files wrote, which does not know what the
// manifest asks for: a path under a permission that was asked for and not given needs no
// change to the manifest.
func (p *permit) explain(m *manifests.Manifest, denials []tool.Denial) []tool.Denial {
	for i, denial := range denials {
		for j, request := range m.Permissions.Files {
			d := p.decisions[j] // those for files come first
			asked, err := permission.ParseGuestPath(request.Path)
			if err == nil && d.Effective == "" && asked.Matches(denial.Value) {
				denials[i].Rule, denials[i].Allow = d.Reason, d.Allow
			}
		}
	}
	return denials
}
