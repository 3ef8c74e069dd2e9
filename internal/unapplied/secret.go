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
