package secrets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// decider computes request ∩ grant − deny, one request after another.
type decider struct {
	options   Options
	sources   *sources
	bindings  map[origin][]*binding
	masked    []*binding // those whose values are masked
	requests  map[string]*outcome
	decisions []tool.Decision
}

func newDecider(options Options) *decider {
	return &decider{
		options:  options,
		sources:  &sources{lookup: options.LookupEnv, ages: map[ageFile]map[string]string{}},
		bindings: map[origin][]*binding{},
		requests: map[string]*outcome{},
	}
}

// verdict is what becomes of one request.
type verdict struct {
	decision tool.Decision
	// rule is the reason in a form that a guest may read.
	rule string
}

func (d *decider) decide(request manifests.SecretPermission) error {
	v := verdict{decision: tool.Decision{
		Permission: "secrets",
		Requested:  fmt.Sprintf("%s in %s for %s", request.Name, describePlace(request.Place), request.Host),
	}}
	grants, err := d.matching(request)
	if err != nil {
		return err
	}
	denied := slices.IndexFunc(d.options.Deny, func(deny Denied) bool { return deny.Name == request.Name })
	v.decision.Granted = describeGrants(grants)
	switch {
	case denied >= 0:
		v.refuse("denied by "+writer(d.options.Deny[denied].Origin), "denied by "+writer(shownOrigin(d.options.Deny[denied].Origin)))
	case len(grants) == 0:
		d.explainAbsence(request, &v)
	default:
		if err := d.bind(request, grants, &v); err != nil {
			return err
		}
	}
	d.record(request, v)
	return nil
}

// matching returns the grants for a request. No two of them are for one origin.
func (d *decider) matching(request manifests.SecretPermission) ([]manifests.SecretGrant, error) {
	var grants []manifests.SecretGrant
	owners := map[origin]manifests.SecretGrant{}
	for _, grant := range d.options.Grants {
		if grant.Name != request.Name || normalHost(grant.Host) != normalHost(request.Host) || !samePlace(grant.Place, request.Place) {
			continue
		}
		for _, o := range originsOf(grant) {
			if owner, twice := owners[o]; twice {
				return nil, &Error{Op: "grant", Name: grant.Name, Origin: grant.Origin, Kind: ErrGrant,
					Message: fmt.Sprintf("granted for %s already, by %s; keep one of the two", o, writer(owner.Origin))}
			}
			owners[o] = grant
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// explainAbsence says why no grant is for a request: the nearest one, if any, is named.
func (d *decider) explainAbsence(request manifests.SecretPermission, v *verdict) {
	v.refuse("no grant gives it", "no grant gives the secret")
	v.decision.Allow = d.allowGrant(request)
	for _, grant := range d.options.Grants {
		if grant.Name != request.Name {
			continue
		}
		if normalHost(grant.Host) != normalHost(request.Host) {
			v.refuse(fmt.Sprintf("%s gives it for %s alone", writer(grant.Origin), grant.Host), "no grant gives the secret for "+request.Host)
			continue
		}
		v.refuse(fmt.Sprintf("%s gives it in %s alone", writer(grant.Origin), describeGranted(grant.Place)), "no grant gives the secret in "+describePlace(request.Place))
		return
	}
}

// bind reads the values and puts those that are set into effect.
func (d *decider) bind(request manifests.SecretPermission, grants []manifests.SecretGrant, v *verdict) error {
	var effective, notes []string
	for _, grant := range grants {
		read, err := d.sources.read(grant)
		if err == nil && read.missing == "" {
			err = checkValue(grant, request.Place, read.value)
		}
		if err != nil {
			return err
		}
		if read.missing == "" {
			read.missing = d.occupied(request, grant)
		}
		if read.missing != "" {
			notes = append(notes, read.missing)
			continue
		}
		if read.note != "" {
			notes = append(notes, read.note)
		}
		effective = append(effective, d.add(request, grant, read.value)...)
	}
	if len(effective) == 0 {
		v.refuse(strings.Join(notes, "; "), "the secret is granted but has no value that can be used here")
		return nil
	}
	v.decision.Effective = fmt.Sprintf("%s in %s for %s", request.Name, describePlace(request.Place), strings.Join(effective, ", "))
	v.decision.Reason = strings.Join(append([]string{"granted"}, notes...), "; ")
	return nil
}

// occupied says which secret has the place of another one already, or "". The manifest's
// order decides, so that a tool can ask for alternatives.
func (d *decider) occupied(request manifests.SecretPermission, grant manifests.SecretGrant) string {
	for _, o := range originsOf(grant) {
		for _, b := range d.bindings[o] {
			if collide(b.place, request.Place) {
				return fmt.Sprintf("%s for %s holds %s already", describePlace(b.place), o, b.name)
			}
		}
	}
	return ""
}

// add puts a secret into effect and returns its origins.
func (d *decider) add(request manifests.SecretPermission, grant manifests.SecretGrant, value string) []string {
	b := &binding{name: request.Name, place: request.Place, value: value}
	var origins []string
	for _, o := range originsOf(grant) {
		d.bindings[o] = append(d.bindings[o], b)
		origins = append(origins, o.String())
	}
	if len(value) >= MinValue {
		d.masked = append(d.masked, b)
	}
	return origins
}

// record keeps a verdict. A name that is in effect for one host exists, whatever became of
// the others.
func (d *decider) record(request manifests.SecretPermission, v verdict) {
	d.decisions = append(d.decisions, v.decision)
	o := d.requests[request.Name]
	if o == nil {
		o = &outcome{denial: denialOf(request.Name, v.rule, v.decision.Allow)}
		d.requests[request.Name] = o
	}
	o.effective = o.effective || v.decision.Effective != ""
}

func (v *verdict) refuse(reason, rule string) { v.decision.Reason, v.rule = reason, rule }

func describeGrants(grants []manifests.SecretGrant) string {
	var texts []string
	for _, grant := range grants {
		var origins []string
		for _, o := range originsOf(grant) {
			origins = append(origins, o.String())
		}
		text := fmt.Sprintf("%s from %s for %s", grant.Name, describeSource(grant.From), strings.Join(origins, ", "))
		if grant.Origin != "" {
			text += " (" + grant.Origin + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// writer names who wrote a grant or a denial.
func writer(origin string) string {
	if origin == "" {
		return "the operator"
	}
	return origin
}
