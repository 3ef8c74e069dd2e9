package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/tool"
)

// Remedy has the rules that would allow a denied request: a line of a manifest, flags, and a line of a policy. An empty
// field is not missing or cannot be expressed.
type Remedy struct{ Manifest, Flags, Policy string }

// RemedyOf returns the rules that would allow a denied request of a tool whose manifest is in a file.
func RemedyOf(allow tool.Allow, file string) Remedy {
	line := manifests.ManifestLine(allow.Manifest)
	if line != "" && extism.IsManifest(file) {
		line = extismLine(allow.Manifest, line)
	}
	return Remedy{line, flagsFor(allow.Grant), manifests.PolicyLine(allow.Grant)}
}

// Hints says what to add where. manifest begins a sentence. policy is the operator's file.
func (r Remedy) Hints(manifest, policy string) []string {
	var hints []string
	if r.Manifest != "" {
		hints = append(hints, manifest+" must request it: "+r.Manifest)
	}
	start := "allow it in "
	if r.Flags != "" {
		hints = append(hints, "allow it with "+r.Flags)
		start = "or in "
	}
	switch {
	case r.IsGrant():
		hints = append(hints, start+policy+", under grants: "+r.Policy)
	case r.Policy != "":
		hints = append(hints, start+policy+": "+r.Policy)
	}
	return hints
}

// IsGrant reports whether the policy lacks an element of its grants rather than a key.
func (r Remedy) IsGrant() bool { return strings.HasPrefix(r.Policy, "- ") }

// extismLine returns the members missing in a manifest of Extism. line is what a manifest of Caisson would have.
func extismLine(rule json.RawMessage, line string) string {
	var requests struct {
		Network []struct{ Host string }
		Files   []struct {
			Path   string
			Access manifests.Access
		}
	}
	var members []string
	if json.Unmarshal(rule, &requests) == nil {
		var hosts, paths []string
		for _, r := range requests.Network {
			hosts = append(hosts, fmt.Sprintf("%q", r.Host))
		}
		for _, r := range requests.Files {
			host := "HOSTDIR"
			if r.Access != manifests.AccessReadWrite {
				host = "ro:HOSTDIR"
			}
			paths = append(paths, fmt.Sprintf("%q: %q", host, r.Path))
		}
		if hosts != nil {
			members = append(members, fmt.Sprintf(`"allowed_hosts": [%s]`, strings.Join(hosts, ", ")))
		}
		if paths != nil {
			members = append(members, fmt.Sprintf(`"allowed_paths": {%s}`, strings.Join(paths, ", ")))
		}
	}
	if members == nil {
		return line + ", which needs a manifest of Caisson: those of Extism cannot have it"
	}
	return strings.Join(members, ", ")
}

// ApprovalPermission is the permission in the receipt of a call that was not approved.
const ApprovalPermission = "approval"

// Limit is a limit that a call can exceed: its key in manifests, its member in those of Extism, and the flag that sets
// it. All but the key may be empty.
type Limit struct{ Key, member, Flag string }

// Limits are the limits, by the kind of failure of a call that exceeds one.
var Limits = map[tool.Kind]Limit{
	tool.Deadline: {"limits.timeout", "timeout_ms", "--timeout DURATION"},
	tool.Memory:   {"limits.memory", "memory.max_pages", "--memory SIZE"},
	tool.Fuel:     {"limits.fuel", "", "--fuel N"},
	tool.Output:   {"limits.output", "", ""},
}

// Raise says to raise the limit in a manifest, which is that of a file, at a place.
func (l Limit) Raise(file, place string) string {
	switch {
	case !extism.IsManifest(file):
		return "raise " + l.Key + " in " + place
	case l.member == "":
		return "raise " + l.Key + " in a manifest of Caisson: those of Extism, such as " + place + ", cannot have it"
	}
	return "raise " + l.member + " in " + place
}

// FlagMethods are the methods that --allow-net grants: those of RFC 9110 and RFC 5789 except CONNECT and TRACE.
var FlagMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// ruleGrant is the part of a grant rule that flags can express.
type ruleGrant struct {
	Tools   []string // ignored, since flags grant to all tools that request them
	Calls   []string
	Context []string
	Files   []struct {
		Path   string
		Host   *string
		Access manifests.Access
	}
	Network []ruleRequests
	Secrets []ruleSecret
}

// ruleSource is the part of a policy key rule that flags can express.
type ruleSource struct {
	Context map[string]struct {
		From  manifests.ContextOrigin
		Value *string
	}
}

type ruleRequests struct {
	Host                    string
	Ports                   []int
	Methods, Schemes, Paths []string
}

type ruleSecret struct {
	Name    string
	From    struct{ Env string }
	Host    *string
	Ports   []int
	Schemes []string
}

