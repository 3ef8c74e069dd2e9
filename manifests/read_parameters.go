package manifests

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/tool"
)

const maxContext = 32

func (r *reader) context(n *node, path string) []string {
	var names []string
	n.note("uniqueItems", boolOf(true))
	r.list(n, path, maxContext, func(n *node, path string) {
		name := r.parameter(n, path)
		if name == "" {
			return
		}
		if same := equalFold(names, name); same != "" {
			r.add(n.at, path, mistake.Conflict, fmt.Sprintf("%q is the same name as %q", name, same),
				"keep one of the two; case makes no difference")
			return
		}
		names = append(names, name)
	})
	return names
}

func (r *reader) parameter(n *node, path string) string {
	n.note("title", textOf("name"))
	return r.word(parameterName, settingFix)(n, path)
}

// equalFold returns the first name that equals name without regard to case, or "".
func equalFold(names []string, name string) string {
	if at := slices.IndexFunc(names, func(other string) bool { return strings.EqualFold(other, name) }); at >= 0 {
		return names[at]
	}
	return ""
}

// schema compiles the schema in n and reports its problems at the positions of written, which is
// the same schema as the author wrote it.
func (r *reader) schema(n, written *node, path string) *schema.Schema {
	if !r.visibleTexts(written, path) {
		return nil
	}
	compiled, err := schema.Compile(n.json())
	var invalid *schema.Error
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			inner := keypath.Join(path, p.Path)
			r.add(r.place(inner), inner, mistake.BadSchema, p.Message, "correct the JSON Schema at this place")
		}
		return nil
	}
	r.checkPossible(n, path)
	return compiled
}

// visibleTexts checks all texts in a value that is shown to models.
func (r *reader) visibleTexts(n *node, path string) bool {
	all := n.kind != textNode || r.visible(n.at, path, n.text)
	for i, element := range n.elements {
		all = r.visibleTexts(element, keypath.Index(path, i)) && all
	}
	for _, m := range n.members {
		inner := keypath.Key(path, m.key)
		all = r.visible(m.at, inner, m.key) && r.visibleTexts(m.value, inner) && all
	}
	return all
}

// parameters reads the schema of the arguments. It sets the schema that the model sees and the one
// that validates complete arguments.
func (r *reader) parameters(root *node, m *Manifest) {
	written := root.get("parameters")
	if written == nil || written.kind == nullNode {
		written = &node{kind: objectNode, at: root.at}
	}
	full, ok := r.parametersObject(written)
	if !ok {
		return
	}
	r.checkContextNames(written, "parameters", m.Context, true)
	r.checkParameterAliases(full, m)
	if m.Type != tool.CustomCall { // of which more is checked
		r.checkRequired(written, "parameters", m.Context)
	}
	r.checkTemplates(full, m)

	isContext := func(name string) bool { return slices.Contains(m.Context, name) }
	properties := full.get("properties")
	shown := full.with("properties", properties.without(isContext))
	if required := full.get("required"); required != nil && required.kind == listNode {
		kept := *required
		kept.elements = slices.DeleteFunc(slices.Clone(required.elements),
			func(n *node) bool { return n.kind == textNode && isContext(n.text) })
		shown = shown.with("required", &kept)
		if len(kept.elements) == 0 {
			shown = shown.without(func(key string) bool { return key == "required" })
		}
	}
	m.ModelParameters = shown.json()
	if flat, err := schema.Flatten(m.ModelParameters); err == nil { // else it is reported below
		m.ModelParameters = flat
	}

	for _, name := range m.Context {
		if properties.get(name) == nil {
			properties = properties.with(name, &node{kind: objectNode, at: properties.at})
		}
	}
	m.Parameters = r.schema(full.with("properties", properties), written, "parameters")
	r.checkAliasValues(m)
}

// parametersObject returns the schema with type and properties, which vendors of language models require.
func (r *reader) parametersObject(written *node) (*node, bool) {
	const path = "parameters"
	if !r.kind(written, path, objectNode, "write a JSON Schema: {type: object, properties: {…}}") {
		return nil, false
	}
	full := *written
	switch kind := written.get("type"); {
	case kind == nil:
		full.members = append([]member{{"type", written.at, &node{kind: textNode, text: "object", at: written.at}}},
			written.members...)
	case kind.kind == textNode && kind.text == "object":
	default:
		r.add(kind.at, path+".type", mistake.InvalidValue, "arguments are always an object", "write type: object")
		return nil, false
	}
	if properties := full.get("properties"); properties == nil {
		return full.with("properties", &node{kind: objectNode, at: written.at}), true
	} else if !r.kind(properties, path+".properties", objectNode,
		"write the parameters below it, each with its JSON Schema") {
		return nil, false
	}
	return &full, true
}

