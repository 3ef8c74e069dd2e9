package manifests

import (
	"cmp"
	"encoding/json"
	"slices"
)

// A rule is the part of a manifest or a policy that a receipt reports as missing. It is JSON that the document's reader
// accepts, with null for values that only people can supply. Guests and models influence the content of rules. A rule
// is therefore nil if no reader would accept it or if it holds anything but plain text, which people see unchanged.

// Rule returns the permissions as written in a manifest under "permissions", without defaults:
// {"network":[{"host":"api.example.com"}]}. The place of a secret is null if it is empty. The rule
// is nil if the permissions are empty. KV and LLM have no rule.
func (p Permissions) Rule() json.RawMessage {
	var members []member
	for _, k := range kinds() {
		if k.asks != nil && k.asks.write != nil {
			members = append(members, keyed(k.asks.key, k.asks.write(p)))
		}
	}
	return manifestRule(objectOf(members...))
}

// ContextRule returns the manifest key next to "permissions" that requests context values: {"context":["project_id"]}.
func ContextRule(names ...string) json.RawMessage {
	return manifestRule(objectOf(keyed("context", listed(names, textOf))))
}

// Rule returns the permissions as an element of a policy's grants for some tools, without defaults:
// {"tools":["fetch_page"],"network":[{"host":"api.example.com"}]}. It has no source
// and no digest. Values that only the operator knows are omitted or null: host directories, values
// of variables, files, and empty hosts of secrets. Grants without permissions have no rule.
func (g Grants) Rule(tools ...string) json.RawMessage {
	var members []member
	for _, k := range kinds() {
		if k.gives != nil {
			members = append(members, keyed(k.gives.key, k.gives.write(g)))
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	gives := objectOf(members...)
	if len(gives.members) == 0 {
		return nil
	}
	return policyRule(objectOf(append([]member{keyed("tools", listed(tools, textOf))}, gives.members...)...))
}

// Rule returns the source as a key of a policy, with null for a fixed value:
// {"context":{"project_id":{"from":"fixed","value":null}}}.
func (s ContextSource) Rule() json.RawMessage {
	source := objectOf(keyed("from", textOf(string(s.From))))
	if s.From == FromFixed {
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

// listed returns a list node, or nil for no elements. objectOf drops members whose value is nil.
func listed[T any](elements []T, write func(T) *node) *node {
	if len(elements) == 0 {
		return nil
	}
	n := &node{kind: listNode}
	for _, element := range elements {
		n.elements = append(n.elements, write(element))
	}
	return n
}

// listing returns a writer of lists.
func listing[T any](write func(T) *node) func([]T) *node {
	return func(elements []T) *node { return listed(elements, write) }
}

// ManifestLine returns a rule as the line of YAML that is missing in a manifest: "permissions: {network: [{host:
// api.example.com}]}". Each null in the rule is replaced by a word in capitals, such as HOST. The line is empty if rule
// is nil or is not a valid rule for a manifest, wherever it comes from.
func ManifestLine(rule json.RawMessage) string { return ruleNode(rule).manifestLine() }

// PolicyLine is like [ManifestLine] for a policy. A line for an element of the grants begins with
// "- ". Any other line is a key of the policy.
func PolicyLine(rule json.RawMessage) string { return ruleNode(rule).policyLine() }

// ruleNode parses a rule. It returns a null node if the rule is invalid.
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
	r.permissions(rule, "permissions")
	return r.ruleLine("permissions: ", rule)
}

func (n *node) policyLine() string {
	rule := n.completed("", "")
	r := &reader{subject: policySubject}
	if context := rule.get("context"); context != nil && len(rule.members) == 1 {
		r.contextSources(context, "context")
		return r.ruleLine("context: ", context)
	}
	if slices.ContainsFunc(r.grant(rule, "grants[0]").Tools,
		func(name string) bool { return !toolName.MatchString(name) }) {
		return "" // a glob
	}
	return r.ruleLine("- ", rule)
}

// ruleLine returns the line for a parsed rule, or "" if it was rejected, is not plain text or is empty.
func (r *reader) ruleLine(start string, n *node) string {
	text, plain := n.flow()
	if len(r.problems) > 0 || !plain || len(n.members)+len(n.elements) == 0 {
		return ""
	}
	return start + text
}

// completed returns a rule with placeholders for what only people know. section is the top key above key.
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
