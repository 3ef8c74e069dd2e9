package manifests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
	"github.com/caisson-run/caisson/manifests/permission"
)

// SecretPermission asks that the host put a secret into requests to one host.
type SecretPermission struct {
	Name  string
	Place SecretPlace
	Host  string
}

// SecretPlace is where in a request a secret goes. Exactly one of Header, Query and Body is
// set, but in the zero value, which is no place.
type SecretPlace struct {
	Header string // the name of a header
	Prefix string // what stands before the secret in the header, such as "Bearer "
	Query  string // the name of a query parameter
	Body   string // a member of the JSON object, or a field of the form, that is the body
}

// SecretGrant binds a secret to the one host that may receive it.
type SecretGrant struct {
	Binding
	Name string
	From SecretSource
	Host string // a lower-case name or an IP address, without wildcard
	// Ports and Schemes narrow the host down to origins. Empty: the scheme's own port, and
	// https.
	Ports   []int
	Schemes []string
	// Place must be the one that the manifest asks for. The zero value allows any header: what
	// is put into a query or a body an API may keep and show, so the grant has to name it.
	Place SecretPlace
	// Force allows a value of less than 16 bytes, which responses cannot be masked for.
	Force bool
}

// SecretSource says where the operator keeps a secret's value. Exactly one of Env, File and
// Age is set.
type SecretSource struct {
	Env  string // the name of an environment variable of the host
	File string // a file that holds the value, without the line break at its end
	// Age is a file encrypted with age (age-encryption.org/v1) that holds lines of
	// NAME=value, and Identity a file with the key to it.
	Age, Identity string
	// Key is the name in the age file; empty: the secret's own.
	Key string
}

var (
	// tokenText is a token of RFC 9110, section 5.6.2.
	tokenText = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	// queryName can name a query parameter, a field of a form and a member of JSON as it is.
	queryName  = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	prefixText = regexp.MustCompile(`^[!-~][ -~]{0,63}$`)
)

// hopHeaders are headers that say how a message travels. A secret there would change
// what the request is (RFC 9110, sections 7.2 and 7.6.1).
var hopHeaders = [...]string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
	"proxy-connection", "proxy-authorization", "expect", "content-type",
}

func secrets() kind {
	return kind{
		name: "secrets",
		asks: &asking{
			key: "secrets",
			schema: `{
          "type": "array",
          "items": {
            "type": "object",
            "required": ["name", "host"],
            "oneOf": [{"required": ["header"]}, {"required": ["query"]}, {"required": ["body"]}],
            "dependentRequired": {"prefix": ["header"]},
            "additionalProperties": false,
            "properties": {
              "name": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]{0,127}$"},
              "header": {"type": "string", "minLength": 1, "maxLength": 128},
              "prefix": {"type": "string", "pattern": "^[!-~][ -~]{0,63}$", "description": "What stands before the secret in the header, such as 'Bearer '."},
              "query": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"},
              "body": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$", "description": "A member of the JSON object, or a field of the form."},
              "host": {"type": "string", "minLength": 1, "maxLength": 253}
            }
          }
        }`,
			read: func(r *reader, n *node, at string, p *Permissions) {
				r.list(n, at, maxList, func(n *node, at string) { p.Secrets = append(p.Secrets, r.secretPermission(n, at)) })
			},
			write: func(p Permissions) *node { return listed(p.Secrets, secretNode) },
		},
		gives: grants("secrets", `{
            "type": "array",
            "maxItems": 256,
            "items": {
              "type": "object",
              "required": ["name", "from", "host"],
              "dependentRequired": {"prefix": ["header"]},
              "additionalProperties": false,
              "properties": {
                "name": {"$ref": "#/$defs/secretName"},
                "from": {
                  "type": "object",
                  "oneOf": [{"required": ["env"]}, {"required": ["file"]}, {"required": ["age"]}],
                  "dependentRequired": {"age": ["identity"], "identity": ["age"], "key": ["age"]},
                  "additionalProperties": false,
                  "properties": {
                    "env": {"$ref": "#/$defs/setting", "description": "A variable of the host's environment."},
                    "file": {"$ref": "#/$defs/hostPath"},
                    "age": {"$ref": "#/$defs/hostPath", "description": "A file encrypted with age, with lines of NAME=value."},
                    "identity": {"$ref": "#/$defs/hostPath", "description": "The key to the file."},
                    "key": {"$ref": "#/$defs/setting", "description": "The name in the file; the secret's own when absent."}
                  }
                },
                "host": {"type": "string", "minLength": 1, "maxLength": 253, "description": "The one host that may receive the secret."},
                "ports": {"$ref": "#/$defs/ports"},
                "schemes": {"$ref": "#/$defs/schemes"},
                "header": {"type": "string", "minLength": 1, "maxLength": 128},
                "prefix": {"type": "string", "pattern": "^[!-~][ -~]{0,63}$"},
                "query": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"},
                "body": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"},
                "force": {"type": "boolean", "description": "Allows a value that is too short to be masked in responses."}
              }
            }
          }`,
			func(g *Grant) *[]SecretGrant { return &g.Secrets }, func(g *Grants) *[]SecretGrant { return &g.Secrets },
			(*reader).secretGrants, listing(secretGrantNode), SecretGrant.statement),
		takes: &taking{
			key: "secret", schema: `{"$ref": "#/$defs/secretName"}`,
			read: func(r *reader, n *node, at string, d *Deny) { d.Secret = r.secret(n, at) },
			say:  func(d Deny) (Statement, bool) { return secretStatement(d.Secret, ""), d.Secret != "" },
		},
	}
}