// flagsFor returns a missing rule of the policy as flags for a shell, with placeholders. It returns "" if flags cannot
// express all of it, or any could be read as shell syntax: a guest may have chosen the rule.
func flagsFor(rule json.RawMessage) string {
	if manifests.PolicyLine(rule) == "" {
		return ""
	}
	var source ruleSource
	if exactly(rule, &source) {
		var flags []string
		for name, from := range source.Context {
			if from.From != manifests.FromFixed || from.Value != nil {
				return ""
			}
			flags = append(flags, contextFlagFor(name))
		}
		slices.Sort(flags)
		return strings.Join(flags, " ")
	}
	var grant ruleGrant
	if !exactly(rule, &grant) {
		return ""
	}
	return grant.flags()
}

// exactly decodes a rule and reports whether it has no other fields.
func exactly(rule json.RawMessage, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(rule))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) == nil
}

func (g ruleGrant) flags() string {
	var flags []string
	for _, f := range g.Files {
		if f.Host != nil {
			return "" // not Caisson's rule, which leaves the host directory to the operator
		}
		flags = append(flags, mountFlagFor(f.Path, f.Access))
	}
	for _, requests := range g.Network {
		flags = append(flags, requests.flags())
	}
	for _, secret := range g.Secrets {
		flags = append(flags, secret.flag())
	}
	for _, name := range g.Context {
		flags = append(flags, contextFlagFor(name))
	}
	for _, name := range g.Calls {
		flags = append(flags, "--allow-call "+name)
	}
	if slices.Contains(flags, "") {
		return ""
	}
	return strings.Join(flags, " ")
}

func contextFlagFor(name string) string { return "--context " + name + "=VALUE" }

// mountFlagFor returns "" for a path that could be read as shell syntax.
func mountFlagFor(guest string, access manifests.Access) string {
	if !onlyNames(guest, "/._-+@, ") {
		return ""
	}
	suffix, quote := "ro", ""
	if access == manifests.AccessReadWrite {
		suffix = "rw"
	}
	if !onlyNames(guest, "/._-") {
		quote = "'"
	}
	return fmt.Sprintf("--mount %s%s=HOSTDIR:%s%s", quote, guest, suffix, quote)
}

// onlyNames reports whether a text has only letters, digits and the given others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(others, r)
	})
}

// endpoint is a scheme and a port of a host.
type endpoint struct {
	scheme string
	port   int
}

// endpointsOf returns an endpoint for each scheme and port, which are https and the default ones if there are none.
func endpointsOf(schemes []string, ports []int) []endpoint {
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	var endpoints []endpoint
	for _, scheme := range schemes {
		own := ports
		if len(own) == 0 {
			own = []int{permission.DefaultPort(scheme)}
		}
		for _, port := range own {
			endpoints = append(endpoints, endpoint{scheme, port})
		}
	}
	return endpoints
}

// flags returns a flag for each endpoint. Flags have hosts, ports and schemes, and allow the usual methods.
func (r ruleRequests) flags() string {
	if slices.ContainsFunc(r.Methods, func(method string) bool { return !slices.Contains(FlagMethods, method) }) {
		return ""
	}
	var flags []string
	var covered []endpoint // by the flags so far
	for _, e := range endpointsOf(r.Schemes, r.Ports) {
		if slices.Contains(covered, e) {
			continue
		}
		value := e.flagValue(r.Host)
		if strings.ContainsAny(value, "*[") {
			value = "'" + value + "'" // shells expand these
		}
		flags, covered = append(flags, "--allow-net "+value), append(covered, e)
		if e.scheme == "https" { // a flag without a scheme covers both, and without a port the default of each
			if e.port == permission.DefaultPort("https") {
				e.port = permission.DefaultPort("http")
			}
			covered = append(covered, endpoint{"http", e.port})
		}
	}
	return strings.Join(flags, " ")
}

// flagValue returns an origin as flags have it, without defaults.
func (e endpoint) flagValue(host string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.scheme == "http" {
		host = "http://" + host
	}
	if e.port != permission.DefaultPort(e.scheme) {
		host += fmt.Sprintf(":%d", e.port)
	}
	return host
}

// flag returns "" if there are several origins, because one flag has only one.
func (s ruleSecret) flag() string {
	host := "HOST"
	if s.Host != nil {
		host = *s.Host
	}
	endpoints := endpointsOf(s.Schemes, s.Ports)
	if len(endpoints) > 1 {
		return ""
	}
	value := fmt.Sprintf("%s=env:%s@%s", s.Name, s.From.Env, endpoints[0].flagValue(host))
	if strings.Contains(value, "[") {
		value = "'" + value + "'" // brackets are globs to a shell
	}
	return "--secret " + value
}
