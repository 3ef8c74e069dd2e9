package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/tool"
)

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

// flagsFor returns a rule that is missing in the operator's policy as flags for a shell, with
// placeholders for what the operator must fill in. It returns "" if flags cannot express all of it
// or if any of it could be read as shell syntax. The content of the rule may have been chosen by a
// guest.
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

// endpointsOf returns an endpoint for each scheme and port. Without schemes it uses https, and
// without ports the default ports.
func endpointsOf(schemes []string, ports []int) []endpoint {
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	var endpoints []endpoint
	for _, scheme := range schemes {
		own := ports
		if len(own) == 0 {
			own = []int{defaultPort(scheme)}
		}
		for _, port := range own {
			endpoints = append(endpoints, endpoint{scheme, port})
		}
	}
	return endpoints
}

func defaultPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

// flags returns a flag for each endpoint. Flags have hosts, ports and schemes, and always allow the
// usual methods.
func (r ruleRequests) flags() string {
	var flags []string
	var covered []endpoint // covered by the flags so far; a flag without a scheme covers both
	for _, e := range endpointsOf(r.Schemes, r.Ports) {
		if slices.Contains(covered, e) {
			continue
		}
		value := e.flagValue(r.Host)
		granted, err := parseNetwork(value)
		if err != nil || slices.ContainsFunc(r.Methods, func(method string) bool { return !slices.Contains(granted.Methods, method) }) {
			return ""
		}
		if strings.ContainsAny(value, "*[") {
			value = "'" + value + "'" // shells expand these
		}
		flags, covered = append(flags, "--allow-net "+value), append(covered, endpointsOf(granted.Schemes, granted.Ports)...)
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
	if e.port != defaultPort(e.scheme) {
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

// remedy is what would allow a denied request: a line of a manifest, flags, and a line of a policy.
// An empty field is not missing or cannot be expressed.
type remedy struct{ manifest, flags, policy string }

// remedyOf returns what would allow a denied request of a tool whose manifest is in a file.
func remedyOf(allow tool.Allow, file string) remedy {
	line := manifests.ManifestLine(allow.Manifest)
	if line != "" && extism.IsManifest(file) {
		line = extismLine(allow.Manifest, line)
	}
	return remedy{line, flagsFor(allow.Grant), manifests.PolicyLine(allow.Grant)}
}

// extismLine returns the members that are missing in a manifest of Extism. line is what a manifest of
// Caisson would have.
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

// hints says what to add where. manifest begins a sentence. policy is the operator's file.
func (r remedy) hints(manifest, policy string) []string {
	var hints []string
	if r.manifest != "" {
		hints = append(hints, manifest+" must request it: "+r.manifest)
	}
	start := "allow it in "
	if r.flags != "" {
		hints = append(hints, "allow it with "+r.flags)
		start = "or in "
	}
	switch {
	case r.isGrant():
		hints = append(hints, start+policy+", under grants: "+r.policy)
	case r.policy != "":
		hints = append(hints, start+policy+": "+r.policy)
	}
	return hints
}

// isGrant reports whether the policy lacks an element of its grants rather than a key.
func (r remedy) isGrant() bool { return strings.HasPrefix(r.policy, "- ") }

// availability is the permission in the receipt of a tool that lacks a required setting.
const availability = "availability"

// callPermission is the permission to call another tool.
const callPermission = "tools"

// secretPermission is the permission to have a secret sent.
const secretPermission = "secrets"

// approvalPermission is the permission in the receipt of a call that was not approved.
const approvalPermission = "approval"

// withheld returns what was granted to a tool but is not effective, such as a secret whose variable
// is not set, and how to see the rest.
func (h *host) withheld(name string) []string {
	var hints []string
	if entry, ok := h.registry.Get(name); ok {
		if h.lacksInterpreter(entry.Manifest) {
			return []string{toRun("caisson interpreters install " + string(entry.Manifest.Module.Language))}
		}
		if t, ok := entry.Tool.(*runtime.Tool); ok {
			for _, d := range t.Decisions() {
				if d.Granted != "" && d.Effective == "" {
					hints = append(hints, fmt.Sprintf("%s: %s, but %s", d.Permission, d.Granted, d.Reason))
				}
			}
		}
	}
	hints = append(hints, h.unappliedHints()...)
	return append(hints, toRun(h.inspectCommand(name, toolFlagNames))+" to see what it requests and what would allow it")
}

// denialHints says what would allow the last denial, which the error names.
func (h *host) denialHints(name string, denials []tool.Denial) []string {
	if len(denials) == 0 {
		return nil
	}
	last := denials[len(denials)-1]
	switch last.Permission {
	case availability:
		return append(h.withheld(name), h.operator.unusedFile()...)
	case approvalPermission:
		return h.approvalHints(name)
	}
	if _, found := h.registry.Get(last.Value); last.Permission == callPermission && !found {
		return []string{fmt.Sprintf("there is no tool %s; load it with --tools DIR", last.Value)}
	}
	file := ""
	if entry, ok := h.registry.Get(name); ok {
		file = entry.Manifest.File
	}
	remedy, note := h.operator.contextNote(last, file)
	hints := append(remedy.hints("the manifest of "+name, h.operator.file()), note...)
	others := -1
	for _, d := range denials {
		if !d.Note {
			others++
		}
	}
	if others > 0 {
		hints = append(hints, count(others, "more request")+" were denied; --json shows all")
	}
	if len(hints) > 0 {
		hints = append(hints, h.unappliedHints()...)
	}
	return append(hints, h.operator.unusedFile()...)
}

// approvalHints says how to let calls of a tool run that were not approved.
func (h *host) approvalHints(name string) []string {
	entry, ok := h.registry.Get(name)
	if !ok || h.operator.asks(entry.Manifest) {
		return nil
	}
	return []string{
		"run all of its calls without approval with --approve-tool " + entry.Name,
		fmt.Sprintf("or in %s: approve: [{tools: [%s]}]", h.operator.file(), entry.Name),
	}
}

// inspectCommand returns the command that inspects a tool, with the given flags of this one.
func (h *host) inspectCommand(name string, flags []string) string {
	return h.options.again("caisson inspect "+quoted(name), flags...)
}
