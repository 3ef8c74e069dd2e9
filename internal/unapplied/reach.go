package unapplied

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs/network"
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
