package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caisson-run/caisson/manifests"
)

// ruleGrant is what flags can say of a rule that grants something.
type ruleGrant struct {
	Tools   []string // flags grant to all that ask
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

// ruleSource is what flags can say of a rule that is a key of the policy.
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

// flagsFor writes a rule that is missing in the operator's policy as flags, to be pasted into a
// shell, with placeholders for what the operator has to say. It is empty where flags cannot say
// all of it, or where any of it could be taken for syntax: the rule may be about what a guest
// chose.
func flagsFor(rule json.RawMessage) string {
	if manifests.PolicyLine(rule) == "" {
		return ""
	}
	var source ruleSource
	if exactly(rule, &source) {
		var flags []string
		for name, from := range source.Context {
			if from.From != manifests.Fixed || from.Value != nil {
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

// exactly reads a rule that holds nothing else.
func exactly(rule json.RawMessage, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(rule))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) == nil
}

func (g ruleGrant) flags() string {
	var flags []string
	for _, f := range g.Files {
		if f.Host != nil {
			return "" // somebody else's rule: ours leave it to the operator
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

// mountFlagFor is empty for a path that could be taken for syntax.
func mountFlagFor(guest string, access manifests.Access) string {
	if !onlyNames(guest, "/._-+@, ") {
		return ""
	}
	suffix, quote := "ro", ""
	if access == manifests.ReadWrite {
		suffix = "rw"
	}
	if !onlyNames(guest, "/._-") {
		quote = "'"
	}
	return fmt.Sprintf("--mount %s%s=HOSTDIR:%s%s", quote, guest, suffix, quote)
}

// onlyNames reports whether a text holds nothing but letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(others, r)
	})
}

// endpoint is where requests to a host go.
type endpoint struct {
	scheme string
	port   int
}

// endpointsOf returns an endpoint for each scheme and port; no ports are the scheme's own.
func endpointsOf(schemes []string, ports []int) []endpoint {
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

// flags returns a flag for each endpoint: a flag knows hosts, ports and schemes, and the usual
// methods.
func (r ruleRequests) flags() string {
	schemes := r.Schemes
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	var flags []string
	var covered []endpoint // by the flags so far: one without a scheme is for both
	for _, e := range endpointsOf(schemes, r.Ports) {
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

// flagValue leaves out what every reader of the flag fills in.
func (e endpoint) flagValue(host string) string {
	host = bracketed(host)
	if e.scheme == "http" {
		host = "http://" + host
	}
	if e.port != defaultPort(e.scheme) {
		host += fmt.Sprintf(":%d", e.port)
	}
	return host
}

// bracketed returns a host as it stands before a port.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// flag is empty where there are several origins, which one flag cannot say.
func (s ruleSecret) flag() string {
	if len(s.Schemes) > 1 || len(s.Ports) > 1 {
		return ""
	}
	host := "HOST"
	if s.Host != nil {
		host = bracketed(*s.Host)
	}
	quote := ""
	if strings.HasPrefix(host, "[") {
		quote = "'" // brackets are globs to a shell
	}
	for _, scheme := range s.Schemes {
		host = scheme + "://" + host
	}
	for _, port := range s.Ports {
		host += fmt.Sprintf(":%d", port)
	}
	return fmt.Sprintf("--secret %s%s=env:%s@%s%s", quote, s.Name, s.From.Env, host, quote)
}
