package secrets

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const kind permission.Kind = "secrets"

// rule says where a secret may go: its name, the origins of requests, and the place in them.
type rule struct {
	name string
	// everywhere is set for denials, which match by name only.
	everywhere bool
	host       permission.Host // a single host, or the zero value for none
	// origins are the origins of the host. Nil means all of them; manifests do not name origins.
	origins []permission.Origin
	// place is canonical. The zero value means any header; only grants use it.
	place manifests.SecretPlace
}

// Kind implements [permission.Rule].
func (r *rule) Kind() permission.Kind { return kind }

// Covers reports whether the rule allows everything that the other rule allows.
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
	return (r.place == other.place || r.isHeader() && other.inHeader()) &&
		(r.origins == nil || other.origins != nil && !slices.ContainsFunc(other.origins, r.lacks))
}

// lacks reports whether an origin is none of the listed ones.
func (r *rule) lacks(o permission.Origin) bool { return !slices.Contains(r.origins, o) }

// isHeader reports whether the rule is for any header. inHeader reports whether it is for any
// header or for a single one.
func (r *rule) isHeader() bool { return r.place == manifests.SecretPlace{} }
func (r *rule) inHeader() bool { return r.isHeader() || r.place.Header != "" }

// Intersect returns the rule for what both rules allow, or false if there is nothing.
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
		both.origins = slices.DeleteFunc(slices.Clone(r.origins), other.lacks)
		overlap = overlap && len(both.origins) > 0
	}
	if !overlap {
		return nil, false
	}
	return both, true
}

// request is a request of a manifest. Its host is the zero value, which no grant matches, if the
// manifest names no place or not exactly one host.
type request struct {
	manifests.SecretPermission
	host permission.Host
}

func readRequest(requested manifests.SecretPermission) request {
	host, err := permission.ParseOneHost(requested.Host)
	if err != nil || requested.Place == (manifests.SecretPlace{}) {
		return request{SecretPermission: requested}
	}
	return request{requested, host}
}

func (r request) rule() *rule { return &rule{name: r.Name, host: r.host, place: canonical(r.Place)} }

type grant struct {
	manifests.SecretGrant
	host permission.Host
}

// statement returns the rule of the grant. A grant that names no place allows any header. It does not allow queries and
// bodies: an API may store and show a value there, such as a title, so the operator must name those places.
func (g grant) statement() permission.Statement {
	return permission.Statement{
		Binding: g.Binding,
		Rule:    &rule{name: g.Name, host: g.host, origins: originsOf(g), place: canonical(g.Place)},
	}
}

// readGrant checks a grant, also one that no tool requests: an invalid grant is a mistake of the operator.
func readGrant(granted manifests.SecretGrant) (grant, error) {
	refuse := func(format string, values ...any) (grant, error) {
		return grant{},
			&Error{Name: granted.Name, Origin: granted.Origin, Kind: ErrGrant, Message: fmt.Sprintf(format, values...)}
	}
	from := granted.From
	sources := 0
	for _, source := range []string{from.Env, from.File, from.Age} {
		if source != "" {
			sources++
		}
	}
	switch {
	case granted.Name == "":
		return refuse("the grant has no name")
	case sources != 1:
		return refuse("the value comes from exactly one of an environment variable, a file and an age file")
	case from.Age != "" && from.Identity == "":
		return refuse("an age file needs the identity file with its key")
	case from.Age == "" && from.Identity+from.Key != "":
		return refuse("an identity and a key belong to an age file")
	}
	host, err := permission.ParseOneHost(granted.Host)
	if err != nil {
		return refuse("a secret is bound to one host; %v", err)
	}
	for _, scheme := range granted.Schemes {
		if scheme != "https" && scheme != "http" {
			return refuse("the scheme %q; want https or http", scheme)
		}
	}
	for _, port := range granted.Ports {
		if port < 1 || port > 65535 {
			return refuse("the port %d; want 1 to 65535", port)
		}
	}
	return grant{granted, host}, nil
}

// canonical returns a place in the form used for comparison: header names in lower case.
func canonical(place manifests.SecretPlace) manifests.SecretPlace {
	place.Header = strings.ToLower(place.Header)
	return place
}

// collide reports whether a server may treat two places as the same, so that no request can hold both.
func collide(a, b manifests.SecretPlace) bool {
	same := func(a, b string, fold func(string) string) bool { return a != "" && fold(a) == fold(b) }
	return same(a.Header, b.Header, permission.FoldHeader) || same(a.Query, b.Query, permission.FoldName) ||
		same(a.Body, b.Body, permission.FoldName)
}

func describePlace(place manifests.SecretPlace) string {
	switch {
	case place.Header != "" && place.Prefix != "":
		return fmt.Sprintf("the header %s after %q", place.Header, place.Prefix)
	case place.Header != "":
		return "the header " + place.Header
	case place.Query != "":
		return "the query parameter " + place.Query
	default:
		return "the body's member " + place.Body
	}
}

// describeSource describes the source of a value, without a path of the host.
func describeSource(from manifests.SecretSource) string {
	switch {
	case from.Env != "":
		return "the environment variable " + from.Env
	case from.File != "":
		return "a file"
	default:
		return "an age file"
	}
}

// originOf returns the origin of a URL, or false if its host or its port is invalid.
func originOf(target *url.URL) (permission.Origin, bool) {
	port := permission.DefaultPort(target.Scheme)
	if text := target.Port(); text != "" {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return permission.Origin{}, false
		}
		port = int(number)
	}
	host, err := permission.ParseURLHost(target.Hostname())
	return permission.Origin{Scheme: target.Scheme, Host: host, Port: port}, err == nil
}

// originsOf returns the origins of a grant, without duplicates.
func originsOf(grant grant) []permission.Origin {
	schemes, ports := grant.Schemes, grant.Ports
	if len(schemes) == 0 {
		schemes = []string{"https"}
	}
	if len(ports) == 0 {
		ports = []int{0}
	}
	var origins []permission.Origin
	for _, scheme := range schemes {
		for _, port := range ports {
			o := permission.Origin{Scheme: scheme, Host: grant.host, Port: cmp.Or(port, permission.DefaultPort(scheme))}
			if !slices.Contains(origins, o) {
				origins = append(origins, o)
			}
		}
	}
	return origins
}
