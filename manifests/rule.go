package manifests

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
)

// A rule is what a receipt says is missing: a part of a manifest or of a policy, in JSON, as
// their readers take it. Null in one stands for what only people can say. What rules are
// about was chosen by guests and models: where no reader would accept it, or it is more than
// plain text, which people see for what it is, there is no rule, which is nil.

// Rule returns the permissions as they stand in a manifest under "permissions", without
// defaults: {"network":[{"host":"api.example.com"}]}. It is null where a secret goes, if
// that is empty. There is no rule for permissions that are empty, nor for KV and LLM.
func (p Permissions) Rule() json.RawMessage {
	return manifestRule(objectOf(requestMembers(p)...))
}

// ContextRule returns what stands in a manifest, beside "permissions", that asks for context
// values: {"context":["project_id"]}.
func ContextRule(names ...string) json.RawMessage {
	return manifestRule(objectOf(keyed("context", listed(names, textOf))))
}

// Rule returns the grant as an element of a policy's grants, without defaults:
// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. It is for tools by their
// names alone. What is the operator's alone it leaves out, or has null in its place: host
// directories, values of variables, files, and hosts of secrets that are empty.
func (g Grant) Rule() json.RawMessage {
	return policyRule(objectOf(append([]member{keyed("tools", listed(g.Tools, textOf))}, grantMembers(g)...)...))
}

// Rule returns the source as the key of a policy that it is, with null for its value:
// {"context":{"project_id":{"from":"fixed","value":null}}}.
func (s ContextSource) Rule() json.RawMessage {
	source := objectOf(keyed("from", textOf(string(s.From))))
	if s.From == Fixed {
		source.members = append(source.members, keyed("value", &node{}))
	}
	return policyRule(objectOf(keyed("context", objectOf(keyed(s.Name, source)))))
}

func manifestRule(rule *node) json.RawMessage {
	if rule.manifestLine() == "" {
		return nil
	}
	return rule.json()
}

func policyRule(rule *node) json.RawMessage {
	if rule.policyLine() == "" {
		return nil
	}
	return rule.json()
}

// requestNode writes a network permission without its defaults.
func requestNode(p NetworkPermission) *node {
	standard := NetworkPermission{}.complete()
	p = p.complete()
	return objectOf(
		keyed("host", textOf(p.Host)),
		keyed("ports", listed(p.Ports, portNode)),
		keyed("methods", listedUnless(p.Methods, standard.Methods)),
		keyed("schemes", listedUnless(p.Schemes, standard.Schemes)),
		keyed("paths", listedUnless(p.Paths, standard.Paths)),
	)
}

func networkGrantNode(g NetworkGrant) *node {
	granted := requestNode(g.NetworkPermission)
	addresses := listed(g.Addresses, func(p netip.Prefix) *node { return textOf(p.String()) })
	granted.members = append(granted.members, objectOf(keyed("addresses", addresses)).members...)
	return granted
}

func fileNode(f FilePermission) *node {
	return objectOf(keyed("path", textOf(f.Path)), keyed("access", accessNode(f.Access)))
}

func fileGrantNode(f FileGrant) *node {
	return objectOf(keyed("path", textOf(f.Path)), keyed("host", &node{}), keyed("access", accessNode(f.Access)))
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

func variablesNode(variables []EnvGrant) *node {
	if len(variables) == 0 {
		return nil
	}
	n := objectOf()
	for _, variable := range variables {
		n.members = append(n.members, keyed(variable.Name, &node{}))
	}
	return n
}

// listed returns nil, which stands for no member, for no elements.
func listed[T any](elements []T, write func(T) *node) *node {
	if len(elements) == 0 {
		return nil
	}
	n := listOf()
	for _, element := range elements {
		n.elements = append(n.elements, write(element))
	}
	return n
}

// listedUnless returns nil, which stands for no member, for what is standard.
func listedUnless(texts, standard []string) *node {
	if slices.Equal(texts, standard) {
		return nil
	}
	return listed(texts, textOf)
}

func portNode(port int) *node { return &node{kind: numberNode, text: strconv.Itoa(port)} }

func accessNode(access Access) *node {
	if access == "" {
		access = Read
	}
	return textOf(string(access))
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
