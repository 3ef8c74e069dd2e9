package manifests

import "encoding/json"

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

// listing returns a writer of lists.
func listing[T any](write func(T) *node) func([]T) *node {
	return func(elements []T) *node { return listed(elements, write) }
}
