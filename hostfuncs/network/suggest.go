package network

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// suggestFlags returns the flags that grant a permission, or "" where none do: a flag knows
// hosts, ports and schemes, and the usual methods.
func suggestFlags(wanted manifests.NetworkPermission) string {
	asked, err := readRule(wanted)
	if err != nil {
		return ""
	}
	var flags []string
	var covered []endpoint // by the flags so far: one without a scheme is for both
	for _, e := range asked.endpoints {
		if slices.Contains(covered, e) {
			continue
		}
		value := flagValue(wanted.Host, e)
		granted, err := manifests.ParseNetworkFlag(value)
		if err != nil {
			return ""
		}
		given, err := readRule(granted.NetworkPermission)
		part := rule{host: asked.host, endpoints: []endpoint{e}, methods: asked.methods, paths: asked.paths}
		if err != nil || !given.Covers(&part) {
			return ""
		}
		if strings.ContainsAny(value, "*[") {
			value = "'" + value + "'" // shells expand these
		}
		flags, covered = append(flags, "--allow-net "+value), append(covered, given.endpoints...)
	}
	return strings.Join(flags, " ")
}

// flagValue leaves out what every reader of the flag fills in.
func flagValue(host string, e endpoint) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.scheme == "http" {
		host = "http://" + host
	}
	if e.port != defaultPort(e.scheme) {
		host += ":" + strconv.Itoa(e.port)
	}
	return host
}

// suggestAddresses returns an element of "grants:" for a host in a network of one's own.
func suggestAddresses(tool string, wanted manifests.NetworkPermission, network prefix) string {
	text, isGrant := strings.CutSuffix(manifests.SuggestGrant(tool, wanted), "}]}")
	if !isGrant {
		return ""
	}
	return text + ", addresses: [" + strconv.Quote(network.String()) + "]}]}"
}
