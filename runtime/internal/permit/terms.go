package permit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Asks returns why each call of the tool needs approval, or "" if calls need none; see [runtime.Tool.Asks].
func (p *Permit) Asks() string {
	m, grants := p.manifest, p.grants
	switch {
	case m.Execution == manifests.ExecutionClient:
		return ""
	case len(grants.Ask) > 0:
		return cmp.Or(grants.Ask[0], "the operator") + " asks for approval of each call"
	case !m.Behavior.Destructive || p.isPowerless():
		return ""
	}
	call := permission.NewName("approval", "each call")
	rules := permission.Rules{Module: p.module}
	for _, approval := range grants.Approved {
		rules.Grants = append(rules.Grants, permission.Statement{Rule: call, Binding: approval})
	}
	outcome := rules.DecideOne(call)
	if len(outcome.Effective) > 0 {
		return ""
	}
	return "the tool says that it is destructive" + rules.ForOthers(outcome, "the approval")
}

// isPowerless reports whether the tool requests permissions and gets none. Its calls can destroy nothing. They are
// denied, and a request for approval before the denial would be useless.
func (p *Permit) isPowerless() bool {
	return len(p.Decisions) > 0 &&
		!slices.ContainsFunc(p.Decisions, func(d tool.Decision) bool { return d.Effective != "" })
}

// terms decide, together with the module, the abilities of a tool's calls. If their JSON is equal, calls can do the
// same. It may differ although calls can do the same; that costs only another request for approval.
type terms struct {
	Name      string
	Execution manifests.Execution
	Type      string
	ABI       modules.ABI
	Entry     string
	Config    map[string]string
	Variables int64    `json:",omitempty"`
	Arguments []string // the argv template
	Stdin     modules.Stdin
	Stdout    modules.Stdout
	Stderr    modules.Stderr
	// SuccessCodes are the exit codes besides 0 that are a success.
	SuccessCodes []int

	Parameters json.RawMessage
	Aliases    []manifests.ParameterAlias
	Context    []string
	Behavior   manifests.Behavior
	Requests   manifests.Permissions
	Limits     manifests.Limits

	Effective   []effectiveDecision
	Mounts      []effectiveMount
	Constants   []constantFiles `json:",omitempty"`
	Environment []string
	// Given and Denied are the grants and denials that concern the tool's requests, in canonical
	// form, sorted.
	Given, Denied []string
}

type effectiveDecision struct{ Permission, Requested, Effective string }

type effectiveMount struct {
	Guest, Host string // Host is absolute and may be a template
	Access      manifests.Access
	Quota       manifests.Quota
}

type constantFiles struct{ Guest, SHA256 string }

// TermsDigest returns the digest of everything that decides, together with the module, the abilities of the tool's
// calls. It ignores grants that do not hold for the tool's module.
func (p *Permit) TermsDigest(limits manifests.Limits) ([sha256.Size]byte, error) {
	t := p.manifestTerms()
	t.Limits = limits
	for _, d := range p.Decisions {
		effective := d.Effective
		if effective != "" && (d.Permission == "network" || d.Permission == "secrets") {
			effective = "granted" // the text depends on the grants' order; Given has the details
		}
		t.Effective = append(t.Effective, effectiveDecision{d.Permission, d.Requested, effective})
	}
	if err := t.addPermissions(p); err != nil {
		return [sha256.Size]byte{}, err
	}
	return t.digest()
}

// ManifestDigest is like TermsDigest for what only the manifest says, whatever is granted.
func (p *Permit) ManifestDigest() ([sha256.Size]byte, error) {
	t := p.manifestTerms()
	return t.digest()
}

func (t *terms) digest() ([sha256.Size]byte, error) {
	text, err := json.Marshal(t)
	return sha256.Sum256(text), err
}

// manifestTerms returns the terms that the manifest has.
func (p *Permit) manifestTerms() terms {
	m := p.manifest
	t := terms{
		Name: m.Name, Execution: m.Execution, Type: m.Type, ABI: m.Module.ABI, Entry: m.Module.Entry, Config: m.Module.Config,
		Variables: m.Module.Variables,
		Stdin:     m.Module.Stdin, Stdout: m.Module.Stdout, Stderr: m.Module.Stderr,
		SuccessCodes: m.Module.SuccessCodes, Parameters: m.ModelParameters, Aliases: m.ParameterAliases, Context: m.Context,
		Behavior: m.Behavior, Requests: m.Permissions, Limits: m.Limits,
	}
	for _, template := range m.Module.Args {
		t.Arguments = append(t.Arguments, template.String())
	}
	return t
}

// addPermissions adds the permissions in full. Decisions are texts for people and leave things out.
func (t *terms) addPermissions(p *Permit) error {
	m, grants := p.manifest, p.grants
	for _, variable := range p.Environment {
		t.Environment = append(t.Environment, strconv.Quote(variable))
	}
	slices.Sort(t.Environment)
	for _, mount := range p.Mounts {
		if mount.Tree != nil {
			digest := mount.Tree.Digest()
			t.Constants = append(t.Constants, constantFiles{mount.Guest.String(), hex.EncodeToString(digest[:])})
			continue
		}
		host, err := filepath.Abs(mount.Host.String())
		if err != nil {
			return err
		}
		// Quoted, since JSON replaces bytes that are not UTF-8: two paths would look equal.
		t.Mounts = append(t.Mounts, effectiveMount{mount.Guest.String(), strconv.Quote(host), mount.Access, mount.Quota})
	}
	given := slices.DeleteFunc(grants.Elements(), func(e manifests.Element) bool { return !e.Holds(p.module) })
	var denied []manifests.Element
	for _, deny := range grants.Deny {
		denied = append(denied, deny.Element())
	}
	var err error
	if t.Given, err = canonical(m, given); err != nil {
		return err
	}
	t.Denied, err = canonical(m, denied)
	return err
}

// canonical returns the canonical form of the elements that concern a tool, sorted and without
// duplicates.
func canonical(m *manifests.Manifest, elements []manifests.Element) ([]string, error) {
	var texts []string
	for _, e := range elements {
		if !e.Concerns(m) {
			continue
		}
		text, err := e.Canonical()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}
