package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
)

// secretError describes the fault of a value of --secret, which may contain the secret and is not printed.
type secretError string

func (e secretError) Error() string { return string(e) }

type object map[string]any

// asPolicy parses a policy made from flags, so that flags cannot grant anything that a file could not.
func asPolicy(policy object) (*manifests.Policy, error) {
	policy["schema"] = manifests.PolicyV1
	source, err := json.Marshal(policy)
	if err != nil {
		return nil, err
	}
	return manifests.ParsePolicy("flags.json", source)
}

func asGrant(key string, element any) (manifests.Grant, error) {
	policy, err := asPolicy(object{"grants": []object{{"tools": []string{"*"}, key: []any{element}}}})
	if err != nil {
		return manifests.Grant{}, err
	}
	return policy.Grants[0], nil
}

// firstProblem returns the first problem of a policy, or the error in its form.
func firstProblem(err error) manifests.Problem {
	if invalid, ok := errors.AsType[*manifests.Error](err); ok {
		return invalid.Problems[0]
	}
	return manifests.Problem{Message: err.Error()}
}

// parseNetwork parses the value of --allow-net: [SCHEME://]HOST[:PORT]. The grant includes all paths and the methods
// [view.FlagMethods]. Without a scheme it includes https and http. Without a port it includes the default ports of the
// schemes. HOST may be *.NAME or *. An IPv6 address must be in brackets.
func parseNetwork(text string) (manifests.NetworkGrant, error) {
	const want = "[SCHEME://]HOST[:PORT], such as api.example.com, *.example.com, http://localhost:8080 or [::1]:8443"
	wanted, err := parseOrigin(text, "https", "http")
	if err != nil {
		return manifests.NetworkGrant{}, fmt.Errorf("%w; want %s", err, want)
	}
	wanted["methods"] = view.FlagMethods
	grant, err := asGrant("network", wanted)
	if err != nil {
		return manifests.NetworkGrant{}, fmt.Errorf("the host %s; want %s", firstProblem(err).Message, want)
	}
	network := grant.Network[0]
	network.Origin = "--allow-net " + text
	return network, nil
}

// parseCall parses the value of --allow-call: the name of a tool that others may call if they request it.
func parseCall(text string) (manifests.NameGrant, error) {
	grant, err := asGrant("calls", text)
	if err != nil {
		return manifests.NameGrant{},
			fmt.Errorf("%q is not the name of a tool; want NAME: 1 to 64 ASCII letters, digits, _ and -",
				terminal.Clip(text, 80))
	}
	call := grant.Calls[0]
	call.Origin = "--allow-call " + text
	return call, nil
}

// parseAsk parses the value of --ask: the name or the glob of tools whose calls require approval.
func parseAsk(text string) (manifests.PolicyAsk, error) {
	policy, err := asPolicy(object{"ask": []string{text}})
	if err != nil {
		return manifests.PolicyAsk{},
			fmt.Errorf("%s; want GLOB, a tool's name or a glob such as file_*", firstProblem(err).Message)
	}
	ask := policy.Ask[0]
	ask.Origin = "--ask " + text
	return ask, nil
}

// parseApproval parses the value of --approve-tool: the name of a tool whose calls need no approval even though it is
// destructive. Globs are not allowed, so that a tool added later is not approved already.
func parseApproval(text string) (manifests.PolicyApproval, error) {
	if _, err := parseCall(text); err != nil {
		return manifests.PolicyApproval{}, err
	}
	return manifests.PolicyApproval{Binding: manifests.Binding{Origin: "--approve-tool " + text}, Tools: []string{text}},
		nil
}

// parseSecret parses the value of --secret: NAME=env:VARIABLE@[SCHEME://]HOST[:PORT] or
// NAME=file:PATH@[SCHEME://]HOST[:PORT]. HOST is a single host. Without a scheme, the secret is
// sent only with https. The error is a [secretError].
func parseSecret(text string) (manifests.SecretGrant, error) {
	secret, err := readSecret(text)
	if err != nil {
		err = secretError(err.Error() +
			"; want NAME=env:VARIABLE@HOST or NAME=file:PATH@HOST, such as API_KEY=env:API_KEY@api.example.com")
	}
	return secret, err
}

