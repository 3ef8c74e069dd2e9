package secrets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// decider applies the decisions of package permission to the requests, in order.
type decider struct {
	*Set     // the result
	options  Options
	grants   []grant
	rules    permission.Rules
	sources  *sources
	bindings map[permission.Origin][]*binding
	masked   []*binding // bindings whose values are masked
}

type verdict struct {
	decision tool.Decision
	// rule is the reason, worded for the guest. If the secret is effective, it says where it is sent.
	rule string
	// displaced is set if another secret has the place of this one.
	displaced bool
}

// given is a request that the operator granted.
type given struct {
	name string
	host permission.Host
	rule string // why a request to the host may lack the secret, worded for the guest
}

// decide decides each request and adds the effective ones.
func (d *decider) decide(requests []request) error {
	d.rules.Module = d.options.Module
	for _, r := range requests {
		d.rules.Requests = append(d.rules.Requests, r.rule())
	}
	for _, g := range d.grants {
		d.rules.Grants = append(d.rules.Grants, g.statement())
	}
	for _, deny := range d.options.Deny {
		if deny.Secret != "" {
			taken := permission.Statement{Rule: &rule{name: deny.Secret, everywhere: true}}
			taken.Origin = deny.Origin
			d.rules.Denials = append(d.rules.Denials, taken)
		}
	}
	for i, outcome := range d.rules.Decide() {
		if err := d.decideOne(requests[i], outcome); err != nil {
			return err
		}
	}
	return nil
}

func (d *decider) decideOne(request request, outcome permission.Outcome) error {
	v := verdict{decision: tool.Decision{
		Permission: string(kind),
		Requested:  fmt.Sprintf("%s in %s for %s", request.Name, describePlace(request.Place), request.Host),
	}}
	grants, err := d.granted(outcome)
	if err != nil {
		return err
	}
	v.decision.Granted = describeGrants(grants)
	switch {
	case len(outcome.Taken) > 0:
		by := d.rules.Denials[outcome.Taken[0]].Origin
		v.refuse(d.rules.DeniedBy(outcome), "denied by "+cmp.Or(shownOrigin(by), permission.Operator))
	case len(outcome.Effective) == 0:
		d.explainAbsence(request, &v)
	default:
		if err := d.bind(request, grants, &v); err != nil {
			return err
		}
	}
	if v.decision.Effective == "" {
		v.decision.Reason += d.rules.ForOthers(outcome, "the grant")
	}
	if len(grants) > 0 && len(outcome.Taken) == 0 && !v.displaced {
		d.given = append(d.given, given{request.Name, request.host, v.rule})
	}
	d.record(request, v)
	return nil
}

