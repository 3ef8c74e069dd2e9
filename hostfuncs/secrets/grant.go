package secrets

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// request is what a manifest asks for. Its host is the zero value where it names none, or many, or
// where no place is named: no grant is for that.
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

func (r request) statement() permission.Statement {
	return permission.Statement{Rule: &rule{name: r.Name, host: r.host, place: canonical(r.Place)}}
}

// grant is what the operator gives, for one host.
type grant struct {
	manifests.SecretGrant
	host permission.Host
}

// statement says where the grant lets a secret go. One that names no place allows any header. What
// stands in a query or a body may be what the API keeps and shows, such as a title, so that there the
// operator has to name it, too.
func (g grant) statement() permission.Statement {
	return permission.Statement{
		Rule:   &rule{name: g.Name, host: g.host, origins: originsOf(g), place: canonical(g.Place)},
		Origin: g.Origin,
		SHA256: g.SHA256,
	}
}

// readGrant refuses a grant that says nothing definite, whether or not a tool asks for it:
// it is a slip of the operator's.
func readGrant(granted manifests.SecretGrant) (grant, error) {
	refuse := func(format string, values ...any) (grant, error) {
		return grant{}, &Error{Op: "grant", Name: granted.Name, Origin: granted.Origin, Kind: ErrGrant, Message: fmt.Sprintf(format, values...)}
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

// canonical returns a place in the form that is compared: the names of headers have no case.
func canonical(place manifests.SecretPlace) manifests.SecretPlace {
	place.Header = strings.ToLower(place.Header)
	return place
}

// collide reports whether two places are the same one, or a server may take them for one, so that
// one request cannot hold both.
func collide(a, b manifests.SecretPlace) bool {
	return a.Header != "" && manifests.FoldName(a.Header) == manifests.FoldName(b.Header) ||
		a.Query != "" && manifests.FoldName(a.Query) == manifests.FoldName(b.Query) ||
		a.Body != "" && manifests.FoldName(a.Body) == manifests.FoldName(b.Body)
}

// describePlace says where in a request a place is.
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

// describeGranted says where a grant lets a secret be.
func describeGranted(place manifests.SecretPlace) string {
	if place == (manifests.SecretPlace{}) {
		return "a header"
	}
	return describePlace(place)
}

// describeSource says where a value comes from, without a path of the host.
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
