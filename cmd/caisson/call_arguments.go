package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// pairPattern matches KEY=VALUE, but no JSON and no @FILE.
var pairPattern = regexp.MustCompile(`(?s)^([^\s=@"'{}\[\]]+)=(.*)$`)

// arePairs reports whether arguments are given as KEY=VALUE words. It also returns the index of a word that is neither
// that nor anything else that can be among the words, or -1. tolerant says whether text that is almost JSON is JSON.
func arePairs(words []string, tolerant bool) (pairs bool, wrong int) {
	found, other := 0, -1
	for i, word := range words {
		if pairPattern.MatchString(word) {
			found++
		} else {
			other = i
		}
	}
	if found == len(words) || len(words) == 1 && (tolerant || !isBare(words[0])) {
		other = -1
	}
	return found > 0, other
}

// isBare reports whether a word can only be a VALUE or a KEY: no JSON, even with mistakes, and no name of an input.
func isBare(word string) bool {
	return strings.TrimSpace(word) != "" && word != "-" && !strings.HasPrefix(word, "@") &&
		!strings.ContainsAny(word, "{[\"'`") && !json.Valid([]byte(word))
}

// wrongWord returns the failure for a word that is not KEY=VALUE. It says how to write it, as far as that is known.
func wrongWord(m *manifests.Manifest, words []string, wrong int) *failure {
	example := ""
	pair := func(key, value string) { example = ", such as " + key + "=" + terminal.Quote(value) }
	structure := m.Parameters.Structure()
	key := func(i int) string { return strings.TrimSuffix(words[i], ":") } // as in YAML
	isKey := func(i int) bool { return i >= 0 && structure != nil && structure.Properties[key(i)] != nil }
	switch {
	case isKey(wrong - 1):
		pair(key(wrong-1), words[wrong])
	case isKey(wrong):
		pair(key(wrong), "VALUE")
	case len(words) == 1 && structure != nil && len(structure.Required) == 1:
		for name := range structure.Required {
			pair(name, words[0])
		}
	}
	what := "is not KEY=VALUE"
	if len(words) == 1 {
		what = "is neither KEY=VALUE nor a JSON object"
	}
	return failed(exitUsage, fmt.Sprintf("%s: the argument %q %s", m.Name, terminal.Clip(words[wrong], 80), what),
		"give the arguments as KEY=VALUE words"+example+", or as one JSON object in quotes")
}

// wordHints says how to write arguments if the only one is a bare word instead of a JSON object.
func wordHints(words []string, record tool.Record) []string {
	if record.Result.Kind != tool.InvalidArguments || len(words) != 1 || words[0] == "-" ||
		strings.HasPrefix(words[0], "@") || strings.Contains(words[0], "{") {
		return nil
	}
	return []string{"give the arguments as KEY=VALUE words, or as one JSON object in quotes"}
}

// argumentsOf returns the arguments of a tool given as KEY=VALUE words, as a JSON object.
func argumentsOf(ctx context.Context, m *manifests.Manifest, words []string) (string, *failure) {
	var members []string
	given := map[string]bool{}
	for _, word := range words {
		parts := pairPattern.FindStringSubmatch(word)
		name, text := parts[1], parts[2]
		if given[name] {
			return "", failed(exitUsage, fmt.Sprintf("%s: %s is given twice", m.Name, name))
		}
		given[name] = true
		parameter, translated := meantBy(m, name, text)
		value := jsontext.Quote(text)
		if !translated {
			var err error
			member := memberOf(m.Parameters.Structure(), parameter, map[*schema.Node]bool{})
			if value, err = valueOf(ctx, member, text); err != nil {
				return "", failed(exitUsage, fmt.Sprintf("%s: %s: %v", m.Name, name, err))
			}
		}
		members = append(members, jsontext.Quote(name)+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}", nil
}

// meantBy returns the parameter that a name means, and whether the manifest translates the text under that name.
func meantBy(m *manifests.Manifest, name, text string) (parameter string, translated bool) {
	for _, alias := range m.ParameterAliases {
		if alias.Name == name {
			return alias.Parameter,
				slices.ContainsFunc(alias.Values, func(v manifests.AliasValue) bool { return v.Written == text })
		}
	}
	return name, false
}

// memberOf returns the schema of a member of an object. It is nil if there is none or it is not allowed, which is
// reported like any other mistake in arguments. Each schema is looked at once, as there may be cycles.
func memberOf(object *schema.Node, name string, seen map[*schema.Node]bool) *schema.Node {
	if seen[object] {
		return nil
	}
	seen[object] = true
	if object.Properties[name] != nil {
		return object.Properties[name]
	}
	for _, part := range partsOf(object) {
		if found := memberOf(part, name, seen); found != nil {
			return found
		}
	}
	if object.Additional != nil && object.Additional.Types != 0 {
		return object.Additional
	}
	return nil
}

// partsOf returns the schemas that may apply to the same value.
func partsOf(n *schema.Node) []*schema.Node {
	parts := n.Also
	for _, union := range n.Unions {
		parts = append(parts[:len(parts):len(parts)], union.Branches...)
	}
	return parts
}

// valueOf returns the JSON of a value that is written as text: a string if the schema allows one, and
// otherwise the text itself. If one of the two fits the schema and the other does not, it is that one.
func valueOf(ctx context.Context, n *schema.Node, text string) (string, error) {
	types, quoted, value := schema.TypesOf(n, map[*schema.Node]schema.Types{}), jsontext.Quote(text),
		strings.TrimSpace(text)
	var probe schema.Probe
	fits := func(value string) bool { return n == nil || probe.Fits(ctx, n, value) }
	switch isJSON := json.Valid([]byte(value)); {
	case types.Has(schema.String) && (!isJSON || fits(quoted) || !fits(value)):
		return quoted, nil
	case isJSON && types&schema.TypeOf(value) != 0:
		return value, nil
	}
	return "", fmt.Errorf("%q is not %s", terminal.Clip(text, 80), typeNamesOf(types))
}

// typeNamesOf describes types other than strings, with how their values are written.
func typeNamesOf(types schema.Types) string {
	var names []string
	for _, known := range []struct {
		types schema.Types
		name  string
	}{
		{schema.Number, "a number"}, {schema.Boolean, "true or false"}, {schema.Array, "a JSON array, such as [1, 2]"},
		{schema.Object, `a JSON object, such as {"key": "value"}`}, {schema.Null, "null"},
	} {
		name := known.name
		if types&schema.Number == schema.Integer && known.types == schema.Number {
			name = "a whole number"
		}
		if types&known.types != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "allowed, as no value is"
	}
	return strings.Join(names, ", or ")
}
