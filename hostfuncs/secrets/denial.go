package secrets

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

const maxShown = 128 // bytes of a name that a receipt shows

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
	receipt := denialOf(name, "the manifest does not ask for the secret", s.allowRequest(name))
	return false, &receipt
}

func denialOf(name, rule string, allow tool.Allow) tool.Denial {
	return tool.Denial{Permission: "secrets", Value: shown(name), Rule: rule, Allow: allow}
}

// allowRequest says what would make a secret exist for which the manifest does not ask.
// Where it goes is for the tool's author to say.
func (s *Set) allowRequest(name string) tool.Allow {
	allow := tool.Allow{Manifest: manifests.Permissions{Secrets: []manifests.SecretPermission{{Name: name}}}.Rule()}
	if s != nil {
		allow.Grant = ruleFor(s.tool, manifests.SecretGrant{Name: name, From: manifests.SecretSource{Env: name}})
	}
	return allow
}

// allowGrant says what would grant a request, to the origin to which the manifest asks to
// send requests.
func (d *decider) allowGrant(request request) tool.Allow {
	grant := manifests.SecretGrant{Name: request.Name, From: manifests.SecretSource{Env: request.Name}, Host: request.host.String()}
	if grant.Host == "" {
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
	return tool.Allow{Grant: ruleFor(d.options.Tool, grant)}
}

// ruleFor returns the rule that gives a grant to a tool.
func ruleFor(name string, grant manifests.SecretGrant) json.RawMessage {
	return manifests.Grant{Tools: []string{name}, Secrets: []manifests.SecretGrant{grant}}.Rule()
}

// shownOrigin returns an origin without the folder of the operator's file.
func shownOrigin(origin string) string { return origin[strings.LastIndexAny(origin, `/\`)+1:] }

// shown returns a name that a guest chose in a form that is safe to show.
func shown(name string) string { return tool.Shown(name, maxShown) }
