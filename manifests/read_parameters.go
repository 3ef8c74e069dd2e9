package manifests

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
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

// schema compiles the schema in n. Its problems are at the positions of written, the schema as its author wrote it.
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

// parameters sets the schema that the model sees, and the one that validates complete arguments.
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

// checkContextNames reports context values in another case, or where they are not hidden from the model.
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

// checkRequired reports required names that no property has, also in properties and elements: no model could fill them.
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

// declares adds the names of the properties that a schema and its alternatives declare, unless there may be others.
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

const (
	maxParameterAliases = 64
	maxAliasValues      = 64
)

// parameterAliases reads other names of parameters, each with the parameter's own, and perhaps translated values.
func (r *reader) parameterAliases(n *node, path string) (aliases []ParameterAlias) {
	r.mapping(n, path, maxParameterAliases, func(m member, path string) {
		if !r.key(m, path, toolName, nameFix) {
			return
		}
		alias := ParameterAlias{Name: m.key}
		if m.value.kind != objectNode {
			alias.Parameter = r.aliased(m.value, path)
		}
		if m.value.kind == objectNode || m.value.schema != nil {
			r.object(m.value, path,
				required("parameter", "parameter: and its name", &alias.Parameter, r.aliased),
				optional("values", &alias.Values, r.aliasValues),
			)
		}
		aliases = append(aliases, alias)
	})
	return aliases
}

func (r *reader) aliased(n *node, path string) string {
	if !r.kind(n, path, textNode, aliasFix) {
		return ""
	}
	if n.text == "" {
		r.invalid(n, path, "the text is empty", aliasFix)
	}
	return n.text
}

const aliasFix = "write the name of the parameter"

func (r *reader) aliasValues(n *node, path string) (values []AliasValue) {
	if n.kind == objectNode && len(n.members) == 0 {
		r.invalid(n, path, "there are no values", "write what each value means, or remove values")
	}
	r.mapping(n, path, maxAliasValues, func(m member, _ string) {
		values = append(values, AliasValue{Written: m.key, Means: m.value.json()})
	})
	return values
}

// checkParameterAliases checks that each alias is another name for a parameter that models can set.
func (r *reader) checkParameterAliases(parameters *node, m *Manifest) {
	var own []string
	for _, p := range parameters.get("properties").members {
		if !slices.Contains(m.Context, p.key) {
			own = append(own, p.key)
		}
	}
	anywhere := propertyNames(parameters, nil)
	for _, alias := range m.ParameterAliases {
		path := keypath.Key("parameter_aliases", alias.Name)
		if same := equalFold(m.Context, alias.Name); same != "" {
			r.conflict(path, fmt.Sprintf("%q could pass for %q, which the host fills in", alias.Name, same), "remove the alias")
		} else if slices.Contains(anywhere, alias.Name) {
			r.conflict(path, strconv.Quote(alias.Name)+" is a parameter itself", "remove the alias or the parameter")
		}
		if alias.Parameter == "" || slices.Contains(own, alias.Parameter) { // if it is empty, that has been reported
			continue
		}
		fix := "declare it under parameters.properties"
		if near := spelling.Nearest(alias.Parameter, own); near != "" {
			fix = "did you mean " + near + "?"
		}
		message := strconv.Quote(clip(alias.Parameter)) + " is not a parameter"
		if slices.Contains(m.Context, alias.Parameter) {
			message, fix = fmt.Sprintf("the host fills in %q, and no caller can set it", alias.Parameter), "remove the alias"
		}
		r.conflict(path, message, fix)
	}
}

// propertyNames adds the names of all properties that schemas of one object declare.
func propertyNames(n *node, names []string) []string {
	for _, m := range n.below("properties").members {
		names = append(names, m.key)
	}
	for _, inner := range n.alternatives("") {
		names = propertyNames(inner, names)
	}
	return names
}
