package unapplied

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// requests adds a finding if a grant is for a host that its tools ask for, but for none of their requests there.
func (a *applied) requests(at string, grant manifests.NetworkGrant, origin string, receivers []*manifests.Manifest) {
	element := manifests.Grants{Network: []manifests.NetworkGrant{grant}}.Elements()[0]
	var asking []string
	for _, m := range receivers {
		if !element.Concerns(m) {
			continue
		}
		meets, err := meetsRequests(m, grant.NetworkPermission)
		if err != nil || meets {
			return // an error is reported elsewhere
		}
		asking = append(asking, m.Name)
	}
	if len(asking) > 0 {
		a.add(at, cmp.Or(grant.Origin, origin),
			fmt.Sprintf("it gives nothing, because no tool that it applies to asks for requests such as %s",
				grant.NetworkPermission),
			fmt.Sprintf("grant methods, schemes, ports and paths that its manifest requests; caisson inspect %s shows them",
				asking[0]))
	}
}

// meetsRequests reports whether a grant gives a tool any of the requests that it asks for.
func meetsRequests(m *manifests.Manifest, granted manifests.NetworkPermission) (bool, error) {
	client, err := network.New(network.Options{Tool: m.Name, Requests: m.Permissions.Network,
		Grants: []manifests.NetworkGrant{{NetworkPermission: granted}}})
	if err != nil {
		return false, err
	}
	defer client.Close() // it has sent nothing
	for _, decision := range client.Decisions() {
		if decision.Effective != "" {
			return true, nil
		}
	}
	return false, nil
}

// placeholders adds a finding for each context value in a host path that none of the tools that ask for it has.
func (a *applied) placeholders(at string, grant manifests.FileGrant, origin string, receivers []*manifests.Manifest) {
	var has []string
	asked := false
	for _, m := range receivers {
		if slices.ContainsFunc(m.Permissions.Files, func(p manifests.FilePermission) bool { return p.Path == grant.Path }) {
			asked, has = true, append(has, m.Context...)
		}
	}
	for _, key := range grant.Host.Keys() {
		if !asked || slices.Contains(has, key) {
			continue
		}
		fix := "add the name to context in the manifest, or write a path without it"
		if slices.Sort(has); len(has) > 0 {
			fix = "write one that a manifest has under context, such as {" + strings.Join(slices.Compact(has), "} or {") + "}"
		}
		a.add(at, cmp.Or(grant.Origin, origin),
			fmt.Sprintf("no tool that it applies to has the context value %s, which the folder %s needs; their calls are denied",
				key, grant.Host), fix)
	}
}

// secret adds a finding if a granted secret is never sent: its tools may send no request to its origin.
func (a *applied) secret(at string, grant manifests.SecretGrant, origin string, receivers []*manifests.Manifest) {
	var first *unreached
	for _, m := range receivers {
		if !slices.ContainsFunc(m.Permissions.Secrets,
			func(s manifests.SecretPermission) bool { return s.Name == grant.Name && s.Host == grant.Host }) {
			continue
		}
		u := &unreached{options: a.networkOf(m), secret: grant}
		if u.reaches(u.options) {
			return
		}
		first = cmp.Or(first, u)
	}
	if first != nil {
		why, fix := first.why()
		a.add(at, cmp.Or(grant.Origin, origin), fmt.Sprintf("the secret %s is never sent: %s", grant.Name, why), fix)
	}
}

// networkOf returns what decides a tool's requests: all that its manifest, the policies and the profile say.
func (a *applied) networkOf(m *manifests.Manifest) network.Options {
	options := network.Options{Tool: m.Name, Requests: m.Permissions.Network}
	if a.profile.NoNetwork {
		options.NoNetwork = a.profile.Name
	}
	for _, policy := range a.policies {
		given := policy.For(m.Name, m.File)
		options.Grants = append(options.Grants, given.Network...)
		options.Deny = append(options.Deny, given.Deny...)
	}
	if slices.ContainsFunc(options.Grants, func(g manifests.NetworkGrant) bool { return g.SHA256 != "" }) {
		options.Module = digestOf(m)
	}
	return options
}