// checkContextNames reports where a schema declares a context value under a name that differs only
// in case, or in a place where it would not be hidden from the model.
func (r *reader) checkContextNames(n *node, path string, context []string, top bool) {
	check := func(name string, at position, path string) {
		same := equalFold(context, name)
		switch {
		case same == "" || same == name && top:
		case same == name:
			r.add(at, path, mistake.Conflict, fmt.Sprintf("%q is filled in by the host", name),
				"declare it under parameters.properties and parameters.required only")
		default:
			r.add(at, path, mistake.Conflict, fmt.Sprintf("%q differs from the context name %q only in case", name, same),
				"write "+same+", or choose another name")
		}
	}
	for _, m := range n.below("properties").members {
		check(m.key, m.at, keypath.Key(path+".properties", m.key))
	}
	for i, element := range n.below("required").elements {
		check(element.text, element.at, keypath.Index(path+".required", i))
	}
	for at, inner := range n.alternatives(path) {
		r.checkContextNames(inner, at, context, false)
	}
}

// alternatives yields the schemas in a schema that may apply to the same value, with their paths, without references.
func (n *node) alternatives(path string) iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		for _, m := range n.members {
			switch m.key {
			case "allOf", "anyOf", "oneOf":
				for i, element := range m.value.elements {
					if !yield(keypath.Index(keypath.Key(path, m.key), i), element) {
						return
					}
				}
			case "if", "then", "else", "not":
				if !yield(keypath.Key(path, m.key), m.value) {
					return
				}
			}
		}
	}
}

// checkRequired reports required names that no property has, in the schema and in those of its
// properties and elements: no model would know what to write there.
func (r *reader) checkRequired(n *node, path string, context []string) {
	for _, m := range n.below("properties").members {
		r.checkRequired(m.value, keypath.Key(keypath.Key(path, "properties"), m.key), nil)
	}
	if items := n.get("items"); items != nil {
		r.checkRequired(items, keypath.Key(path, "items"), nil)
	}
	known := map[string]bool{}
	if n.isClosed() || !n.declares(known) { // more is known of closed ones; see checkPossible
		return
	}
	for i, name := range n.below("required").elements {
		if name.kind != textNode || known[name.text] || equalFold(context, name.text) != "" {
			continue
		}
		r.add(name.at, keypath.Index(keypath.Key(path, "required"), i), mistake.BadSchema,
			fmt.Sprintf("%q is required, but there is no such property", clip(name.text)), undeclaredFix(name.text, known))
	}
}

// declares adds the names of the properties that a schema and the alternatives in it declare. It returns false if the
// schema may allow further names, because it refers to another schema or has rules for undeclared properties.
func (n *node) declares(names map[string]bool) bool {
	if n.count("$ref", "$dynamicRef", "$recursiveRef", "patternProperties", "dependentSchemas", "dependencies") > 0 {
		return false
	}
	for _, keyword := range [...]string{"additionalProperties", "unevaluatedProperties"} {
		if others := n.get(keyword); others != nil && (others.kind != boolNode || others.text != "false") {
			return false
		}
	}
	for _, m := range n.below("properties").members {
		names[m.key] = true
	}
	for at, inner := range n.alternatives("") {
		if at != "not" && !inner.declares(names) {
			return false
		}
	}
	return true
}

// checkTemplates checks that the parameters used in argv and stdin are declared.
func (r *reader) checkTemplates(parameters *node, m *Manifest) {
	declared := slices.Clone(m.Context)
	for _, p := range parameters.get("properties").members {
		declared = append(declared, p.key)
	}
	check := func(param, path string) {
		if slices.Contains(declared, param) {
			return
		}
		fix := "declare it under parameters.properties"
		if near := spelling.Nearest(param, declared); near != "" {
			fix = "did you mean {" + near + "}?"
		}
		r.conflict(path, fmt.Sprintf("{%s} is not a parameter", clip(param)), fix)
	}
	for i, template := range m.Module.Args {
		for _, param := range template.Params() {
			check(param, keypath.Index("module.args", i))
		}
	}
	if m.Module.Stdin.Mode == modules.StdinParam {
		check(m.Module.Stdin.Param, "module.stdin")
	}
	if m.Behavior.Profile != "" {
		check(m.Behavior.Profile, "behavior.profile")
	}
}
