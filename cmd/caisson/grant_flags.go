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

// errGrant is what failures to read a grant from a flag wrap. They say what to write.
var errGrant = errors.New("invalid grant")

// object is JSON in the making.
type object map[string]any

// asPolicy reads a policy that flags make, so that they grant nothing that a file could not. The
// problem is the first that it has; nil where there is none.
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

// asGrant is asPolicy for one grant.
func asGrant(key string, element any) (manifests.Grant, *manifests.Problem) {
	policy, problem := asPolicy(object{"grants": []object{{"tools": []string{"*"}, key: []any{element}}}})
	if problem != nil {
		return manifests.Grant{}, problem
	}
	return policy.Grants[0], nil
}

// parseNetwork reads what follows --allow-net: [SCHEME://]HOST[:PORT]. The grant is for
// all paths and for the methods of RFC 9110 and RFC 5789 but CONNECT and TRACE; without a
// scheme for https and http; without a port for the schemes' own. HOST may be *.NAME or *,
// and an IPv6 address stands in brackets.
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

// parseCall reads what follows --allow-call: the name of a tool, which tools that ask for it
// may then call.
func parseCall(text string) (manifests.CallGrant, error) {
	grant, problem := asGrant("calls", text)
	if problem != nil {
		return manifests.CallGrant{}, fmt.Errorf("%w: %q is not the name of a tool; want NAME, of 1 to 64 letters, digits, _ and - of ASCII", errGrant, clip(text, 80))
	}
	call := grant.Calls[0]
	call.Origin = "--allow-call " + text
	return call, nil
}

// parseAsk reads what follows --ask: the name of a tool, or a glob such as file_*, whose calls
// wait for approval.
func parseAsk(text string) (manifests.PolicyAsk, error) {
	policy, problem := asPolicy(object{"ask": []string{text}})
	if problem != nil {
		return manifests.PolicyAsk{}, fmt.Errorf("%w: %s; want GLOB, a tool's name or a glob such as file_*", errGrant, problem.Message)
	}
	ask := policy.Ask[0]
	ask.Origin = "--ask " + text
	return ask, nil
}

// parseApproval reads what follows --approve-tool: the name of a tool, whose calls need no
// approval although it is destructive. There are no globs: a tool that comes later should not be
// approved of already.
func parseApproval(text string) (manifests.PolicyApproval, error) {
	if _, err := parseCall(text); err != nil {
		return manifests.PolicyApproval{}, err
	}
	return manifests.PolicyApproval{Binding: manifests.Binding{Origin: "--approve-tool " + text}, Tools: []string{text}}, nil
}

// parseSecret reads what follows --secret: NAME=env:VARIABLE@[SCHEME://]HOST[:PORT] or
// NAME=file:PATH@[SCHEME://]HOST[:PORT], where HOST is one host. Without a scheme, the
// secret goes into https alone. The error does not repeat what stands before the @: somebody may
// have put the secret itself there.
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
	// What the file is called is nothing that a receipt should show to a guest.
	secret.Origin = "--secret " + name + "=…@" + rest[at+1:]
	if kind == "file" {
		secret.From.File = source // as it was written: there is no file that it could be relative to
	}
	return secret, ""
}

// secretMessage says what is wrong with a secret, without what may be its value.
func secretMessage(problem *manifests.Problem, kind string) string {
	switch {
	case strings.HasSuffix(problem.Path, ".name"):
		return "the name before the = is not of upper-case letters, digits and _, starting with a letter"
	case strings.HasSuffix(problem.Path, ".from.env"):
		return "what follows env: is not the name of a variable"
	case strings.Contains(problem.Path, ".from"):
		return "what follows " + kind + ": is not a path"
	}
	return hostMessage(problem)
}

// hostMessage says what is wrong with a host, which is all that is left for the policy's reader to
// find in where requests go.
func hostMessage(problem *manifests.Problem) string { return "the host " + problem.Message }

// flagOrigin is the part of a flag that says where requests go.
type flagOrigin struct {
	host    string   // not yet read
	ports   []int    // empty where the flag has none
	schemes []string // empty where the flag has none
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
			return origin, fmt.Sprintf("the port %q is no whole number from 1 to 65535", clip(port, 80))
		}
		origin.ports = []int{int(number)}
	}
	origin.host = host
	return origin, ""
}

// splitPort cuts HOST, HOST:PORT, [IPV6] or [IPV6]:PORT in two.
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
		return "", "", fmt.Sprintf("an IPv6 address stands in brackets: [%s]", clip(text, 80))
	}
	host, port, found := strings.Cut(text, ":")
	if found && port == "" {
		return "", "", fmt.Sprintf("%q has no port after the colon", clip(text, 80))
	}
	return host, port, ""
}
