package secrets

import (
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

const kind permission.Kind = "secrets"

// rule is which secret goes where: its name, the origins of its requests, and the place in them.
type rule struct {
	name string
	// everywhere is set for denials, which are about a name alone.
	everywhere bool
	host       permission.Host // one; the zero value is none
	// origins are of the host. Nil stands for all: a manifest does not name them.
	origins []origin
	// place is canonical; the zero value, which grants may have, stands for all headers.
	place manifests.SecretPlace
}

// Kind returns that of secrets.
func (r *rule) Kind() permission.Kind { return kind }

// Covers reports whether the secret goes wherever it goes by the other rule.
func (r *rule) Covers(with permission.Rule) bool {
	other, ok := with.(*rule)
	switch {
	case !ok || r.name == "" || r.name != other.name:
		return false
	case r.everywhere:
		return true
	case other.everywhere || !r.host.Covers(other.host):
		return false
	}
	isOutside := func(o origin) bool { return !slices.Contains(r.origins, o) }
	return (r.place == other.place || r.isHeader() && other.inHeader()) &&
		(r.origins == nil || other.origins != nil && !slices.ContainsFunc(other.origins, isOutside))
}

// isHeader reports whether the rule is about all headers, and inHeader whether it is about headers
// alone.
func (r *rule) isHeader() bool { return r.place == manifests.SecretPlace{} }
func (r *rule) inHeader() bool { return r.isHeader() || r.place.Header != "" }

// Intersect returns where the secret goes by both rules.
func (r *rule) Intersect(with permission.Rule) (permission.Rule, bool) {
	other, ok := with.(*rule)
	if !ok || r.name == "" || r.name != other.name {
		return nil, false
	}
	switch {
	case r.everywhere:
		return other, other.everywhere || other.host.IsOne()
	case other.everywhere:
		return r, r.host.IsOne()
	}
	host, overlap := r.host.Intersect(other.host)
	both := &rule{name: r.name, host: host, place: r.place, origins: r.origins}
	switch {
	case r.place == other.place:
	case r.isHeader() && other.inHeader():
		both.place = other.place
	case !other.isHeader() || !r.inHeader():
		return nil, false
	}
	switch {
	case r.origins == nil:
		both.origins = other.origins
	case other.origins != nil:
		both.origins = nil
		for _, o := range r.origins {
			if slices.Contains(other.origins, o) {
				both.origins = append(both.origins, o)
			}
		}
		overlap = overlap && len(both.origins) > 0
	}
	if !overlap {
		return nil, false
	}
	return both, true
}