func (r *reader) secretPermission(n *node, at string) SecretPermission {
	p := SecretPermission{}
	read := r.object(n, at, append([]field{
		{"name", secretExample, func(n *node, at string) { p.Name = r.secret(n, at) }},
		{"host", secretHostExample, func(n *node, at string) { p.Host = canonical(r, n, at, permission.ParseOneHost) }},
	}, r.placeFields(&p.Place)...)...)
	if read {
		r.checkPlace(n, at, true)
	}
	return p
}

// These tell whoever left out a key of a secret what to add.
const (
	secretExample     = "name: and the secret's name, such as API_KEY"
	secretHostExample = "host: and the one host that may receive the secret"
)

func (r *reader) secret(n *node, at string) string {
	return r.word(n, at, secretName, "use upper-case letters, digits and _, starting with a letter")
}

// placeFields are the keys that say where in a request a secret goes.
func (r *reader) placeFields(p *SecretPlace) []field {
	return []field{
		{"header", "", func(n *node, at string) { p.Header = r.header(n, at) }},
		{"prefix", "", func(n *node, at string) {
			p.Prefix = r.word(n, at, prefixText, `write 1 to 64 visible characters of ASCII, such as "Bearer "`)
		}},
		{"query", "", func(n *node, at string) {
			p.Query = r.word(n, at, queryName, "use letters, digits and . _ ~ - for the name of the query parameter")
		}},
		{"body", "", func(n *node, at string) {
			p.Body = r.word(n, at, queryName, "use letters, digits and . _ ~ - for the member of the JSON object, or the field of the form")
		}},
	}
}

// checkPlace reports places that are more than one, or none where one is required.
func (r *reader) checkPlace(n *node, at string, required bool) {
	given := 0
	for _, key := range [...]string{"header", "query", "body"} {
		if n.get(key) != nil {
			given++
		}
	}
	if given > 1 || given == 0 && required {
		r.add(n.at, at, Conflict, "a secret goes into one place: a header, a query parameter or the body", "give exactly one of header, query and body")
	}
	if n.get("prefix") != nil && n.get("header") == nil {
		inner := at + ".prefix"
		r.add(r.place(inner), inner, Conflict, "a prefix stands before a secret in a header", "remove it, or add header: Authorization")
	}
}

func (r *reader) header(n *node, at string) string {
	text := r.word(n, at, tokenText, "write the name of a header, such as X-Api-Key")
	if slices.Contains(hopHeaders[:], strings.ToLower(text)) {
		r.add(n.at, at, InvalidValue, fmt.Sprintf("%q says how a request travels", text), "use another header, such as Authorization or X-Api-Key")
		return ""
	}
	return text
}

