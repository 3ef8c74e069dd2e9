package runtime

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
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
	Network     []string // the grants, each as JSON, in their order as texts; so below
	Secrets     []string
	Denied      []string // of the network and of secrets: decisions leave out what is denied in part
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
		host := mount.Host.String()
		if err := absolute(&host); err != nil {
			return err
		}
		t.Mounts = append(t.Mounts, effectiveMount{mount.Guest.String(), host, mount.Access, manifests.Quota(mount.Quota)})
	}
	var err error
	if len(m.Permissions.Network) > 0 {
		if t.Network, err = sorted(held(p, grants.Network, func(g manifests.NetworkGrant) manifests.Binding { return g.Binding }), anonymousNetwork); err != nil {
			return err
		}
	}
	if len(m.Permissions.Secrets) > 0 {
		if t.Secrets, err = sorted(held(p, grants.Secrets, func(g manifests.SecretGrant) manifests.Binding { return g.Binding }), anonymousSecret); err != nil {
			return err
		}
	}
	denials := slices.DeleteFunc(slices.Clone(grants.Deny), func(d manifests.Deny) bool {
		return (d.Network == nil || len(m.Permissions.Network) == 0) && (d.Secret == "" || len(m.Permissions.Secrets) == 0)
	})
	t.Denied, err = sorted(denials, func(d manifests.Deny) (manifests.Deny, error) {
		d.Origin = ""
		if d.Network != nil {
			n := *d.Network
			n.Host = canonicalHost(n.Host)
			n.Ports, n.Methods, n.Schemes, n.Paths = inOrder(n.Ports), inOrder(n.Methods), inOrder(n.Schemes), inOrder(n.Paths)
			n.Addresses = networksInOrder(n.Addresses)
			d.Network = &n
		}
		return d, nil
	})
	return err
}

// held returns the grants that hold for the permit's module.
func held[G any](p *permit, grants []G, binding func(G) manifests.Binding) []G {
	return slices.DeleteFunc(slices.Clone(grants), func(g G) bool { return !p.holds(binding(g)) })
}

// anonymousNetwork returns a grant without where it is written, in the one form that all have which
// give the same hosts, ports, methods, schemes, paths and addresses as lists.
func anonymousNetwork(g manifests.NetworkGrant) (manifests.NetworkGrant, error) {
	g.Binding = manifests.Binding{}
	g.Host = canonicalHost(g.Host)
	g.Ports, g.Methods, g.Schemes, g.Paths = inOrder(g.Ports), inOrder(g.Methods), inOrder(g.Schemes), inOrder(g.Paths)
	g.Addresses = networksInOrder(g.Addresses)
	if endpoint, err := permission.ParseEndpoint(g.Connect); err == nil {
		g.Connect = endpoint.String()
	}
	return g, absolute(&g.Authorities)
}

// anonymousSecret does the same.
func anonymousSecret(g manifests.SecretGrant) (manifests.SecretGrant, error) {
	g.Binding = manifests.Binding{}
	g.Host = canonicalHost(g.Host)
	g.Ports, g.Schemes = inOrder(g.Ports), inOrder(g.Schemes)
	for _, path := range []*string{&g.From.File, &g.From.Age, &g.From.Identity} {
		if err := absolute(path); err != nil {
			return g, err
		}
	}
	return g, nil
}

// canonicalHost returns a host's one spelling. What is none stays as it is.
func canonicalHost(text string) string {
	if host, err := permission.ParseHost(text); err == nil {
		return host.String()
	}
	return text
}

// inOrder returns a list whose order does not matter, sorted and each element once.
func inOrder[E cmp.Ordered](list []E) []E {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func networksInOrder(list []netip.Prefix) []netip.Prefix {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}

// absolute makes a path mean the same in another working directory. Like a variable it is quoted,
// since JSON has no bytes that are not UTF-8: two paths would become one.
func absolute(path *string) error {
	if *path == "" {
		return nil
	}
	whole, err := filepath.Abs(*path)
	*path = strconv.Quote(whole)
	return err
}

// sorted returns elements as JSON, in the order of these texts, each once.
func sorted[E any](elements []E, anonymous func(E) (E, error)) ([]string, error) {
	var texts []string
	for _, element := range elements {
		bare, err := anonymous(element)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(bare)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}