// unreached is a secret that a tool can never send.
type unreached struct {
	options network.Options
	secret  manifests.SecretGrant
}

// reaches reports whether options allow any request to the secret's origin, or are invalid, which others report.
func (u *unreached) reaches(options network.Options) bool {
	client, err := network.New(options)
	if err != nil {
		return true
	}
	defer client.Close() // it has sent nothing
	return client.Reaches(u.secret.Host, u.secret.Schemes, u.secret.Ports)
}

// why returns the first reason that would remain if the others were removed, and what to do about it.
func (u *unreached) why() (reason, fix string) {
	tool, origin := u.options.Tool, originOf(u.secret)
	if u.options.NoNetwork != "" {
		return fmt.Sprintf("the profile %s allows no network", u.options.NoNetwork),
			"choose another profile, or remove the secret"
	}
	granting := u.options
	granting.Deny, granting.Grants = nil,
		[]manifests.NetworkGrant{{NetworkPermission: u.any(methodsOf(u.options.Requests, nil))}}
	if !u.reaches(granting) {
		return fmt.Sprintf("the manifest of %s asks for no request to %s", tool, origin),
			"correct the secret's host, schemes or ports"
	}
	for i := range u.options.Deny {
		without := u.options
		without.Deny = slices.Delete(slices.Clone(u.options.Deny), i, i+1)
		if u.reaches(without) {
			return fmt.Sprintf("%s denies %s every request to %s", cmp.Or(u.options.Deny[i].Origin, "a denial"), tool, origin),
				"narrow the denial, or remove the secret"
		}
	}
	asking := u.options
	asking.Deny, asking.Requests = nil, []manifests.NetworkPermission{u.any(methodsOf(nil, u.options.Grants))}
	if undenied := (network.Options{Tool: tool, Module: u.options.Module, Requests: u.options.Requests,
		Grants: u.options.Grants}); u.reaches(undenied) {
		return fmt.Sprintf("denials take every request to %s from %s", origin, tool), "narrow them, or remove the secret"
	}
	if u.reaches(asking) {
		return fmt.Sprintf("no grant at %s has a method and path that %s asks for", origin, tool),
			fmt.Sprintf("grant methods and paths that its manifest requests; caisson inspect %s shows them", tool)
	}
	return fmt.Sprintf("no network grant lets %s reach %s", tool, origin),
		"add to grants: " + u.grantLine() + ", or correct the secret's host"
}

// grantLine returns the grant, as in a policy, that lets the tool reach the secret's origin.
func (u *unreached) grantLine() string {
	wanted := manifests.NetworkGrant{NetworkPermission: u.any(nil)}
	rule := manifests.Grants{Network: []manifests.NetworkGrant{wanted}}.Rule(u.options.Tool)
	return strings.TrimPrefix(manifests.PolicyLine(rule), "- ")
}

// any returns the permission for every path at the secret's origin.
func (u *unreached) any(methods []string) manifests.NetworkPermission {
	return manifests.NetworkPermission{Host: u.secret.Host, Schemes: u.secret.Schemes, Ports: u.secret.Ports,
		Methods: methods}
}

func methodsOf(requests []manifests.NetworkPermission, grants []manifests.NetworkGrant) []string {
	methods := []string{"GET"} // the default
	for _, r := range requests {
		methods = append(methods, r.Methods...)
	}
	for _, g := range grants {
		methods = append(methods, g.Methods...)
	}
	return methods
}

// originOf returns the first origin of a secret, with the defaults of schemes and ports.
func originOf(secret manifests.SecretGrant) string {
	scheme := "https"
	if len(secret.Schemes) > 0 {
		scheme = secret.Schemes[0]
	}
	port := permission.DefaultPort(scheme)
	if len(secret.Ports) > 0 {
		port = secret.Ports[0]
	}
	return scheme + "://" + net.JoinHostPort(secret.Host, strconv.Itoa(port))
}