func (r *reader) secretGrants(n *node, at string) []SecretGrant {
	var grants []SecretGrant
	r.list(n, at, maxList, func(n *node, at string) { grants = append(grants, r.secretGrant(n, at)) })
	return grants
}

func (r *reader) secretGrant(n *node, at string) SecretGrant {
	g := SecretGrant{Binding: Binding{Origin: r.origin(n.at)}}
	fields := append([]field{
		{"name", secretExample, func(n *node, at string) { g.Name = r.secret(n, at) }},
		{"from", "from: and where the value is, such as {env: API_KEY}", func(n *node, at string) { g.From = r.secretSource(n, at) }},
		{"host", secretHostExample, func(n *node, at string) { g.Host = canonical(r, n, at, permission.ParseOneHost) }},
		{"ports", "", func(n *node, at string) { g.Ports = r.ports(n, at) }},
		{"schemes", "", func(n *node, at string) { g.Schemes = r.schemes(n, at) }},
	}, r.placeFields(&g.Place)...)
	fields = append(fields, field{"force", "", func(n *node, at string) { g.Force = r.boolean(n, at) }})
	if r.object(n, at, fields...) {
		r.checkPlace(n, at, false)
	}
	return g
}

func (r *reader) secretSource(n *node, at string) SecretSource {
	s := SecretSource{}
	read := r.object(n, at,
		field{"env", "", func(n *node, at string) { s.Env = r.setting(n, at) }},
		field{"file", "", func(n *node, at string) { s.File = r.hostPath(n, at) }},
		field{"age", "", func(n *node, at string) { s.Age = r.hostPath(n, at) }},
		field{"identity", "", func(n *node, at string) { s.Identity = r.hostPath(n, at) }},
		field{"key", "", func(n *node, at string) { s.Key = r.setting(n, at) }},
	)
	if read {
		r.checkSecretSource(n, at)
	}
	return s
}

func (r *reader) checkSecretSource(n *node, at string) {
	given := 0
	for _, key := range [...]string{"env", "file", "age"} {
		if n.get(key) != nil {
			given++
		}
	}
	if given != 1 {
		r.add(n.at, at, Conflict, "a secret's value comes from one place", "give exactly one of env, file and age")
	}
	encrypted := n.get("age") != nil
	if encrypted && n.get("identity") == nil {
		r.add(n.at, keypath.Key(at, "identity"), Missing, "the key identity is required with age", "add identity: and the file with the key to it")
	}
	for _, key := range [...]string{"identity", "key"} {
		if inner := keypath.Key(at, key); !encrypted && n.get(key) != nil {
			r.add(r.place(inner), inner, Conflict, key+" belongs to a file encrypted with age", "remove "+key+", or give age")
		}
	}
}

func secretNode(p SecretPermission) *node {
	header := optional(p.Place.Header)
	if p.Place == (SecretPlace{}) {
		header = &node{}
	}
	return objectOf(
		keyed("name", textOf(p.Name)),
		keyed("header", header),
		keyed("prefix", optional(p.Place.Prefix)),
		keyed("query", optional(p.Place.Query)),
		keyed("body", optional(p.Place.Body)),
		keyed("host", orNull(p.Host)),
	)
}

func secretGrantNode(g SecretGrant) *node {
	return objectOf(
		keyed("name", textOf(g.Name)),
		keyed("from", objectOf(keyed("env", optional(g.From.Env)))),
		keyed("host", orNull(g.Host)),
		keyed("ports", listed(g.Ports, portNode)),
		keyed("schemes", listed(g.Schemes, textOf)),
		keyed("header", optional(g.Place.Header)),
		keyed("prefix", optional(g.Place.Prefix)),
		keyed("query", optional(g.Place.Query)),
		keyed("body", optional(g.Place.Body)),
	)
}

// optional returns nil, which stands for no member, for the empty text.
func optional(text string) *node {
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

func (g SecretGrant) statement() Statement {
	s := secretStatement(g.Name, g.Host)
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

// secretStatement is about a secret for one host; for any where the host is empty.
func secretStatement(name, host string) Statement {
	s := Statement{
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