// readSecret is parseSecret with errors that do not repeat the text before the @.
func readSecret(text string) (manifests.SecretGrant, error) {
	var none manifests.SecretGrant
	name, rest, found := strings.Cut(text, "=")
	if !found {
		return none, errors.New("there is no =")
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return none, errors.New("there is no @ with the host that may receive the secret")
	}
	kind, source, _ := strings.Cut(rest[:at], ":")
	if kind != "env" && kind != "file" {
		return none, errors.New("what follows the = must begin with env: or with file: and a name")
	}
	wanted, err := parseOrigin(rest[at+1:])
	if err != nil {
		return none, err
	}
	wanted["name"], wanted["from"] = name, object{kind: source}
	grant, err := asGrant("secrets", wanted)
	if err != nil {
		return none, secretProblem(firstProblem(err), kind)
	}
	secret := grant.Secrets[0]
	// Guests see receipts, so they do not contain the name of the file.
	secret.Origin = "--secret " + name + "=…@" + rest[at+1:]
	if kind == "file" {
		secret.From.File = source // as written, since there is no file that it could be relative to
	}
	return secret, nil
}

// secretProblem describes the fault of a secret, without repeating text that may be its value.
func secretProblem(problem manifests.Problem, kind string) error {
	switch {
	case strings.HasSuffix(problem.Path, ".name"):
		return errors.New("the name before the = must be upper-case letters, digits and _, starting with a letter")
	case strings.HasSuffix(problem.Path, ".from.env"):
		return errors.New("what follows env: is not the name of a variable")
	case strings.Contains(problem.Path, ".from"):
		return fmt.Errorf("what follows %s: is not a path", kind)
	}
	return fmt.Errorf("the host %s", problem.Message)
}

// misspeltURL matches a URL in which something else than "://" follows the scheme, with the scheme and the host.
var misspeltURL = regexp.MustCompile(`^(https?)(?:/|//|:/|:///+|:)([a-zA-Z*[][^/]*)`)

// parseOrigin parses [SCHEME://]HOST[:PORT] into members of a grant. schemes are those if none is written.
func parseOrigin(text string, schemes ...string) (object, error) {
	rest := text
	if parts := misspeltURL.FindStringSubmatch(text); parts != nil {
		return nil, fmt.Errorf("%q is not written as a URL; write %s", terminal.Clip(text, 80),
			terminal.Clip(parts[1]+"://"+parts[2], 80))
	}
	if scheme, after, found := strings.Cut(text, "://"); found {
		if scheme != "https" && scheme != "http" {
			return nil, fmt.Errorf("the scheme %q is neither https nor http", terminal.Clip(scheme, 80))
		}
		schemes, rest = []string{scheme}, after
	}
	if _, err := netip.ParsePrefix(rest); err == nil {
		return nil,
			fmt.Errorf(
				"%q is a range of addresses, but a grant is for a host; name the host, and write the addresses that it may have "+
					"into a policy: network: [{host: HOST, addresses: [%s]}]", rest, rest)
	}
	if host, _, isURL := strings.Cut(rest, "/"); isURL {
		return nil, fmt.Errorf("%q has a path, but a grant is for a host; write %s", terminal.Clip(rest, 80),
			terminal.Clip(text[:len(text)-len(rest)]+host, 80))
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return nil, err
	}
	origin := object{"host": host}
	if len(schemes) > 0 {
		origin["schemes"] = schemes
	}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || strconv.FormatUint(number, 10) != port {
			return nil, fmt.Errorf("the port %q is not a whole number from 1 to 65535", terminal.Clip(port, 80))
		}
		origin["ports"] = []uint64{number}
	}
	return origin, nil
}

// splitPort splits HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
func splitPort(text string) (host, port string, err error) {
	if inside, found := strings.CutPrefix(text, "["); found {
		host, after, closed := strings.Cut(inside, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", "", fmt.Errorf("%q has no IPv6 address in brackets", terminal.Clip(text, 80))
		}
		port, colon := strings.CutPrefix(after, ":")
		if after != "" && (!colon || port == "") {
			return "", "", fmt.Errorf("%q has no port after the brackets", terminal.Clip(text, 80))
		}
		return host, port, nil
	}
	if host, err := permission.ParseOneHost(text); err == nil && host.Address().IsValid() && strings.Contains(text, ":") {
		return "", "", fmt.Errorf("an IPv6 address must be in brackets: [%s]", terminal.Clip(text, 80))
	}
	host, port, found := strings.Cut(text, ":")
	if found && port == "" {
		return "", "", fmt.Errorf("%q has no port after the colon", terminal.Clip(text, 80))
	}
	return host, port, nil
}
