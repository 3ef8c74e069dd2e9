package unapplied

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// secret adds a finding if none of the tools that ask for a granted secret is granted the network at
// the origin to which the secret is bound. The secret is then never sent.
func (a *applied) secret(at string, grant manifests.SecretGrant, origin string, receivers []*manifests.Manifest) {
	asking := slices.DeleteFunc(slices.Clone(receivers), func(m *manifests.Manifest) bool {
		return !slices.ContainsFunc(m.Permissions.Secrets, func(s manifests.SecretPermission) bool { return s.Name == grant.Name && s.Host == grant.Host })
	})
	if len(asking) == 0 || slices.ContainsFunc(asking, func(m *manifests.Manifest) bool { return a.reaches(m, grant) }) {
		return
	}
	a.add(at, cmp.Or(grant.Origin, origin), fmt.Sprintf("the secret %s is never sent: no network grant lets %s reach %s", grant.Name, asking[0].Name, originsOf(grant.Schemes, grant.Ports, grant.Host)[0]),
		fmt.Sprintf("grant it network: [{host: %s}], or correct the secret's host", grant.Host))
}

// reaches reports whether some policy grants a tool requests to an origin of a secret.
func (a *applied) reaches(m *manifests.Manifest, secret manifests.SecretGrant) bool {
	host, err := permission.ParseOneHost(secret.Host)
	if err != nil {
		return true // reported elsewhere
	}
	wanted := originsOf(secret.Schemes, secret.Ports, "")
	for _, policy := range a.policies {
		for _, grant := range policy.For(m.Name, m.File).Network {
			given, err := permission.ParseHost(grant.Host)
			if err != nil || !given.Matches(host) {
				continue
			}
			if slices.ContainsFunc(originsOf(grant.Schemes, grant.Ports, ""), func(origin string) bool { return slices.Contains(wanted, origin) }) {
				return true
			}
		}
	}
	return false
}

// originsOf returns the origins that schemes and ports stand for. Without schemes it is https, and
// without ports each scheme's own.
func originsOf(schemes []string, ports []int, host string) []string {
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	var all []string
	for _, scheme := range schemes {
		own := ports
		if len(own) == 0 {
			own = []int{map[string]int{"http": 80, "https": 443}[scheme]}
		}
		for _, port := range own {
			all = append(all, scheme+"://"+net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	return all
}
