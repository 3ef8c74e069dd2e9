package manifests

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/spelling"
)

const (
	maxParameterAliases = 64
	maxAliasValues      = 64
)

// parameterAliases reads other names of parameters: each with the parameter's name, or with an object
// that also translates values.
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
