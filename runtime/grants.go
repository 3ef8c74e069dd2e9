package runtime

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// permit is request ∩ grant, computed once for a tool. The same values enforce.
type permit struct {
	mounts      []files.Mount
	environment []string
	context     map[string]bool
	decisions   []tool.Decision
}

// newPermit fails on a grant that cannot be read, which is the operator's mistake.
func newPermit(m *manifests.Manifest, grants manifests.Grants) (*permit, error) {
	p := &permit{context: map[string]bool{}}
	if err := p.decideFiles(m, grants.Files); err != nil {
		return nil, err
	}
	for _, grant := range grants.Env {
		if strings.ContainsRune(grant.Name+grant.Value, 0) {
			return nil, fmt.Errorf("runtime: grant for the variable %q: NUL cannot stand in an environment", grant.Name)
		}
	}
	p.decideContext(m, grants.Context)
	p.decideEnv(m, grants.Env)
	return p, nil
}

func (p *permit) decideFiles(m *manifests.Manifest, grants []manifests.FileGrant) error {
	granted := map[string]manifests.FileGrant{}
	for _, grant := range grants {
		if !path.IsAbs(grant.Path) || path.Clean(grant.Path) != grant.Path {
			return fmt.Errorf("runtime: grant for %q: the guest path must be absolute and clean, such as /project", grant.Path)
		}
		if _, twice := granted[grant.Path]; twice {
			return fmt.Errorf("runtime: two grants for the guest path %q", grant.Path)
		}
		if access := or(grant.Access, manifests.Read); access != manifests.Read && access != manifests.ReadWrite {
			return fmt.Errorf("runtime: grant for %q: access %q; want %q or %q", grant.Path, access, manifests.Read, manifests.ReadWrite)
		}
		granted[grant.Path] = grant
	}
	// A grant for a directory that isn't there is a slip of the operator's, also where
	// this tool does not ask for it.
	for _, grant := range grants {
		if err := checkHost(grant); err != nil {
			return err
		}
	}
	for i, request := range m.Permissions.Files {
		line := m.Line(fmt.Sprintf("permissions.files[%d]", i))
		decision := tool.Decision{Permission: "files", Requested: fmt.Sprintf("%s (%s)", request.Path, request.Access)}
		grant, ok := granted[request.Path]
		if !ok {
			decision.Reason = fmt.Sprintf("asked for on line %d of the manifest, but no grant has the guest path %s", line, request.Path)
			decision.Allow.Grant = mountFlag(request.Path, request.Access)
			p.decisions = append(p.decisions, decision)
			continue
		}
		mount, err := p.mount(request, grant, &decision)
		if err != nil {
			return err
		}
		p.mounts = append(p.mounts, mount)
		p.decisions = append(p.decisions, decision)
	}
	return nil
}

func checkHost(grant manifests.FileGrant) error {
	template, err := files.ParseTemplate(grant.Host)
	if err != nil {
		return fmt.Errorf("runtime: grant for %q: %w", grant.Path, err)
	}
	info, err := os.Stat(template.Base())
	if err != nil {
		return fmt.Errorf("runtime: grant for %q: %w", grant.Path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("runtime: grant for %q: %s is not a directory", grant.Path, template.Base())
	}
	return nil
}

func (p *permit) mount(request manifests.FilePermission, grant manifests.FileGrant, decision *tool.Decision) (files.Mount, error) {
	host, err := files.ParseTemplate(grant.Host)
	if err != nil {
		return files.Mount{}, fmt.Errorf("runtime: grant for %q: %w", grant.Path, err)
	}
	access := or(grant.Access, manifests.Read)
	switch {
	case request.Access == manifests.Read && access == manifests.ReadWrite:
		access = manifests.Read
		decision.Reason = "granted; the manifest asks for no more than read"
	case request.Access == manifests.ReadWrite && access == manifests.Read:
		decision.Reason = "the grant is for reading only"
		decision.Allow.Grant = mountFlag(request.Path, manifests.ReadWrite)
	default:
		decision.Reason = "granted"
	}
	decision.Effective = fmt.Sprintf("%s (%s)", request.Path, access)
	return files.Mount{
		Guest: request.Path, Host: host, Access: access, Quota: files.Quota(grant.Quota),
		Requested: request.Access, Granted: or(grant.Access, manifests.Read),
	}, nil
}

func mountFlag(guest string, access manifests.Access) string {
	mode := "ro"
	if access == manifests.ReadWrite {
		mode = "rw"
	}
	return fmt.Sprintf("--mount %s=HOSTDIR:%s", guest, mode)
}

func (p *permit) decideContext(m *manifests.Manifest, granted []manifests.ContextGrant) {
	for _, name := range m.Context {
		decision := tool.Decision{Permission: "context", Requested: name}
		if slices.ContainsFunc(granted, func(g manifests.ContextGrant) bool { return g.Name == name }) {
			p.context[name] = true
			decision.Effective, decision.Reason = name, "granted"
		} else {
			decision.Reason = "no grant names it"
			decision.Allow.Grant = contextFlag(name)
		}
		p.decisions = append(p.decisions, decision)
	}
}

func contextFlag(name string) string { return fmt.Sprintf("--context %s=VALUE", name) }

func (p *permit) decideEnv(m *manifests.Manifest, granted []manifests.EnvGrant) {
	for _, name := range m.Permissions.Env {
		decision := tool.Decision{Permission: "env", Requested: name}
		if at := slices.IndexFunc(granted, func(g manifests.EnvGrant) bool { return g.Name == name }); at >= 0 {
			p.environment = append(p.environment, name+"="+granted[at].Value)
			decision.Effective, decision.Reason = name, "granted"
		} else {
			decision.Reason = "no grant names it"
		}
		p.decisions = append(p.decisions, decision)
	}
}

// explain completes the receipts that package files wrote, which does not know what the
// manifest asks for: a path under a permission that was asked for and not granted needs a
// grant and no change to the manifest.
func (p *permit) explain(m *manifests.Manifest, denials []tool.Denial) []tool.Denial {
	for i, denial := range denials {
		for j, request := range m.Permissions.Files {
			decision := p.decisions[j] // those for files come first
			if decision.Effective == "" && isBelow(denial.Value, request.Path) {
				denials[i].Rule, denials[i].Allow = decision.Reason, decision.Allow
			}
		}
	}
	return denials
}

// isBelow reports whether a guest path is a directory's or lies in it.
func isBelow(guest, directory string) bool {
	return guest == directory || strings.HasPrefix(guest, strings.TrimSuffix(directory, "/")+"/")
}
