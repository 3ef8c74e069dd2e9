package secrets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

const maxShown = 128 // bytes of a name that a receipt shows

var namePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// Check reports whether a secret is in effect and, where it is not, why: denial is nil for
// one that exists. Whether the manifest asks for it at all is [Set.Requested]. The receipt
// is the caller's to keep, and safe to show to the guest.
func (s *Set) Check(name string) (exists bool, denial *tool.Denial) {
	if s.Exists(name) {
		return true, nil
	}
	if s.Requested(name) {
		receipt := s.requests[name].denial
		return false, &receipt
	}
	receipt := denialOf(name, "the manifest does not ask for the secret", allowRequest(name))
	return false, &receipt
}

func denialOf(name, rule string, allow tool.Allow) tool.Denial {
	return tool.Denial{Permission: "secrets", Value: shown(name), Rule: rule, Allow: allow}
}

// allowRequest says what would make a secret exist for which the manifest does not ask.
// Where it goes is for the tool's author to fill in: HEADER and HOST.
func allowRequest(name string) tool.Allow {
	if !namePattern.MatchString(name) {
		return tool.Allow{}
	}
	return tool.Allow{
		Manifest: manifests.SuggestSecretManifest(manifests.SecretPermission{Name: name, Place: manifests.SecretPlace{Header: "HEADER"}, Host: "HOST"}),
		Grant:    fmt.Sprintf("--secret %s=env:%s@HOST", name, name),
	}
}

// allowGrant says what would grant a request, to the origin to which the manifest asks to
// send requests. It is for people to paste, into a shell or a file: what either could take
// for syntax gets no suggestion, nor does a place that no flag can name.
func (d *decider) allowGrant(request request) tool.Allow {
	grant := manifests.SecretGrant{Name: request.Name, From: manifests.SecretSource{Env: request.Name}, Host: request.host.String()}
	if !namePattern.MatchString(grant.Name) || !request.host.IsOne() {
		return tool.Allow{}
	}
	for _, asked := range d.options.Network {
		if host, err := permission.ParseOneHost(asked.Host); err == nil && host == request.host {
			grant.Schemes, grant.Ports = asked.Schemes, asked.Ports
			break
		}
	}
	if slices.Equal(grant.Schemes, []string{"https"}) {
		grant.Schemes = nil
	}
	if request.Place.Header == "" {
		grant.Place = request.Place
	}
	return tool.Allow{Grant: secretFlag(request.host, grant), Config: manifests.SuggestSecretGrant(d.options.Tool, grant)}
}

// secretFlag writes a grant as a flag, or nothing if no flag can say it.
func secretFlag(to permission.Host, grant manifests.SecretGrant) string {
	if grant.Place != (manifests.SecretPlace{}) || len(grant.Schemes) > 1 || len(grant.Ports) > 1 {
		return ""
	}
	host := to.Bracketed()
	quote := ""
	if host != grant.Host {
		quote = "'" // brackets are globs to a shell
	}
	for _, scheme := range grant.Schemes {
		host = scheme + "://" + host
	}
	for _, port := range grant.Ports {
		host += fmt.Sprintf(":%d", port)
	}
	return fmt.Sprintf("--secret %s%s=env:%s@%s%s", quote, grant.Name, grant.Name, host, quote)
}

// shownOrigin returns an origin without the folder of the operator's file.
func shownOrigin(origin string) string {
	if strings.HasPrefix(origin, "--") {
		return origin
	}
	return origin[strings.LastIndexAny(origin, `/\`)+1:]
}

// shown returns a name that a guest chose in a form that is safe to show.
func shown(name string) string { return tool.Shown(name, maxShown) }