// granted returns the grants for a request. It fails if two of them are for the same origin.
func (d *decider) granted(outcome permission.Outcome) ([]grant, error) {
	var grants []grant
	owners := map[permission.Origin]grant{}
	for _, permit := range outcome.Granted {
		grant := d.grants[permit.Grant]
		for _, o := range permit.Rule.(*rule).origins {
			if owner, twice := owners[o]; twice {
				return nil, &Error{Name: grant.Name, Origin: grant.Origin, Kind: ErrGrant,
					Message: fmt.Sprintf("granted for %s already, by %s; keep one of the two", o,
						cmp.Or(owner.Origin, permission.Operator))}
			}
			owners[o] = grant
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// explainAbsence sets the reason why no grant matches a request. It names the closest grant, if any.
func (d *decider) explainAbsence(request request, v *verdict) {
	v.refuse("no grant gives it", "no grant gives the secret")
	v.decision.Allow = d.allowGrant(request)
	for _, grant := range d.grants {
		if grant.Name != request.Name || !grant.Holds(d.options.Module) {
			continue
		}
		if grant.host != request.host {
			v.refuse(fmt.Sprintf("%s grants it only for %s", cmp.Or(grant.Origin, permission.Operator), grant.host),
				"no grant gives the secret for "+request.Host)
			continue
		}
		place := "a header"
		if grant.Place != (manifests.SecretPlace{}) {
			place = describePlace(grant.Place)
		}
		v.refuse(fmt.Sprintf("%s grants it only in %s", cmp.Or(grant.Origin, permission.Operator), place),
			"no grant gives the secret in "+describePlace(request.Place))
		return
	}
}

// bind reads the values and adds bindings for those that are set.
func (d *decider) bind(request request, grants []grant, v *verdict) error {
	var effective, notes []string
	for _, grant := range grants {
		read, err := d.sources.read(grant.SecretGrant)
		if err == nil && read.missing == "" {
			err = checkValue(grant.SecretGrant, request.Place, read.value)
		}
		if err != nil {
			return err
		}
		if read.missing == "" {
			read.missing = d.occupied(request, grant)
			v.displaced = v.displaced || read.missing != ""
		}
		if read.missing != "" {
			notes = append(notes, read.missing)
			continue
		}
		if read.note != "" {
			notes = append(notes, read.note)
		}
		d.add(request, grant, read.value)
		effective = append(effective, describeOrigins(grant))
	}
	if len(effective) == 0 {
		v.refuse(strings.Join(notes, "; "), "the secret is granted but has no value that can be used here")
		return nil
	}
	v.decision.Effective = fmt.Sprintf("%s in %s for %s", request.Name, describePlace(request.Place),
		strings.Join(effective, ", "))
	v.decision.Reason = strings.Join(append([]string{"granted"}, notes...), "; ")
	v.rule = "the secret is sent only to " + strings.Join(effective, ", ")
	return nil
}

// occupied returns a note if another secret already has the place, or "". The first in the
// manifest's order wins, so that a tool can request alternatives.
func (d *decider) occupied(request request, grant grant) string {
	for _, o := range originsOf(grant) {
		for _, b := range d.bindings[o] {
			if collide(b.place, request.Place) {
				return fmt.Sprintf("%s for %s holds %s already", describePlace(b.place), o, b.name)
			}
		}
	}
	return ""
}

func (d *decider) add(request request, grant grant, value string) {
	b := &binding{name: request.Name, place: request.Place, value: value}
	for _, o := range originsOf(grant) {
		d.bindings[o] = append(d.bindings[o], b)
	}
	if len(value) >= minValue {
		d.masked = append(d.masked, b)
	}
}

// record keeps a verdict. A name exists if at least one request for it is effective.
func (d *decider) record(request request, v verdict) {
	d.decisions = append(d.decisions, v.decision)
	o := d.requests[request.Name]
	if o == nil {
		o = &outcome{denial: denialOf(request.Name, v.rule, v.decision.Allow)}
		d.requests[request.Name] = o
	}
	o.effective = o.effective || v.decision.Effective != ""
}

func (v *verdict) refuse(reason, rule string) { v.decision.Reason, v.rule = reason, rule }

func describeOrigins(grant grant) string {
	var origins []string
	for _, o := range originsOf(grant) {
		origins = append(origins, o.String())
	}
	return strings.Join(origins, ", ")
}

func describeGrants(grants []grant) string {
	var texts []string
	for _, grant := range grants {
		text := fmt.Sprintf("%s from %s for %s", grant.Name, describeSource(grant.From), describeOrigins(grant))
		texts = append(texts, permission.Written(text, grant.Origin))
	}
	return strings.Join(texts, "; ")
}

const maxShown = 128 // bytes of a name in receipts

// Check reports whether a secret is in effect. If it is not, denial is a receipt with the reason, which the caller may
// keep and show to the guest. [Set.Requested] reports whether the manifest requests the secret at all.
func (s *Set) Check(name string) (exists bool, denial *tool.Denial) {
	if !s.Requested(name) {
		receipt := denialOf(name, "the manifest does not ask for the secret", s.allowRequest(name))
		return false, &receipt
	}
	if s.requests[name].effective {
		return true, nil
	}
	receipt := s.requests[name].denial
	return false, &receipt
}

func denialOf(name, rule string, allow tool.Allow) tool.Denial {
	return tool.Denial{Permission: "secrets", Value: shownName(name), Rule: rule, Allow: allow}
}

// allowRequest returns the rules that would allow a secret that the manifest does not request. The tool's author still
// has to fill in where it goes.
func (s *Set) allowRequest(name string) tool.Allow {
	allow := tool.Allow{Manifest: manifests.Permissions{Secrets: []manifests.SecretPermission{{Name: name}}}.Rule()}
	if s != nil {
		allow.Grant = ruleFor(s.tool, manifests.SecretGrant{Name: name, From: manifests.SecretSource{Env: name}})
	}
	return allow
}

// allowGrant returns the grant that would allow a request, with the schemes and ports of the host's network request.
func (d *decider) allowGrant(request request) tool.Allow {
	grant := manifests.SecretGrant{Name: request.Name, From: manifests.SecretSource{Env: request.Name},
		Host: request.host.String()}
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

func ruleFor(name string, grant manifests.SecretGrant) json.RawMessage {
	return manifests.Grants{Secrets: []manifests.SecretGrant{grant}}.Rule(name)
}

// shownOrigin returns an origin without the directory of the operator's file.
func shownOrigin(origin string) string { return origin[strings.LastIndexAny(origin, `/\`)+1:] }

func shownName(name string) string { return tool.Shown(name, maxShown) }
