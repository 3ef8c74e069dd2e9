package manifests

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests/permission"
)

// ErrFlag is what failures of the functions wrap that read a flag, such as [ParseNetworkFlag].
var ErrFlag = errors.New("invalid grant")

// ParseNetworkFlag reads what follows --allow-net: [SCHEME://]HOST[:PORT]. The grant is for
// all paths and for the methods of RFC 9110 and RFC 5789 but CONNECT and TRACE; without a
// scheme for https and http; without a port for the schemes' own. HOST may be *.NAME or *,
// and an IPv6 address stands in brackets. The error wraps [ErrFlag] and says what to write.
func ParseNetworkFlag(text string) (NetworkGrant, error) {
	const want = "[SCHEME://]HOST[:PORT], such as api.example.com, *.example.com, http://localhost:8080 or [::1]:8443"
	origin, message := parseOrigin(text, permission.ParseHost)
	if message != "" {
		return NetworkGrant{}, fmt.Errorf("%w: %s; want %s", ErrFlag, message, want)
	}
	grant := NetworkGrant{Binding: Binding{Origin: "--allow-net " + text}}
	grant.Host, grant.Ports, grant.Schemes = origin.host, origin.ports, origin.schemes
	grant.Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	grant.Paths = []string{"/"}
	if len(grant.Schemes) == 0 {
		grant.Schemes = []string{"https", "http"}
	}
	return grant, nil
}

// ParseCallFlag reads what follows --allow-call: the name of a tool, which tools that ask for it
// may then call. The error wraps [ErrFlag] and says what to write.
func ParseCallFlag(text string) (CallGrant, error) {
	if !toolName.MatchString(text) {
		return CallGrant{}, notToolName(text)
	}
	return CallGrant{Binding{Origin: "--allow-call " + text}, text}, nil
}

// ParseAskFlag reads what follows --ask: the name of a tool, or a glob such as file_*, whose calls
// wait for approval. It is an element of [Policy.Ask]. The error wraps [ErrFlag] and says what to
// write.
func ParseAskFlag(text string) (PolicyAsk, error) {
	if message := checkPattern(text); message != "" {
		return PolicyAsk{}, fmt.Errorf("%w: %s; want GLOB, a tool's name or a glob such as file_*", ErrFlag, message)
	}
	return PolicyAsk{Origin: "--ask " + text, Tool: text}, nil
}

// ParseApproveFlag reads what follows --approve-tool: the name of a tool, whose calls need no
// approval although it is destructive. There are no globs: a tool that comes later should not be
// approved of already. It is an element of [Policy.Approve]. The error wraps [ErrFlag] and says
// what to write.
func ParseApproveFlag(text string) (PolicyApproval, error) {
	if !toolName.MatchString(text) {
		return PolicyApproval{}, notToolName(text)
	}
	return PolicyApproval{Binding: Binding{Origin: "--approve-tool " + text}, Tools: []string{text}}, nil
}

func notToolName(text string) error {
	return fmt.Errorf("%w: %q is not the name of a tool; want NAME, of 1 to 64 letters, digits, _ and - of ASCII", ErrFlag, clip(text))
}

// ParseSecretFlag reads what follows --secret: NAME=env:VARIABLE@[SCHEME://]HOST[:PORT] or
// NAME=file:PATH@[SCHEME://]HOST[:PORT], where HOST is one host. Without a scheme, the
// secret goes into https alone. The error wraps [ErrFlag], says what to write, and does not
// repeat what stands before the @: somebody may have put the secret itself there.
func ParseSecretFlag(text string) (SecretGrant, error) {
	grant, message := parseSecret(text)
	if message != "" {
		const want = "NAME=env:VARIABLE@HOST or NAME=file:PATH@HOST, such as API_KEY=env:API_KEY@api.example.com"
		return SecretGrant{}, fmt.Errorf("%w: %s; want %s", ErrFlag, message, want)
	}
	return grant, nil
}

func parseSecret(text string) (grant SecretGrant, message string) {
	name, rest, found := strings.Cut(text, "=")
	if !found {
		return grant, "there is no ="
	}
	if !secretName.MatchString(name) {
		return grant, "the name before the = is not of upper-case letters, digits and _, starting with a letter"
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return grant, "there is no @ with the host that may receive the secret"
	}
	from, message := parseSecretSource(rest[:at])
	if message != "" {
		return grant, message
	}
	origin, message := parseOrigin(rest[at+1:], permission.ParseOneHost)
	if message != "" {
		return grant, message
	}
	// What the file is called is nothing that a receipt should show to a guest.
	grant = SecretGrant{Binding: Binding{Origin: "--secret " + name + "=…@" + rest[at+1:]}}
	grant.Name, grant.From, grant.Host, grant.Ports, grant.Schemes = name, from, origin.host, origin.ports, origin.schemes
	return grant, ""
}

func parseSecretSource(text string) (source SecretSource, message string) {
	kind, value, _ := strings.Cut(text, ":")
	_, hidden := hiddenRune(value)
	switch {
	case kind == "env" && settingName.MatchString(value):
		return SecretSource{Env: value}, ""
	case kind == "env":
		return source, "what follows env: is not the name of a variable"
	case kind == "file" && value != "" && !hidden:
		return SecretSource{File: value}, ""
	case kind == "file":
		return source, "what follows file: is not a path"
	}
	return source, "what follows the = begins with neither env: nor file:"
}

// flagOrigin is the part of a flag that says where requests go.
type flagOrigin struct {
	host    string
	ports   []int    // empty where the flag has none
	schemes []string // empty where the flag has none
}

// parseOrigin reads [SCHEME://]HOST[:PORT], of which parse reads the host.
func parseOrigin(text string, parse func(string) (permission.Host, error)) (origin flagOrigin, message string) {
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		if scheme != "https" && scheme != "http" {
			return origin, fmt.Sprintf("the scheme %q is neither https nor http", clip(scheme))
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
			return origin, fmt.Sprintf("the port %q is no whole number from 1 to 65535", clip(port))
		}
		origin.ports = []int{int(number)}
	}
	parsed, err := parse(host)
	if err != nil {
		problem, _ := wrong(err)
		return origin, fmt.Sprintf("the host %q %s", clip(host), problem)
	}
	origin.host = parsed.String()
	return origin, ""
}

// splitPort cuts HOST, HOST:PORT, [IPV6] or [IPV6]:PORT in two.
func splitPort(text string) (host, port, message string) {
	if inside, found := strings.CutPrefix(text, "["); found {
		host, after, closed := strings.Cut(inside, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", "", fmt.Sprintf("%q has no IPv6 address in brackets", clip(text))
		}
		port, colon := strings.CutPrefix(after, ":")
		if after != "" && (!colon || port == "") {
			return "", "", fmt.Sprintf("%q has no port after the brackets", clip(text))
		}
		return host, port, ""
	}
	if isIPv6(text) {
		return "", "", fmt.Sprintf("an IPv6 address stands in brackets: [%s]", clip(text))
	}
	host, port, found := strings.Cut(text, ":")
	if found && port == "" {
		return "", "", fmt.Sprintf("%q has no port after the colon", clip(text))
	}
	return host, port, ""
}

// isIPv6 reports whether a text is an IPv6 address, also one that stands for an IPv4 address.
func isIPv6(text string) bool {
	host, err := permission.ParseOneHost(text)
	return err == nil && host.Address().IsValid() && strings.Contains(text, ":")
}
