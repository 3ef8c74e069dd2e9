package manifests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/permission"
)

// SecretPermission requests that the host put a secret into requests to one host.
type SecretPermission struct {
	Name  string
	Place SecretPlace
	Host  string
}

// SecretPlace is the place of a secret in a request. Exactly one of Header, Query and Body is set, except in the zero
// value, which names no place.
type SecretPlace struct {
	Header string // the name of a header
	Prefix string // the text before the secret in the header, such as "Bearer "
	Query  string // the name of a query parameter
	Body   string // a member of a JSON object or a field of a form
}

// SecretGrant grants a secret to the one host that may receive it.
type SecretGrant struct {
	Binding
	Name string
	From SecretSource
	Host string // a lower-case name or an IP address, without wildcard
	// Ports and Schemes restrict the grant to some origins of the host. If empty, they mean the
	// scheme's default port and https.
	Ports   []int
	Schemes []string
	// Place must equal the place in the manifest. The zero value allows any header, but no query or body: an API may store
	// and show values that it receives there, so the grant must name that place.
	Place SecretPlace
	// Force allows a value shorter than 16 bytes, which cannot be masked in responses.
	Force bool
}

// SecretSource says where the operator keeps a secret's value. Exactly one of Env, File and Age is set.
type SecretSource struct {
	Env  string // the name of an environment variable of the host
	File string // a file with the value, without the line break at its end
	// Age is a file encrypted with age (age-encryption.org/v1) that contains lines of NAME=value.
	// Identity is a file with its key.
	Age, Identity string
	// Key is the name in the age file. If empty, it is the secret's name.
	Key string
}

var (
	// tokenText is a token of RFC 9110, section 5.6.2.
	tokenText = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	// queryName matches names of query parameters, form fields and JSON members that need no escaping.
	queryName  = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	prefixText = regexp.MustCompile(`^[!-~][ -~]{0,63}$`)
)

// hopHeaders control how a message is transmitted. A secret in one would change the request (RFC 9110, 7.2 and 7.6.1).
var hopHeaders = [...]string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
	"proxy-connection", "proxy-authorization", "expect", "content-type",
}

func secrets() kind {
	return kind{
		name: "secrets",
		asks: &asking{
			key: "secrets",
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.Secrets = listOf(r, maxList, r.secretPermission)(n, at)
			},
			write: func(p Permissions) *node { return listed(p.Secrets, secretNode) },
		},
		gives: grants("secrets", func(g *Grants) *[]SecretGrant { return &g.Secrets },
			func(r *reader, n *node, at string) []SecretGrant { return listOf(r, maxList, r.secretGrant)(n, at) },
			listing(secretGrantNode), SecretGrant.element),
		takes: takesName("secret", func(d *Deny) *string { return &d.Secret }, (*reader).secret,
			func(name string) Element { return secretElement(name, "") }),
	}
}

func (r *reader) secretPermission(n *node, at string) SecretPermission {
	p := SecretPermission{}
	read := r.object(n, at, append([]field{
		required("name", secretExample, &p.Name, r.secret),
		required("host", secretHostExample, &p.Host, canonical(r, permission.ParseOneHost)),
	}, r.placeFields(&p.Place)...)...)
	if read {
		r.checkPlace(n, at, true)
	}
	return p
}

// Texts that say what to add if a key of a secret is missing.
const (
	secretExample     = "name: and the secret's name, such as API_KEY"
	secretHostExample = "host: and the one host that may receive the secret"
)

func (r *reader) secret(n *node, at string) string {
	return r.word(secretName, "use upper-case letters, digits and _, starting with a letter")(n, at)
}

func (r *reader) placeFields(p *SecretPlace) []field {
	return []field{
		optional("header", &p.Header, r.header),
		optional("prefix", &p.Prefix, r.word(prefixText, `write 1 to 64 visible characters of ASCII, such as "Bearer "`)),
		optional("query", &p.Query, r.word(queryName, "use letters, digits and . _ ~ - for the name of the query parameter")),
		optional("body", &p.Body,
			r.word(queryName, "use letters, digits and . _ ~ - for the member of the JSON object, or the field of the form")),
	}
}

// checkPlace reports more than one place, and a missing place if one is required.
func (r *reader) checkPlace(n *node, at string, required bool) {
	if given := n.count("header", "query", "body"); given > 1 || given == 0 && required {
		r.add(n.at, at, mistake.Conflict, "a secret goes into one place: a header, a query parameter or the body",
			"give exactly one of header, query and body")
	}
	if n.get("prefix") != nil && n.get("header") == nil {
		inner := at + ".prefix"
		r.conflict(inner, "a prefix stands before a secret in a header", "remove it, or add header: Authorization")
	}
}

