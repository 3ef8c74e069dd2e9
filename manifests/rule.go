package manifests

import (
	"encoding/json"
	"slices"
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

// ManifestLine returns a rule as the line of YAML that is missing in a manifest:
// "permissions: {network: [{host: api.example.com}]}". A word in capitals, such as HOST,
// stands for each null in the rule. The line is empty for nil, and for what is no such rule,
// wherever it comes from.
func ManifestLine(rule json.RawMessage) string { return ruleNode(rule).manifestLine() }

// PolicyLine is [ManifestLine] for a policy. What is an element of its grants begins with
// "- "; the rest is a key of the policy.
func PolicyLine(rule json.RawMessage) string { return ruleNode(rule).policyLine() }

// ruleNode reads a rule. For what cannot be read it returns nothing, as for null.
func ruleNode(rule json.RawMessage) *node {
	if len(rule) > 0 && len(rule) <= MaxBytes {
		r := &reader{}
		if n := r.json(rule); len(r.problems) == 0 {
			return n
		}
	}
	return &node{}
}

func (n *node) manifestLine() string {
	rule := n.completed("", "")
	r := &reader{subject: manifestSubject}
	if context := rule.get("context"); context != nil && len(rule.members) == 1 {
		r.context(context, "context")
		return r.ruleLine("context: ", context)
	}
	r.permissions(rule, "permissions", &Permissions{})
	return r.ruleLine("permissions: ", rule)
}

func (n *node) policyLine() string {
	rule := n.completed("", "")
	r := &reader{subject: policySubject}
	if context := rule.get("context"); context != nil && len(rule.members) == 1 {
		r.contextSources(context, "context")
		return r.ruleLine("context: ", context)
	}
	if slices.ContainsFunc(r.grant(rule, "grants[0]").Tools, func(name string) bool { return !toolName.MatchString(name) }) {
		return "" // a glob
	}
	return r.ruleLine("- ", rule)
}

// ruleLine returns what was read as a line, if it says something, to readers and to people.
func (r *reader) ruleLine(start string, n *node) string {
	text, plain := n.flow()
	if len(r.problems) > 0 || !plain || len(n.members)+len(n.elements) == 0 {
		return ""
	}
	return start + text
}

// completed returns a rule with a word for each null in it that only people can replace. The
// section is the rule's key below which a value stands, and the key the value's own.
func (n *node) completed(section, key string) *node {
	word := placeholderOf(section, key)
	if n.kind == nullNode && word != "" {
		return textOf(word)
	}
	filled := *n
	filled.elements, filled.members = nil, nil
	for _, element := range n.elements {
		filled.elements = append(filled.elements, element.completed(section, key))
	}
	for _, m := range n.members {
		below := section
		if below == "" {
			below = m.key
		}
		m.value = m.value.completed(below, m.key)
		filled.members = append(filled.members, m)
	}
	return &filled
}

func placeholderOf(section, key string) string {
	switch {
	case section == "files" && key == "host":
		return "HOSTDIR"
	case section == "secrets" && key == "header":
		return "HEADER"
	case section == "secrets" && key == "host":
		return "HOST"
	case section == "env", section == "context" && key == "value":
		return "VALUE"
	}
	return ""
}
