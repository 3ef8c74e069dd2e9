package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// errGrant is wrapped by errors in grants from flags. They say what to write.
var errGrant = errors.New("invalid grant")

// object is a JSON object to be encoded.
type object map[string]any

// asPolicy parses a policy made from flags, so that flags cannot grant anything that a file could
// not. It returns the policy's first problem, or nil.
func asPolicy(policy object) (*manifests.Policy, *manifests.Problem) {
	policy["schema"] = manifests.PolicyV1
	source, err := json.Marshal(policy)
	if err != nil {
		return nil, &manifests.Problem{Message: err.Error()}
	}
	read, err := manifests.ParsePolicy("flags.json", source)
	var invalid *manifests.Error
	switch {
	case errors.As(err, &invalid):
		return nil, &invalid.Problems[0]
	case err != nil:
		return nil, &manifests.Problem{Message: err.Error()}
	}
	return read, nil
}

// asGrant is like asPolicy for one grant.
func asGrant(key string, element any) (manifests.Grant, *manifests.Problem) {
	policy, problem := asPolicy(object{"grants": []object{{"tools": []string{"*"}, key: []any{element}}}})
	if problem != nil {
		return manifests.Grant{}, problem
	}
	return policy.Grants[0], nil
}

// parseNetwork parses the value of --allow-net: [SCHEME://]HOST[:PORT]. The grant includes all
// paths and the methods of RFC 9110 and RFC 5789 except CONNECT and TRACE. Without a scheme it
// includes https and http. Without a port it includes the default ports of the schemes. HOST may be
// *.NAME or *. An IPv6 address must be in brackets.
func parseNetwork(text string) (manifests.NetworkGrant, error) {
	const want = "[SCHEME://]HOST[:PORT], such as api.example.com, *.example.com, http://localhost:8080 or [::1]:8443"
	origin, message := parseOrigin(text)
	if message != "" {
		return manifests.NetworkGrant{}, fmt.Errorf("%w: %s; want %s", errGrant, message, want)
	}
	if len(origin.schemes) == 0 {
		origin.schemes = []string{"https", "http"}
	}
	grant, problem := asGrant("network", object{
		"host": origin.host, "ports": origin.ports, "schemes": origin.schemes,
		"methods": []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"},
	})
	if problem != nil {
		return manifests.NetworkGrant{}, fmt.Errorf("%w: %s; want %s", errGrant, hostMessage(problem), want)
	}
	network := grant.Network[0]
	network.Origin = "--allow-net " + text
	return network, nil
}

// parseCall parses the value of --allow-call: the name of a tool that other tools may call if they
// ask for it.
func parseCall(text string) (manifests.CallGrant, error) {
	grant, problem := asGrant("calls", text)
	if problem != nil {
		return manifests.CallGrant{}, fmt.Errorf("%w: %q is not the name of a tool; want NAME: 1 to 64 ASCII letters, digits, _ and -", errGrant, clip(text, 80))
	}
	call := grant.Calls[0]
	call.Origin = "--allow-call " + text
	return call, nil
}

// parseAsk parses the value of --ask: a tool's name, or a glob such as file_*, whose calls require
// approval.
func parseAsk(text string) (manifests.PolicyAsk, error) {
	policy, problem := asPolicy(object{"ask": []string{text}})
	if problem != nil {
		return manifests.PolicyAsk{}, fmt.Errorf("%w: %s; want GLOB, a tool's name or a glob such as file_*", errGrant, problem.Message)
	}
	ask := policy.Ask[0]
	ask.Origin = "--ask " + text
	return ask, nil
}

// parseApproval parses the value of --approve-tool: the name of a tool whose calls need no approval
// even though it is destructive. Globs are not allowed, so that a tool added later is not approved
// already.
func parseApproval(text string) (manifests.PolicyApproval, error) {
	if _, err := parseCall(text); err != nil {
		return manifests.PolicyApproval{}, err
	}
	return manifests.PolicyApproval{Binding: manifests.Binding{Origin: "--approve-tool " + text}, Tools: []string{text}}, nil
}