func (r *reader) header(n *node, at string) string {
	text := r.word(tokenText, "write the name of a header, such as X-Api-Key")(n, at)
	if slices.Contains(hopHeaders[:], strings.ToLower(text)) {
		r.invalid(n, at, fmt.Sprintf("%q controls how a request is sent", text),
			"use another header, such as Authorization or X-Api-Key")
		return ""
	}
	return text
}

func (r *reader) secretGrant(n *node, at string) SecretGrant {
	g := SecretGrant{Binding: Binding{Origin: r.origin(n.at)}}
	fields := append([]field{
		required("name", secretExample, &g.Name, r.secret),
		required("from", "from: and where the value is, such as {env: API_KEY}", &g.From, r.secretSource),
		required("host", secretHostExample, &g.Host, canonical(r, permission.ParseOneHost)),
		optional("ports", &g.Ports, r.ports),
		optional("schemes", &g.Schemes, r.schemes),
	}, r.placeFields(&g.Place)...)
	fields = append(fields, optional("force", &g.Force, r.boolean))
	if r.object(n, at, fields...) {
		r.checkPlace(n, at, false)
	}
	return g
}

func (r *reader) secretSource(n *node, at string) SecretSource {
	s := SecretSource{}
	read := r.object(n, at,
		optional("env", &s.Env, r.setting),
		optional("file", &s.File, r.hostPath),
		optional("age", &s.Age, r.hostPath),
		optional("identity", &s.Identity, r.hostPath),
		optional("key", &s.Key, r.setting),
	)
	if read {
		r.checkSecretSource(n, at)
	}
	return s
}

func (r *reader) checkSecretSource(n *node, at string) {
	if n.count("env", "file", "age") != 1 {
		r.add(n.at, at, mistake.Conflict, "a secret's value comes from one place", "give exactly one of env, file and age")
	}
	encrypted := n.get("age") != nil
	if encrypted && n.get("identity") == nil {
		r.add(n.at, keypath.Key(at, "identity"), mistake.Missing, "the key identity is required with age",
			"add identity: and the file with the key to it")
	}
	for _, key := range [...]string{"identity", "key"} {
		if inner := keypath.Key(at, key); !encrypted && n.get(key) != nil {
			r.conflict(inner, key+" belongs to a file encrypted with age", "remove "+key+", or give age")
		}
	}
}

func secretNode(p SecretPermission) *node {
	place := placeMembers(p.Place)
	if p.Place == (SecretPlace{}) {
		place = []member{keyed("header", &node{})}
	}
	return objectOf(append(append([]member{keyed("name", textOf(p.Name))}, place...), keyed("host", orNull(p.Host)))...)
}

func secretGrantNode(g SecretGrant) *node {
	return objectOf(append([]member{
		keyed("name", textOf(g.Name)),
		keyed("from", objectOf(keyed("env", textOrNil(g.From.Env)))),
		keyed("host", orNull(g.Host)),
		keyed("ports", listed(g.Ports, intOf[int])),
		keyed("schemes", listed(g.Schemes, textOf)),
	}, placeMembers(g.Place)...)...)
}

func placeMembers(p SecretPlace) []member {
	return []member{
		keyed("header", textOrNil(p.Header)),
		keyed("prefix", textOrNil(p.Prefix)),
		keyed("query", textOrNil(p.Query)),
		keyed("body", textOrNil(p.Body)),
	}
}

// textOrNil returns nil, which means no member, for the empty text.
func textOrNil(text string) *node {
	if text == "" {
		return nil
	}
	return textOf(text)
}

func orNull(text string) *node {
	if text == "" {
		return &node{}
	}
	return textOf(text)
}

func (g SecretGrant) element() Element {
	s := secretElement(g.Name, g.Host)
	s.canonical = func() (any, error) {
		g.Binding = Binding{}
		g.Host = canonicalHost(g.Host)
		g.Ports, g.Schemes = inOrder(g.Ports), inOrder(g.Schemes)
		for _, path := range []*string{&g.From.File, &g.From.Age, &g.From.Identity} {
			if err := absolute(path); err != nil {
				return nil, err
			}
		}
		return g, nil
	}
	return s
}

// secretElement returns an element about a secret for one host, or for any host if host is empty.
func secretElement(name, host string) Element {
	s := Element{
		About: "the secret " + name, Fix: "write a name and a host that a manifest asks for, or remove it",
		canonical: func() (any, error) { return name, nil },
		asked: func(m *Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Secrets, func(p SecretPermission) bool {
				return p.Name == name && (host == "" || mayOverlap(p.Host, host))
			})
		},
	}
	if host != "" {
		s.About += " for " + host
	}
	return s
}
