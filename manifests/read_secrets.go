package manifests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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

func (r *reader) secretPermission(n *node, at string) SecretPermission {
	p := SecretPermission{}
	read := r.object(n, at, append([]field{
		{"name", secretExample, func(n *node, at string) { p.Name = r.secret(n, at) }},
		{"host", secretHostExample, func(n *node, at string) { p.Host = r.oneHost(n, at) }},
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
