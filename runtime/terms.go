package runtime

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/manifests"
)

// terms are what decides, besides the module, what calls of a tool can do. Their JSON is equal where
// calls can do the same, as far as that can be told: more that differs than has to means only that
// somebody is asked once more.
type terms struct {
	Name       string
	Execution  manifests.Execution
	Type       manifests.Type
	ABI        manifests.ABI
	Entry      string
	Arguments  []string // the argv template
	Stdin      manifests.Stdin
	Stdout     manifests.Stdout
	Parameters json.RawMessage
	Context    []string
	Behavior   manifests.Behavior
	Requests   manifests.Permissions
	Limits     Limits

	Effective   []effectiveDecision
	Mounts      []effectiveMount
	Environment []string
	// Given and Denied are what is said of what the tool asks for, each in its canonical form, sorted.
	Given, Denied []string
}

type effectiveDecision struct{ Permission, Requested, Effective string }

type effectiveMount struct {
	Guest, Host string // Host is absolute and may be a template
	Access      manifests.Access
	Quota       manifests.Quota
}

// termsDigest returns the digest of a tool's terms. Of the grants, those count that hold for its module.
func (p *permit) termsDigest(m *manifests.Manifest, limits Limits, grants manifests.Grants) ([sha256.Size]byte, error) {
	t := terms{
		Name: m.Name, Execution: m.Execution, Type: m.Type, ABI: m.Module.ABI, Entry: m.Module.Entry,
		Stdin: m.Module.Stdin, Stdout: m.Module.Stdout, Parameters: m.ModelParameters, Context: m.Context,
		Behavior: m.Behavior, Requests: m.Permissions, Limits: limits,
	}
	for _, template := range m.Module.Args {
		t.Arguments = append(t.Arguments, template.String())
	}
	for _, d := range p.decisions {
		effective := d.Effective
		if effective != "" && (d.Permission == "network" || d.Permission == "secrets") {
			effective = "granted" // the grants say what, whose order a text for people keeps
		}
		t.Effective = append(t.Effective, effectiveDecision{d.Permission, d.Requested, effective})
	}
	if err := t.permitted(p, m, grants); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("runtime: %w", err)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("runtime: %w", err)
	}
	return sha256.Sum256(text), nil
}

// permitted adds what decisions, which are for people, do not say in full.
func (t *terms) permitted(p *permit, m *manifests.Manifest, grants manifests.Grants) error {
	for _, variable := range p.environment {
		t.Environment = append(t.Environment, strconv.Quote(variable))
	}
	slices.Sort(t.Environment)
	for _, mount := range p.mounts {
		host, err := filepath.Abs(mount.Host.String())
		if err != nil {
			return err
		}
		// Quoted, since JSON has no bytes that are not UTF-8: two paths would become one.
		t.Mounts = append(t.Mounts, effectiveMount{mount.Guest.String(), strconv.Quote(host), mount.Access, manifests.Quota(mount.Quota)})
	}
	given := slices.DeleteFunc(grants.Statements(), func(s manifests.Statement) bool { return !p.holds(s.Binding) })
	var denied []manifests.Statement
	for _, deny := range grants.Deny {
		denied = append(denied, deny.Statement())
	}
	var err error
	if t.Given, err = canonical(m, given); err != nil {
		return err
	}
	t.Denied, err = canonical(m, denied)
	return err
}

// canonical returns the statements that concern a tool, sorted and each once.
func canonical(m *manifests.Manifest, statements []manifests.Statement) ([]string, error) {
	var texts []string
	for _, s := range statements {
		if !s.Concerns(m) {
			continue
		}
		text, err := s.Canonical()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}