// parseSecret parses the value of --secret: NAME=env:VARIABLE@[SCHEME://]HOST[:PORT] or
// NAME=file:PATH@[SCHEME://]HOST[:PORT]. HOST is a single host. Without a scheme, the secret is
// sent only with https. The error does not repeat the text before the @, which may be the secret
// itself.
func parseSecret(text string) (manifests.SecretGrant, error) {
	grant, message := readSecret(text)
	if message != "" {
		const want = "NAME=env:VARIABLE@HOST or NAME=file:PATH@HOST, such as API_KEY=env:API_KEY@api.example.com"
		return manifests.SecretGrant{}, fmt.Errorf("%w: %s; want %s", errGrant, message, want)
	}
	return grant, nil
}

func readSecret(text string) (secret manifests.SecretGrant, message string) {
	name, rest, found := strings.Cut(text, "=")
	if !found {
		return secret, "there is no ="
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return secret, "there is no @ with the host that may receive the secret"
	}
	kind, source, _ := strings.Cut(rest[:at], ":")
	if kind != "env" && kind != "file" {
		return secret, "what follows the = begins with neither env: nor file:"
	}
	origin, message := parseOrigin(rest[at+1:])
	if message != "" {
		return secret, message
	}
	wanted := object{"name": name, "from": object{kind: source}, "host": origin.host, "ports": origin.ports}
	if len(origin.schemes) > 0 {
		wanted["schemes"] = origin.schemes
	}
	grant, problem := asGrant("secrets", wanted)
	if problem != nil {
		return secret, secretMessage(problem, kind)
	}
	secret = grant.Secrets[0]
	// Guests see receipts, so they do not contain the name of the file.
	secret.Origin = "--secret " + name + "=…@" + rest[at+1:]
	if kind == "file" {
		secret.From.File = source // as written, since there is no file that it could be relative to
	}
	return secret, ""
}

// secretMessage says what is wrong with a secret, without repeating what may be its value.
func secretMessage(problem *manifests.Problem, kind string) string {
	switch {
	case strings.HasSuffix(problem.Path, ".name"):
		return "the name before the = must be upper-case letters, digits and _, starting with a letter"
	case strings.HasSuffix(problem.Path, ".from.env"):
		return "what follows env: is not the name of a variable"
	case strings.Contains(problem.Path, ".from"):
		return "what follows " + kind + ": is not a path"
	}
	return hostMessage(problem)
}

// hostMessage says what is wrong with a host. In the part of a flag that says where requests go,
// the policy's reader can find no other problem.
func hostMessage(problem *manifests.Problem) string { return "the host " + problem.Message }

// flagOrigin is the part of a flag that says where requests go.
type flagOrigin struct {
	host    string   // not yet parsed
	ports   []int    // empty if the flag has none
	schemes []string // empty if the flag has none
}

func parseOrigin(text string) (origin flagOrigin, message string) {
	origin.ports = []int{}
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		if scheme != "https" && scheme != "http" {
			return origin, fmt.Sprintf("the scheme %q is neither https nor http", clip(scheme, 80))
		}
		origin.schemes, rest = []string{scheme}, after
	}
	host, port, message := splitPort(rest)
	if message != "" {
		return origin, message
	}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || strconv.FormatUint(number, 10) != port {
			return origin, fmt.Sprintf("the port %q is not a whole number from 1 to 65535", clip(port, 80))
		}
		origin.ports = []int{int(number)}
	}
	origin.host = host
	return origin, ""
}

// splitPort splits HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
func splitPort(text string) (host, port, message string) {
	if inside, found := strings.CutPrefix(text, "["); found {
		host, after, closed := strings.Cut(inside, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", "", fmt.Sprintf("%q has no IPv6 address in brackets", clip(text, 80))
		}
		port, colon := strings.CutPrefix(after, ":")
		if after != "" && (!colon || port == "") {
			return "", "", fmt.Sprintf("%q has no port after the brackets", clip(text, 80))
		}
		return host, port, ""
	}
	if host, err := permission.ParseOneHost(text); err == nil && host.Address().IsValid() && strings.Contains(text, ":") {
		return "", "", fmt.Sprintf("an IPv6 address must be in brackets: [%s]", clip(text, 80))
	}
	host, port, found := strings.Cut(text, ":")
	if found && port == "" {
		return "", "", fmt.Sprintf("%q has no port after the colon", clip(text, 80))
	}
	return host, port, ""
}
